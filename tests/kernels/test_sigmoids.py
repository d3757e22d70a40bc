"""LOGISTIC and TANH of int16 on lines: every value, at scales of every kind."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import microtir
from microtir import CompilationConfig, Target
from microtir.dtype import DType
from microtir.graph.ir import Graph
from microtir.module.ir_module import IRModule
from microtir.operators.activations.definition import Logistic, Tanh
from microtir.rewrite.reference import execute
from tests.support.batch import load_batch
from tests.support.graphs import node, quant, tensor

ALL = np.arange(-(1 << 15), 1 << 15).astype(np.int16).reshape(1, 256, 256)
# Exact powers of two, neighbours of these, and scales with shifts from none to many.
SCALES = (2**-12, 2**-11, 2**-12 * 1.0005, 2**-10, 0.9, 0.05, 0.0003, 1e-5, 3e-8)


def bent(op: Logistic | Tanh, scale: float) -> Graph:
    """A function of every int16."""
    x = tensor("x", ALL.shape, DType.INT16, quant(float(np.float32(scale)), 0))
    y = tensor("y", ALL.shape, DType.INT16, quant(2**-15, 0))
    return Graph("sigmoid", (x,), (y,), (node(op, (x,), y),))


@pytest.mark.parametrize("op", [Logistic(), Tanh()])
def test_every_value_is_that_of_the_reference(op: Logistic | Tanh, tmp_path: Path) -> None:
    """Lines of both signs give what a table of one sign does, where they saturate, too."""
    config = CompilationConfig.from_target(Target("c -mcpu=cortex-m4"))
    graphs = [bent(op, scale) for scale in SCALES]
    artifacts = [
        microtir.build(IRModule(graph=graph), config.with_(module_name=f"sigmoid_{number}"))
        for number, graph in enumerate(graphs)
    ]
    for number, (graph, model) in enumerate(
        zip(graphs, load_batch(artifacts, tmp_path), strict=True)
    ):
        plan = artifacts[number].module.require_program("test").plan
        assert [o.candidate.kernel for o in plan.operators] == ["sigmoid_s16_1x2_dsp"]
        want = execute(graph, {"x": ALL})["y"]
        np.testing.assert_array_equal(model.run({"x": ALL})["y"], want, err_msg=str(SCALES[number]))
