"""Sums and products that ONNX rescales in float32, of every pair of stored elements."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from microtir import CompilationConfig, build
from microtir.dtype import DType
from microtir.graph.ir import Graph, Node, Quantization, SourceLocation, Tensor, TensorType
from microtir.module.ir_module import IRModule
from microtir.operators.arithmetic.definition import Add, Mul, Sub
from microtir.operators.arithmetic.float_formula import form_of
from microtir.operators.common.arithmetic import RAISED
from microtir.operators.common.attributes import Activation, Rescaling
from microtir.rewrite.reference import execute
from tests.support.batch import load_batch

Binary = Add | Sub | Mul
Case = tuple[type[Binary], list[float], list[int], Activation]
Results = np.ndarray[tuple[int, ...], np.dtype[np.float32]]
FORMS: tuple[type[Binary], ...] = (Add, Sub, Mul)
X, Y = (np.ascontiguousarray(part) for part in np.meshgrid(
    np.arange(-128, 128, dtype=np.int8), np.arange(-128, 128, dtype=np.int8), indexing="ij"
))  # fmt: skip


def of_pairs(
    op: type[Binary], scales: list[float], zeros: list[int], activation: Activation
) -> Graph:
    """A graph of one operator on all pairs; scales and zero points are of inputs and output."""
    tensors = [
        Tensor(
            name,
            TensorType(X.shape, DType.INT8, Quantization((float(np.float32(scale)),), (zero,))),
        )
        for name, scale, zero in zip("xyz", scales, zeros, strict=True)
    ]
    chosen = op(activation=activation, rescaling=Rescaling.FLOAT32)
    node = Node(chosen, tuple(tensors[:2]), (tensors[2],), "layer", SourceLocation("made", 0, "OP"))
    return Graph("pairs", tuple(tensors[:2]), (tensors[2],), (node,))


def by_steps(graph: Graph) -> Results:
    """What the definition says: two real numbers, the operator, a clamp, a quotient, an integer."""
    (node,) = graph.nodes
    a, b, y = (t.type.quant for t in (*node.inputs, node.output))
    left = (X.astype(np.float32) - np.float32(a.zero_point)) * np.float32(a.scale)
    right = (Y.astype(np.float32) - np.float32(b.zero_point)) * np.float32(b.scale)
    assert isinstance(node.op, Add | Sub | Mul)
    function = {Add: np.add, Sub: np.subtract, Mul: np.multiply}[type(node.op)]
    real = np.clip(function(left, right), *map(np.float32, node.op.activation.real_range))
    stored: Results = np.clip(np.rint(real / np.float32(y.scale)) + y.zero_point, -128, 127)
    return stored


SCALES = st.floats(np.log(1e-3), np.log(0.2)).map(lambda log: float(np.exp(log)))
CASES = st.tuples(
    st.sampled_from(FORMS), st.lists(SCALES, min_size=3, max_size=3),
    st.lists(st.integers(-128, 127), min_size=3, max_size=3), st.sampled_from(Activation),
)  # fmt: skip


@settings(max_examples=60, deadline=None)
@given(CASES)
def test_the_meaning_is_that_of_the_steps(
    case: Case,
) -> None:
    """In numpy, and by the integers that are found: for all 65,536 pairs."""
    graph = of_pairs(*case)
    (got,) = execute(graph, {"x": X, "y": Y}).values()
    want = by_steps(graph)
    np.testing.assert_array_equal(got, want)
    form = form_of(graph.nodes[0])
    if form is None:
        return
    zeros = [t.type.quant.zero_point for t in graph.inputs]
    x, y = (part.astype(np.int64) - zero for part, zero in zip((X, Y), zeros, strict=True))
    total = form.first * x + form.second * y + form.product * x * y + form.offset
    assert form.is_wide or np.abs(total + (RAISED << form.bits)).max() < 1 << 31
    np.testing.assert_array_equal(np.clip(total >> form.bits, want.min(), want.max()), want)


EXACT_TIES: Case = (Add, [0.25, 0.25, 0.5], [0, 0, 0], Activation.NONE)


def test_what_ends_in_ties_is_computed_in_floats() -> None:
    """Of sums half way between two integers every other one goes up: no integers do that."""
    assert form_of(of_pairs(*EXACT_TIES).nodes[0]) is None
    others: Case = (Add, [0.0213467, 0.0341119, 0.0512391], [3, -4, 5], Activation.NONE)
    assert form_of(of_pairs(*others).nodes[0]) is not None


@pytest.mark.tools
def test_compiled_operators_equal_the_steps(tmp_path: Path) -> None:
    """In C, with integers of 32 and 64 bits and with floats."""
    rng = np.random.default_rng(0)
    cases: list[Case] = [
        EXACT_TIES,
        (Mul, [0.0213467, 0.0341119, 0.0912391], [3, -4, 5], Activation.RELU),
    ]
    for number in range(10):
        scales = np.exp(rng.uniform(-6, -2, 3)).tolist()
        zeros = rng.integers(-128, 128, 3).tolist()
        cases.append((FORMS[number % 3], scales, zeros, list(Activation)[number % 4]))
    graphs = [of_pairs(*case) for case in cases]
    forms = [form_of(graph.nodes[0]) for graph in graphs]
    assert {form.is_wide if form else None for form in forms} == {False, True, None}
    config = CompilationConfig(targets="c -mcpu=cortex-m4")
    artifacts = [
        build(IRModule(graph=graph), config.with_(module_name=f"case_{number}"))
        for number, graph in enumerate(graphs)
    ]
    for graph, model in zip(graphs, load_batch(artifacts, tmp_path), strict=True):
        (got,) = model.run({"x": X, "y": Y}).values()
        np.testing.assert_array_equal(got, by_steps(graph))
