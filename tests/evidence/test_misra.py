"""MISRA C:2012 of generated code: what the addon finds has a reason, and reasons are needed."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from pathlib import Path

import pytest

from microtir import build
from microtir.artifact import Artifact, SourceFile
from microtir.config import Target
from microtir.evidence.misra import RUNTIME, Finding, deviations, findings, misra_part
from microtir.module.ir_module import IRModule
from tests.support.models_of_kinds import MARKS, MODELS, digits, of_file
from tests.support.small_models import quantised_graph

pytestmark = pytest.mark.tools


@cache
def _small() -> tuple[Artifact, list[Finding]]:
    """Return the C of layers of integers for any CPU, and what is found in it."""
    artifact = build(IRModule(graph=quantised_graph()), Target("c"))
    return artifact, findings(artifact, "cppcheck")


def _unreasoned(artifact: Artifact) -> list[Finding]:
    places = findings(artifact, "cppcheck")
    assert places
    return [one for one in places if one.rule not in deviations(one.file)]


def test_all_that_is_found_has_a_reason() -> None:
    """Layers of integers for any CPU, and for one with kernels of its own."""
    _, places = _small()
    assert places and all(one.rule in deviations(one.file) for one in places)
    assert _unreasoned(digits("cortex-m4")) == []


@pytest.mark.model("exported/control_if_float32", "exported/lstm_fused_int8")
@pytest.mark.parametrize("name", ["control_if_float32", "lstm_fused_int8"])
def test_what_is_found_in_models_has_a_reason(name: str, models_dir: Path) -> None:
    """Floats with branches, and integers with a state."""
    assert _unreasoned(of_file(models_dir / "exported" / f"{name}.tflite")) == []


@pytest.mark.soak_only
@pytest.mark.model(*MARKS)
def test_ten_models_need_each_deviation(models_dir: Path) -> None:
    """No rule is violated without a reason, and no reason is listed in vain."""

    def artifacts() -> Iterator[Artifact]:
        yield digits("c", "graph")
        yield from (of_file(models_dir / name) for name in MODELS)

    places = [one for artifact in artifacts() for one in findings(artifact, "cppcheck")]
    generated = {one.rule for one in places if not one.file.startswith(RUNTIME)}
    assert generated == set(deviations())
    runtime = {one.rule for one in places if one.file.startswith(RUNTIME)}
    assert runtime <= set(deviations(RUNTIME))


def test_the_page_has_the_deviations_of_the_model() -> None:
    """Each rule with its reason and its lines, and the function of a layer; no other rule."""
    artifact, places = _small()
    part, versions = misra_part(artifact)
    page = part.files["misra.md"].decode()
    rules = {one.rule for one in places}
    assert part.holds and versions["cppcheck"].startswith("Cppcheck")
    assert {line.split(" | ")[0][2:] for line in page.splitlines() if line[2:3].isdigit()} == rules
    assert all(deviations()[rule].reason in page for rule in rules)
    assert f"default.c `{artifact.metadata.layers[0].function}`: " in page


def test_a_rule_without_a_reason_is_named() -> None:
    """A violation that the table does not have makes the part fail."""
    artifact, _ = _small()
    loose = "int loose(int x)\n{\n    return x ? 1 : 2;\n}\n"
    text = f"{artifact.source('default.c')}\n{loose}"
    changed = tuple(
        SourceFile(file.path, text) if file.path == "default.c" else file
        for file in artifact.sources
    )
    part, _ = misra_part(replace(artifact, sources=changed))
    assert not part.holds and "without a reason: 8.4" in part.result
