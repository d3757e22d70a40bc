"""Kernels that move elements mean what the reference says, run by the interpreter of TIR."""

from __future__ import annotations

import numpy as np
import pytest

from microtir.dtype import DType
from microtir.graph.ir import Node
from microtir.kernels import emit
from microtir.kernels.common.moves import Moves
from microtir.kernels.table import KERNELS, kernels_of
from microtir.memory.footprint import Footprints
from microtir.operators.movement.definition import Concatenation, Pad, Transpose
from microtir.operators.resize.definition import ResizeNearestNeighbor
from microtir.plan.ir import IN_ONE_CALL, Layout, PlannedOperator
from microtir.rewrite.reference.evaluate import evaluate
from microtir.tir.analysis.access import prove_accesses
from microtir.tir.function import LayerName
from microtir.tir.interpreter import Interpreter
from microtir.tir.verify import verify
from tests.support.graphs import constant, node, quant, tensor
from tests.support.moving_cases import moving
from tests.support.operator_cases import OPERATORS, generate

NAMES = tuple(kernel.name for kernel in KERNELS if isinstance(kernel, Moves))


def check(layer: Node, name: str, seed: int = 0) -> bool:
    """Compare a kernel with the reference; says whether it takes the layer."""
    kernel = next((k for k in kernels_of(layer) if k.name == name), None)
    if kernel is None:
        return False
    rng = np.random.default_rng(seed)
    tensors = (*layer.activations, *layer.outputs)
    layouts = {t: Layout.whole(t.type) for t in tensors}
    function = emit(PlannedOperator(layer, kernel.candidate(layer)), layouts, LayerName("layer"))
    verify(function)
    prove_accesses(function)
    values = {
        t: np.asarray(rng.integers(-99, 99, t.shape)).astype(t.dtype.value)
        if t.data is None else t.data
        for t in layer.inputs
    }  # fmt: skip
    outputs = [np.zeros(t.shape, t.dtype.value) for t in layer.outputs]
    Interpreter([function]).run(
        "layer", [*(values[t] for t in dict.fromkeys(layer.activations)), *outputs]
    )
    for got, want in zip(outputs, evaluate(layer, [values[t] for t in layer.inputs]), strict=True):
        np.testing.assert_array_equal(got, want)
    return True


@pytest.mark.parametrize("name", NAMES)
def test_layers_of_int8(name: str) -> None:
    """Runs of every length, of one input and of several."""
    assert sum(check(moving(seed).graph.nodes[0], name) for seed in range(60)) > 50


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("dtype", ["int8", "float32"])
def test_random_operators(name: str, dtype: str) -> None:
    """Of every operator that moves, some layers."""
    taken = [
        check(layer, name)
        for operator in ("PADV2", "MIRROR_PAD", "TILE", "SPLIT_V", "UNPACK", "PACK", "GATHER")
        if operator in OPERATORS
        for seed in range(4)
        for layer in generate(operator, seed, dtype).graph().nodes
    ]
    assert sum(taken) >= 16


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("dtype", [DType.INT16, DType.INT32, DType.INT64, DType.BOOL])
def test_types_of_other_widths(name: str, dtype: DType) -> None:
    """Elements of two bytes and more, gathered and in runs."""
    x, y = tensor("x", (1, 5, 4, 3), dtype), tensor("y", (1, 3, 5, 4), dtype)
    assert check(node(Transpose((0, 3, 1, 2)), [x], [y]), name)
    twice = tensor("y", (1, 10, 8, 3), dtype)
    assert check(node(ResizeNearestNeighbor(False, False), [x], [twice]), name)


@pytest.mark.parametrize("name", NAMES)
def test_constants_stand_beside_activations(name: str) -> None:
    """A part that is known, and one that is there twice."""
    values = np.arange(12, dtype=np.int8).reshape(1, 2, 2, 3)
    x, known = tensor("x", (1, 2, 2, 3), DType.INT8, quant(0.1)), constant("c", values, quant(0.1))
    y = tensor("y", (1, 2, 2, 9), DType.INT8, quant(0.1))
    assert check(node(Concatenation(3), [x, known, x], [y]), name)


