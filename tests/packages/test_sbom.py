"""The bill of materials of projects and packages, read as its reader reads it."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import pytest

import microtir
from microtir import packages, projects
from microtir.artifact import SBOM_FILE
from scripts.release import sbom
from tests.support.board_projects import digits
from tests.support.command import INT8


def _written(kind: str, folder: Path) -> Path:
    if kind == "project":
        return projects.generate(digits("c"), "mps2_an386", "baremetal", folder).folder
    packages.generate(digits("c"), kind, folder, options=packages.PackageOptions(licence="MIT"))
    return folder


def _bill(folder: Path) -> dict[str, Any]:
    bill: dict[str, Any] = json.loads((folder / SBOM_FILE).read_text("utf-8"))
    return bill


@pytest.mark.parametrize("kind", ["project", "arduino", "cmsis-pack", "single-header"])
def test_every_file_is_listed_with_its_digest(kind: str, tmp_path: Path) -> None:
    """Files, digests and the code of the package are those of the folder; nothing else is there."""
    folder = _written(kind, tmp_path / "made")
    bill = _bill(folder)
    files = [path for path in folder.rglob("*") if path.is_file() and path.name != SBOM_FILE]
    assert {
        file["fileName"]: {row["algorithm"]: row["checksumValue"] for row in file["checksums"]}
        for file in bill["files"]
    } == {
        f"./{path.relative_to(folder).as_posix()}": {
            "SHA1": hashlib.sha1(path.read_bytes()).hexdigest(),
            "SHA256": hashlib.sha256(path.read_bytes()).hexdigest(),
        }
        for path in files
    }
    sums = sorted(hashlib.sha1(path.read_bytes()).hexdigest() for path in files)
    code = hashlib.sha1("".join(sums).encode()).hexdigest()
    whole = bill["packages"][0]
    assert whole["packageVerificationCode"] == {"packageVerificationCodeValue": code}
    assert whole["licenseDeclared"] == ("NOASSERTION" if kind == "project" else "MIT")


def test_the_model_and_the_compiler_are_named(tmp_path: Path) -> None:
    """The file of the model has the digest of its bytes; every identifier exists."""
    bill = _bill(_written("rust", tmp_path / "made"))
    _, compiler, model = bill["packages"]
    assert (compiler["name"], compiler["versionInfo"]) == ("microtir", microtir.__version__)
    digest = hashlib.sha256(INT8.read_bytes()).hexdigest()
    assert model["name"] == INT8.name
    assert model["checksums"] == [{"algorithm": "SHA256", "checksumValue": digest}]
    known = {"SPDXRef-DOCUMENT"} | {
        element["SPDXID"] for kind in ("packages", "files") for element in bill[kind]
    }
    relations = {
        (row["spdxElementId"], row["relationshipType"], row["relatedSpdxElement"])
        for row in bill["relationships"]
    }
    assert {end for first, _, last in relations for end in (first, last)} <= known
    assert relations == {
        ("SPDXRef-DOCUMENT", "DESCRIBES", "SPDXRef-Bundle"),
        ("SPDXRef-microtir", "BUILD_TOOL_OF", "SPDXRef-Bundle"),
        ("SPDXRef-Bundle", "GENERATED_FROM", "SPDXRef-Model-0"),
    }


def test_equal_files_have_equal_bills(tmp_path: Path) -> None:
    """Two projects of one model differ in nothing; another name gives another identifier."""
    one, two = (_written("project", tmp_path / name) for name in ("one", "two"))
    assert (one / SBOM_FILE).read_bytes() == (two / SBOM_FILE).read_bytes()
    other = _written("rust", tmp_path / "other")
    assert _bill(one)["documentNamespace"] != _bill(other)["documentNamespace"]


def test_the_bill_of_the_wheel_is_up_to_date() -> None:
    """`python -m scripts.release.sbom` renews it after a change of dependencies or version."""
    assert (sbom.ROOT / sbom.FILE).read_text("utf-8") == sbom.text()
