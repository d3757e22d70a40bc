"""FULLY_CONNECTED reads its input as rows as long as those of the weights, however it is shaped."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

import microtir
from microtir import CompilationConfig
from microtir.dtype import DType
from microtir.graph.ir import Graph
from microtir.module.ir_module import IRModule
from microtir.operators.dense.definition import FullyConnected
from microtir.rewrite.reference import execute
from microtir.tir.interpreter import Interpreter
from microtir.tir.ir import Buffer
from tests.support.graphs import constant, graph, node, quant, tensor

SHAPES = [
    ((8, 4), (5, 32), (1, 5)),
    ((4, 8), (5, 16), (2, 5)),
    ((3, 8), (5, 4), (6, 5)),
    ((2, 3, 4), (5, 12), (2, 5)),
    ((), (5, 1), (1, 5)),
    ((4,), (5, 4), (5,)),
]


def dense(x: Sequence[int], w: Sequence[int], y: Sequence[int]) -> Graph:
    """A fully connected layer of int8 with these shapes."""
    rng = np.random.default_rng(3)
    features = tensor("x", x, DType.INT8, quant(0.1, 3))
    weights = constant("w", rng.integers(-127, 128, tuple(w)).astype(np.int8), quant(0.02))
    result = tensor("y", y, DType.INT8, quant(0.3, -5))
    return graph([node(FullyConnected(), [features, weights], result)], [features], [result])


@pytest.mark.parametrize("optimize", ["speed", "balanced", "ram", "flash"])
@pytest.mark.parametrize(("x", "w", "y"), SHAPES)
def test_rows_of_the_weights_need_not_be_those_of_the_input(
    x: Sequence[int], w: Sequence[int], y: Sequence[int], optimize: str
) -> None:
    """Joined, cut and single rows, for every goal; (8, 4) by weights (5, 32) was a TirError."""
    made = dense(x, w, y)
    for target in ("c", "c -mcpu=cortex-m4", "c -mcpu=cortex-m55"):
        config = CompilationConfig(targets=target, optimize=optimize)
        lowered = microtir.lower(IRModule(graph=made).with_configuration(config))
        if target == "c":
            data = np.random.default_rng(1).integers(-128, 128, tuple(x)).astype(np.int8)
            main = lowered.functions[-1]
            _, *rest = (p for p in main.params if isinstance(p, Buffer))
            arrays = [np.zeros(extents(p), p.dtype.value) for p in rest]
            Interpreter(lowered.functions).run(main.name, [data, *arrays])
            np.testing.assert_array_equal(arrays[0], execute(made, {"x": data})["y"])


def extents(buffer: Buffer) -> tuple[int, ...]:
    """The shape of an array that main takes."""
    return tuple(extent for extent in buffer.shape if isinstance(extent, int))