@pytest.mark.parametrize("name", NAMES)
def test_an_axis_has_many_short_runs(name: str) -> None:
    """More runs than an addition has as its constant: of these only steps are added."""
    shape = 1, 1, 5000, 3
    x, y = tensor("x", shape, DType.INT8), tensor("y", (1, 1, 3, 5000), DType.INT8)
    layer = node(Transpose((0, 1, 3, 2)), [x], y)
    assert check(layer, name)
    costs = {k.name: k.candidate(layer).cost(IN_ONE_CALL) for k in kernels_of(layer)}
    assert costs["runs_dsp"].instructions < 2.1 * 15_000  # 2.06 an element on QEMU


@pytest.mark.parametrize(("name", "channels", "counted"), [
    ("runs_dsp", 3, 171), ("runs_dsp", 12, 471), ("runs_dsp", 20, 872), ("runs_dsp", 64, 2646),
    ("runs_mve", 7, 201), ("runs_mve", 12, 339), ("runs_mve", 16, 182), ("runs_mve", 33, 554),
])  # fmt: skip
def test_borders_cost_what_was_counted(name: str, channels: int, counted: int) -> None:
    """A border of one pixel around 5x7: an emulated Cortex-M4 and M55 counted these."""
    x, y = (tensor(n, (1, *image, channels), DType.INT8, quant(0.1))
            for n, image in (("x", (5, 7)), ("y", (7, 9))))  # fmt: skip
    layer = node(Pad((0, 1, 1, 0), (0, 1, 1, 0), 3.0), [x], y)
    kernel = next(k for k in kernels_of(layer) if k.name == name)
    stated = kernel.candidate(layer).cost(IN_ONE_CALL).instructions
    assert stated == pytest.approx(counted, rel=0.05)


@pytest.mark.parametrize("name", NAMES)
def test_long_runs_are_copied_in_parts(name: str) -> None:
    """Loops count in 16 bits: more than 65,535 elements that follow each other."""
    parts = [tensor(f"x{n}", (1, 100_000 + n), DType.INT8, quant(0.1)) for n in range(2)]
    y = tensor("y", (1, 200_001), DType.INT8, quant(0.1))
    layer = node(Concatenation(1), parts, [y])
    kernel = next(k for k in kernels_of(layer) if k.name == name)
    boxes = kernel.boxes(layer) if isinstance(kernel, Moves) else ()
    assert sum(box.runs * box.run for box in boxes) == 200_001
    if name != "runs":
        assert max(box.run for box in boxes) < 1 << 16


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize(("rows", "turns"), [(256, 8), (259, 7), (257, 1)])
def test_inputs_are_read_in_turns(name: str, rows: int, turns: int) -> None:
    """As many as divide the rows and leave each input 512 bytes: outputs may lie over the rest."""
    parts = [
        tensor(f"x{n}", (1, rows, 1, c), DType.INT8, quant(0.1)) for n, c in enumerate((5, 27))
    ]
    y = tensor("y", (1, rows, 1, 32), DType.INT8, quant(0.1))
    layer = node(Concatenation(3), parts, [y])
    kernel = next(k for k in kernels_of(layer) if k.name == name)
    assert isinstance(kernel, Moves) and kernel.turns(layer)[0] == turns
    assert check(layer, name)


@pytest.mark.parametrize("name", NAMES)
def test_a_box_is_one_span_of_bytes(name: str) -> None:
    """Not one for each run: whoever checks placements compares every span with every other."""
    shapes = (1, 32, 32, 16), (1, 64, 64, 16)
    x, y = (tensor(n, s, DType.INT8, quant(0.1)) for n, s in zip("xy", shapes, strict=True))
    layer = node(ResizeNearestNeighbor(False, False), [x], [y])
    kernel = next(k for k in kernels_of(layer) if k.name == name)
    layouts = {t: Layout.whole(t.type) for t in (x, y)}
    function = emit(PlannedOperator(layer, kernel.candidate(layer)), layouts, LayerName("layer"))
    (spans,) = Footprints().of(function, ())
    elements = 4  # that a turn of the innermost loop in C copies one by one
    assert len(spans) <= 2 * elements
