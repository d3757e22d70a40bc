"""The folder of `microtir evidence`: complete, traceable, and safe to open."""

from __future__ import annotations

import csv
import hashlib
import json
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path

import pytest

from microtir import build
from microtir.artifact import Artifact
from microtir.config import Target
from microtir.evidence import evidence_of
from microtir.evidence.matrix import matrix_part, trace
from microtir.evidence.operator_tests import recorded_tests
from microtir.module.ir_module import IRModule
from tests.layering.source import ROOT
from tests.support.command import INT8, Command
from tests.support.small_models import quantised_graph
from tests.where import index


def _small() -> Artifact:
    return build(IRModule(graph=quantised_graph()), Target("c"))


def test_the_folder_is_complete(microtir: Command, tmp_path: Path) -> None:
    """Every file is in the bill of materials with its digest, and the index names it."""
    folder = tmp_path / "evidence"
    done = microtir("evidence", INT8, "--target", "c", "-o", folder, "--json")
    assert done.status == 0, done.err
    facts = json.loads(done.out)
    assert facts["parts"]["check"] == {"result": "proven", "holds": True}
    written = {p.relative_to(folder).as_posix() for p in folder.rglob("*") if p.is_file()}
    assert written == set(facts["files"])
    bill = json.loads((folder / "sbom.spdx.json").read_bytes())
    listed = {file["fileName"].removeprefix("./"): file["checksums"] for file in bill["files"]}
    assert written - set(listed) == {"sbom.spdx.json", "README.md"}
    for path, checksums in listed.items():
        digests = {one["algorithm"]: one["checksumValue"] for one in checksums}
        assert digests["SHA256"] == hashlib.sha256((folder / path).read_bytes()).hexdigest()
    readme = (folder / "README.md").read_text("utf-8")
    assert all(f"`{path.split('/')[0]}" in readme for path in written - {"README.md"})
    again = microtir("evidence", INT8, "--target", "c", "-o", folder)
    assert "not empty" in again.diagnostic


def test_the_matrix_leads_to_the_code() -> None:
    """Each function of a row is defined in its lines, and every operator has a row."""
    artifact = _small()
    source = artifact.source("default.c").splitlines()
    rows = trace(artifact)
    assert [row.operator for row in rows] == ["CONV_2D", "RESHAPE", "FULLY_CONNECTED"]
    for row in rows:
        if row.c_function:
            first, last = map(int, row.lines.split("-"))
            text = "\n".join(source[first - 1 : last])
            assert f" {row.c_function}(" in text and text.endswith("}")
            assert row.c_function.endswith(row.tir_function)
            assert row.file == "c/default.c"
    assert rows[1].note == "no function: between operators 0 and 2"


class _Tags(HTMLParser):
    """Collects the tags of a page, and its text."""

    def __init__(self) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.text = ""

    def handle_starttag(self, tag: str, attrs: object) -> None:
        self.tags.add(tag)

    def handle_data(self, data: str) -> None:
        self.text += data


@pytest.mark.parametrize(
    "name", ['</td><script>alert("1")</script>', '=HYPERLINK("http://a")', '@a,b\n"c"', "\udc80"]
)
def test_hostile_names_are_text(name: str) -> None:
    """Names of tensors are neither tags of the page nor formulas of a spreadsheet."""
    graph = quantised_graph()
    named = replace(graph.nodes[0], name=name)
    artifact = build(IRModule(graph=replace(graph, nodes=(named, *graph.nodes[1:]))), Target("c"))
    files = matrix_part(artifact).files
    page = _Tags()
    page.feed(files["matrix.html"].decode())
    assert "script" not in page.tags
    shown = name.encode(errors="backslashreplace").decode()
    assert shown in page.text
    cells = list(csv.DictReader(files["matrix.csv"].decode().splitlines(keepends=True)))
    formula = name.startswith(("=", "@"))
    assert cells[0]["name"] == ("'" if formula else "") + shown


def test_named_tests_execute_the_operator() -> None:
    """What the record says is still so, and it knows every operator of model files.

    `python -m tests.where --record` writes it anew.
    """
    for operator in index().known:
        answer = index().answer(operator)
        for name in operator.tflite | operator.onnx:
            recorded = set(recorded_tests(name))
            assert recorded, name
            assert recorded <= {*answer.tables, *answer.tests}, name
            assert all((ROOT / path).is_file() for path in recorded)
    assert recorded_tests("NO_OPERATOR") == ()


def test_what_is_left_out_is_named() -> None:
    """The index says which parts were left out on request."""
    found = evidence_of(_small(), without=("check", "misra"))
    assert "certificate-check.txt" not in found.files
    assert "left out on request: check, misra" in found.files["README.md"].decode()


def test_wrong_requests_are_refused(microtir: Command, tmp_path: Path) -> None:
    """There is a folder to write to, and parts have names."""
    assert "add -o DIR" in microtir("evidence", INT8).diagnostic
    wrong = microtir("evidence", INT8, "-o", tmp_path / "e", "--without", "checks")
    assert "check" in wrong.diagnostic and not (tmp_path / "e").exists()


def test_missing_programs_are_named(
    microtir: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All that is missing is named at once with its package, and nothing is written."""
    monkeypatch.setenv("PATH", str(tmp_path))
    missing = microtir("evidence", INT8, "-o", tmp_path / "e")
    assert missing.status == 3
    assert "not on this machine: gcc, gcov, cppcheck" in missing.diagnostic
    assert (
        "apt install gcc cppcheck" in missing.diagnostic
        and "--without coverage" in missing.diagnostic
    )
    assert not (tmp_path / "e").exists()
