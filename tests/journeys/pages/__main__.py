"""Executes the pages that begin in another framework, each in an environment of its own.

    python -m tests.journeys.pages
    python -m tests.journeys.pages --record from-keras.md

The environment of a page has microtir with the extras that the page names, and the packages that
its own blocks install.  The second form writes versions and digests to pages.json; a test fails
where a page has changed since.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType

from tests.journeys.pages import follow

ROOT = Path(__file__).parents[3]
DOCS = ROOT / "docs"
RECORDED = Path(__file__).with_name("pages.json")
_ENVIRONMENTS = ROOT / "build" / "pages"
_MODEL = ROOT / "examples" / "digits" / "digits_int8.tflite"


def _nothing(_: Path) -> None:
    """Leave the folder empty."""


def array_of_tflite_micro(folder: Path) -> None:
    """Write the model as the C array that generate_cc_arrays.py of tflite-micro makes of it."""
    data = _MODEL.read_bytes()
    array = ",".join(f"0x{byte:x}" for byte in data)
    (folder / "model_data.cc").write_text(
        '#include <cstdint>\n\n#include "model_data.h"\n\n'
        f"const unsigned int g_model_data_size = {len(data)};\n"
        f"alignas(16) const unsigned char g_model_data[] = {{{array}}};\n",
        "utf-8",
    )


@dataclass(frozen=True, slots=True)
class Page:
    """What a reader of a page has, and the packages whose versions are recorded.

    Args:
        extras: of microtir, as the page names them.
        packages: distributions that the page needs.
        prepare: writes what the reader has before the page begins.
    """

    extras: str
    packages: tuple[str, ...]
    prepare: Callable[[Path], None] = _nothing


PAGES: Mapping[str, Page] = MappingProxyType(
    {
        "from-pytorch.md": Page("onnx", ("torch", "onnx", "onnxscript", "onnxruntime")),
        "from-keras.md": Page(
            "keras,test", ("tensorflow-cpu", "keras", "tflite-micro", "ai-edge-litert")
        ),
        "from-scikit-learn.md": Page("onnx", ("scikit-learn", "skl2onnx", "onnx", "onnxruntime")),
        "from-tflite-micro.md": Page("test", ("tflite-micro",), array_of_tflite_micro),
    }
)


def digest(name: str) -> str:
    """Return the SHA-256 of what is executed of a page: its blocks, and their order."""
    total = hashlib.sha256()
    for part in (
        part for block in follow.blocks((DOCS / name).read_text("utf-8")) for part in block
    ):
        total.update(len(part.encode()).to_bytes(8, "little") + part.encode())
    return total.hexdigest()


def environment(name: str, page: Page) -> Path:
    """Return the interpreter of a page's environment, creating it if it is missing."""
    folder = _ENVIRONMENTS / Path(name).stem
    python = folder / "bin" / "python"
    if not python.exists():
        subprocess.run([sys.executable, "-m", "venv", folder], check=True)
    subprocess.run(
        [python, "-m", "pip", "install", "--quiet", "--editable", f"{ROOT}[{page.extras}]"],
        check=True,
    )
    return python


def versions(python: Path, packages: Sequence[str]) -> dict[str, str]:
    """Return the versions of packages in an environment, and that of its Python."""
    script = (
        "import json, platform, sys; from importlib.metadata import version; "
        "names = sys.argv[1:]; "
        "print(json.dumps({'python': platform.python_version(), **{n: version(n) for n in names}}))"
    )
    done = subprocess.run(
        [python, "-c", script, *packages], stdout=subprocess.PIPE, text=True, check=True
    )
    return dict(json.loads(done.stdout))


def execute(name: str) -> dict[str, object]:
    """Execute a page in a folder that has what its reader has, and return what is recorded."""
    page = PAGES[name]
    python = environment(name, page)
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        (folder / "examples").symlink_to(ROOT / "examples")
        page.prepare(folder)
        command = [str(python), str(follow.__file__), str(DOCS / name)]
        status = subprocess.run(command, cwd=folder, check=False).returncode
    sys.stdout.write(f"{name}: status {status}\n")
    return {"status": status, "blocks": digest(name), "versions": versions(python, page.packages)}


def main(arguments: Sequence[str] | None = None) -> int:
    """Execute pages, and record what came of them; status 1 if one failed."""
    parser = argparse.ArgumentParser(prog="python -m tests.journeys.pages")
    parser.add_argument("pages", nargs="*", metavar="PAGE", help="default: every page")
    parser.add_argument("--record", action="store_true")
    options = parser.parse_args(arguments)
    results = {name: execute(name) for name in options.pages or PAGES}
    if options.record:
        before = json.loads(RECORDED.read_text("utf-8")) if RECORDED.exists() else {}
        RECORDED.write_text(json.dumps({**before, **results}, indent=1) + "\n", "utf-8")
    return int(any(result["status"] for result in results.values()))


if __name__ == "__main__":
    sys.exit(main())
