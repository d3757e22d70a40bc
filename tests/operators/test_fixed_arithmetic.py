"""Arithmetic of int8 in fixed point: short forms equal the meaning for every pair of elements."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from microtir import CompilationConfig, build
from microtir.dtype import DType
from microtir.graph.ir import Graph, Node, Quantization, SourceLocation, Tensor, TensorType
from microtir.graph.operator import Operator
from microtir.module.ir_module import IRModule
from microtir.operators.activations.definition import Prelu
from microtir.operators.arithmetic.definition import Add, Mul, SquaredDifference, Sub
from microtir.operators.arithmetic.fixed_form import sum_form
from microtir.operators.arithmetic.tabled_formula import table_of
from microtir.operators.common.attributes import Activation
from microtir.rewrite.reference import execute
from tests.support.batch import load_batch

STORED = np.arange(-128, 128).astype(np.int8)
SHAPES = {
    "equal": ((256, 256), (256, 256)),
    "column": ((256, 256), (256, 1)),
    "channels": ((1, 256), (256, 256)),
    "outer": ((1, 256), (256, 1)),
    "inner": ((1, 4, 64, 256), (1, 4, 64, 1)),
    "middle": ((1, 256, 1, 256), (1, 256, 3, 1)),
}
"""Shapes of both inputs; their elements, broadcast, are all pairs."""

EDGES = 19
"""How many of the cases stand before the random ones."""

Case = tuple[Operator, tuple[float, float, float], tuple[int, int, int], str]


def graph_of(op: Operator, scales: tuple[float, ...], zeros: tuple[int, ...], how: str) -> Graph:
    """A graph of one operator; scales and zero points are of both inputs and the output."""
    shapes = (*SHAPES[how], np.broadcast_shapes(*SHAPES[how]))
    x, y, z = (
        Tensor(
            name,
            TensorType(shape, DType.INT8, Quantization((float(np.float32(scale)),), (zero,))),
        )
        for name, shape, scale, zero in zip("xyz", shapes, scales, zeros, strict=True)
    )
    node = Node(op, (x, y), (z,), "layer", SourceLocation("made", 0, "OP"))
    return Graph("pairs", (x, y), (z,), (node,))


def inputs_of(how: str) -> dict[str, np.ndarray[tuple[int, ...], np.dtype[np.int8]]]:
    """All stored elements along the axis of each input, repeated along the others."""
    first, second = SHAPES[how]
    if how == "channels":
        return {"x": STORED.reshape(first), "y": np.repeat(STORED, 256).reshape(second)}
    if how == "middle":
        columns = np.repeat(STORED, 3).reshape(second)
        return {"x": np.tile(STORED, 256).reshape(first), "y": columns}
    x = np.tile(STORED, int(np.prod(first)) // 256).reshape(first)
    return {"x": x, "y": np.repeat(STORED, int(np.prod(second)) // 256).reshape(second)}


def cases() -> list[Case]:
    """Scales whose results end half way between integers, extremes, and random ones."""
    found: list[Case] = [
        (Add(), (0.5, 0.5, 1.0), (0, 0, 0), "equal"),
        (Add(), (0.5, 0.25, 1.0), (-3, 7, 5), "column"),
        (Sub(), (0.5, 0.5, 1.0), (127, -128, 0), "channels"),
        (Mul(), (0.5, 0.5, 1.0), (0, 3, -128), "outer"),
        (Mul(), (0.5, 0.5, 0.25), (-128, 127, 127), "equal"),
        (Mul(), (0.5, 0.5, 0.125), (0, 0, 0), "column"),
        (Mul(), (0.5, 0.5, 16384.0), (-128, 127, 127), "column"),
        (SquaredDifference(), (0.25, 0.25, 0.5), (5, -5, -128), "inner"),
        (SquaredDifference(), (0.25, 0.125, 64.0), (-128, 127, -128), "equal"),
        (SquaredDifference(), (0.5, 0.03, 0.0625), (-128, 127, 3), "middle"),
    ]
    decimal, zeros = (0.05, 0.04), (-3, 5, -7)
    found += [
        (Add(), (*decimal, 0.08), zeros, "equal"),
        (Add(Activation.RELU), (*decimal[::-1], 0.08), zeros, "column"),
        (Sub(), (*decimal, 0.08), zeros, "channels"),
        (Sub(Activation.RELU6), (*decimal[::-1], 0.04), (-128, 127, -100), "inner"),
        (SquaredDifference(), (*decimal, 0.4), zeros, "equal"),
        (SquaredDifference(), (*decimal[::-1], 0.02), (127, -128, -128), "outer"),
    ]
    found += [
        (Prelu(), (0.05, 0.01, 0.05), zeros, "equal"),
        (Prelu(), (0.0321, 0.0123, 0.0173), (-128, 127, 127), "column"),
        (Prelu(), (0.0625, 0.25, 0.03125), (127, -128, -128), "equal"),
    ]
    rng = np.random.default_rng(0)
    for number in range(20):
        how = list(SHAPES)[number % len(SHAPES)]
        first, second = np.exp(rng.uniform(-6, -2, 2)).tolist()
        activation = list(Activation)[number % len(Activation)]
        op, output = (
            (Add(activation), max(first, second) * rng.uniform(0.3, 3)),
            (Sub(activation), max(first, second) * rng.uniform(0.3, 3)),
            (Mul(activation), first * second * np.exp(rng.uniform(-1, 6))),
            (SquaredDifference(), max(first, second) ** 2 * np.exp(rng.uniform(-1, 6))),
        )[number % 4]
        zeros = rng.integers(-128, 128, 3).tolist()
        found.append((op, (first, second, output), (zeros[0], zeros[1], zeros[2]), how))
    return found


@pytest.mark.tools
@pytest.mark.parametrize("optimize", ["speed", "flash"])
def test_compiled_operators_equal_the_meaning(optimize: str, tmp_path: Path) -> None:
    """For all pairs of stored elements, of every way to broadcast, with tables and without."""
    graphs = [graph_of(*case) for case in cases()]
    config = CompilationConfig(targets="c -mcpu=cortex-m4", optimize=optimize)
    artifacts = [
        build(IRModule(graph=graph), config.with_(module_name=f"case_{number}"))
        for number, graph in enumerate(graphs)
    ]
    for case, graph, model in zip(cases(), graphs, load_batch(artifacts, tmp_path), strict=True):
        inputs = inputs_of(case[3])
        (want,) = execute(graph, inputs).values()
        (got,) = model.run(inputs).values()
        np.testing.assert_array_equal(got, want, err_msg=str(case))


def test_sums_take_32_bits() -> None:
    """Two products, a sum and a shift are what an element takes, but where results are ties."""
    forms = [
        sum_form(graph_of(*case).nodes[0])
        for case in cases()[EDGES:]
        if isinstance(case[0], Add | Sub)
    ]
    assert len(forms) == 10
    assert all(form is not None and not form.is_wide for form in forms)


def test_tables_hold_what_rounding_decides() -> None:
    """Scales of few digits have one, unless a form or a line gives all that is rounded, too."""
    tabled = [table_of(graph_of(*case).nodes[0]) for case in cases()[10:16]]
    assert [table and table.position for table in tabled] == [1, 0, 1, None, 1, None]
