"""Coverage of generated C by gcov: lines that ran, lines that did not, and right outputs."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from microtir import build
from microtir.artifact import Artifact, SourceFile
from microtir.certificate import certified
from microtir.config import CompilationConfig, Target
from microtir.dtype import DType
from microtir.evidence.coverage import coverage_part
from microtir.frontend import from_tflite
from microtir.module.ir_module import IRModule
from microtir.operators.movement.definition import Reshape
from microtir.support.resources import example
from tests.support.graphs import graph, node, tensor
from tests.support.small_models import quantised_graph

pytestmark = pytest.mark.tools


def _coverage(artifact: Artifact) -> str:
    part, versions = coverage_part(certified(artifact))
    assert part.holds and set(versions) == {"gcc", "gcov"}
    return part.files["coverage.md"].decode()


def test_lines_that_no_vector_reaches_are_listed() -> None:
    """All of a layer runs, and the checks of arguments do not; the text of each line is that."""
    artifact = build(from_tflite(example("digits/digits_int8.tflite")), Target("c"))
    page = _coverage(artifact)
    source = artifact.source("digits_int8.c").splitlines()
    rows = [line.split(" | ") for line in page.splitlines() if line.startswith("| digits_int8.c")]
    missed = {row[1].strip("`"): int(row[3]) for row in rows}
    layers = [layer.function for layer in artifact.metadata.layers]
    assert [missed[function] for function in layers] == [0] * len(layers)
    assert missed["digits_int8_run"] == 3
    listed = [line.split(": ", 1)[1] for line in page.splitlines() if line.startswith("    not ")]
    assert "return DIGITS_INT8_ERROR_NULL_POINTER;" in "".join(listed)
    for line in listed:
        _, number, text = line.split(":", 2)
        assert source[int(number) - 1].strip() == text.strip()


def test_runs_with_the_runtime_are_counted() -> None:
    """The graph executor's files of the runtime have rows, too."""
    config = CompilationConfig.from_target(Target("c")).with_(executor="graph")
    artifact = build(IRModule(graph=quantised_graph()), config)
    assert "| runtime_crt/src/graph.c |" in _coverage(artifact)


@pytest.mark.model("exported/lstm_fused_int8")
def test_runs_of_a_model_with_states_are_counted(models_dir: Path) -> None:
    """Callers give no values to states: runs begin with the first state, and go on from there."""
    artifact = build(from_tflite(models_dir / "exported" / "lstm_fused_int8.tflite"), Target("c"))
    assert "`lstm_fused_int8_state_init`" in _coverage(artifact)


def test_wrong_outputs_are_seen() -> None:
    """C that computes something else than the reference does not hold."""
    artifact = certified(build(from_tflite(example("digits/digits_int8.tflite")), Target("c")))
    name = "digits_int8.c"
    text = artifact.source(name)
    wrong = text.replace("sum1 += value * w1;", "sum1 += value * w0;")
    assert wrong != text
    changed = tuple(
        SourceFile(name, wrong) if file.path == name else file for file in artifact.sources
    )
    part, _ = coverage_part(replace(artifact, sources=changed))
    assert not part.holds and "outputs differ" in part.result


def test_types_without_a_rule_are_not_measured() -> None:
    """Inputs of int32 have no rule in the certificate: the page says so."""
    x, y = tensor("x", (2, 3), DType.INT32), tensor("y", (6,), DType.INT32)
    artifact = build(IRModule(graph=graph([node(Reshape(), (x,), y)], [x], [y])), Target("c"))
    part, _ = coverage_part(certified(artifact))
    assert not part.holds and part.result == (
        "not measured: the certificate has no rule for inputs of int32"
    )
