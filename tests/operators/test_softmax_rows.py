"""SOFTMAX and LOG_SOFTMAX of int8 equal their meaning in rows of any length."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from microtir import CompilationConfig, build, lower
from microtir.dtype import DType
from microtir.graph.ir import Graph, Node, Quantization, SourceLocation, Tensor, TensorType
from microtir.module.ir_module import IRModule
from microtir.operators.softmax.definition import LogSoftmax, Softmax
from microtir.rewrite.reference import execute
from microtir.tir import ir
from microtir.tir.visitor import walk
from tests.support.batch import load_batch

ROWS = 40
LENGTHS = (1, 2, 3, 5, 7, 10, 13, 15, 17, 30, 32, 255, 256, 257, 300, 511, 512, 513, 1100)


def graph_of(op: Softmax | LogSoftmax, length: int, scale: float, zero_point: int) -> Graph:
    """A graph of one operator."""
    shape = (1, 2, ROWS // 2, length)
    own = Quantization((float(np.float32(scale)),), (zero_point,))
    fixed = (1 / 256, -128) if isinstance(op, Softmax) else (1 / 16, 127)
    x = Tensor("x", TensorType(shape, DType.INT8, own))
    y = Tensor("y", TensorType(shape, DType.INT8, Quantization((fixed[0],), (fixed[1],))))
    node = Node(op, (x,), (y,), "layer", SourceLocation("made", 0, "OP"))
    return Graph("rows", (x,), (y,), (node,))


@pytest.mark.tools
def test_rows_equal_the_meaning(tmp_path: Path) -> None:
    """Of random elements, of equal ones, and of one that is far above the others."""
    rng = np.random.default_rng(0)
    graphs = [
        graph_of(op, length, np.exp(rng.uniform(-6, 0)), int(rng.integers(-128, 128)))
        for length in LENGTHS
        for op in (Softmax(), LogSoftmax())
    ]
    config = CompilationConfig(targets="c -mcpu=cortex-m4")
    artifacts = [
        build(IRModule(graph=graph), config.with_(module_name=f"rows_{number}"))
        for number, graph in enumerate(graphs)
    ]
    for graph, model in zip(graphs, load_batch(artifacts, tmp_path), strict=True):
        x = rng.integers(-128, 128, graph.inputs[0].shape).astype(np.int8)
        x[:, 0, :10] = x[:, 0, :10, :1]
        x[:, 0, 10:] //= 8
        x[:, 1, :5] = -128
        x[:, 1, :5, -1] = 127
        (want,) = execute(graph, {"x": x}).values()
        (got,) = model.run({"x": x}).values()
        np.testing.assert_array_equal(got, want, err_msg=str(graph.nodes[0]))


@pytest.mark.parametrize("length", [10, 300])
@pytest.mark.parametrize("op", [Softmax(), LogSoftmax()])
def test_looked_up_powers_take_no_branch(op: Softmax | LogSoftmax, length: int) -> None:
    """A load stands under no condition, so that no compiler jumps around it."""
    config = CompilationConfig(targets="c -mcpu=cortex-m0")
    module = lower(IRModule(graph=graph_of(op, length, 0.2, 3), config=config))
    selects = [n for f in module.functions for n in walk(f) if isinstance(n, ir.Select)]
    assert not [s for s in selects if any(isinstance(n, ir.Load) for n in walk(s.then))]
