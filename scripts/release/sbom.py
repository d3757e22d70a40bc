"""The software bill of materials of the wheel: the package and what it depends on, as SPDX.

    python -m scripts.release.sbom

Writes `sbom.spdx.json` in the root, which the build puts into the wheel (PEP 770).  The digests of
the wheel's files are in its RECORD; versions of dependencies are those that an installation takes.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

from microtir.support import spdx
from microtir.version import __version__

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

ROOT = Path(__file__).resolve().parents[2]
FILE = "sbom.spdx.json"

_PACKAGE = "SPDXRef-microtir"


def text() -> str:
    """Return the bill of materials."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    needed = [re.split(r"[ <>=!~;\[]", line)[0] for line in project["dependencies"]]
    packages = [spdx.package(f"SPDXRef-{name}", name, "", "LIBRARY") for name in needed]
    for package, name in zip(packages, needed, strict=True):
        locator = {"referenceLocator": f"pkg:pypi/{name}", "referenceType": "purl"}
        package["externalRefs"] = [{"referenceCategory": "PACKAGE-MANAGER", **locator}]
    own = spdx.package(_PACKAGE, "microtir", __version__, "APPLICATION", project["license"])
    relations = [spdx.relation(_PACKAGE, "DEPENDS_ON", f"SPDXRef-{name}") for name in needed]
    return spdx.document(f"microtir-{__version__}", [own, *packages], relations)


if __name__ == "__main__":
    (ROOT / FILE).write_text(text(), "utf-8")
