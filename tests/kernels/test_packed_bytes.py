"""The bytes of constants that kernels state are those of the constants in their functions."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np
import pytest

from microtir.config import CompilationConfig, PassConfig
from microtir.dtype import DType
from microtir.frontend import from_tflite
from microtir.graph.ir import Node
from microtir.graph.operator import Operator
from microtir.kernels import candidates
from microtir.kernels.table import kernels_of
from microtir.operators.arithmetic.definition import Add, SquaredDifference, Sub
from microtir.operators.reduction.definition import Mean
from microtir.rewrite.checked import rewritten
from microtir.rewrite.optimise import GRAPH_PASSES
from tests.kernels.test_interleave import planes
from tests.support import dsp_cases
from tests.support.block_dense_cases import block_dense
from tests.support.dsp_cases import DspCase
from tests.support.elementwise_cases import arithmetic, elementwise, of_floats, rescaled
from tests.support.float_edge_cases import float_edge
from tests.support.graphs import constant, node, quant, tensor
from tests.support.kernel_cases import found
from tests.support.operator_cases import OPERATORS, RECURRENT, generate
from tests.support.packed_bytes import emitted_bytes
from tests.support.reduced_cases import reduced
from tests.support.resize_cases import resized
from tests.support.seeds import seeds

WEIGHTED: dict[str, Callable[[int], DspCase]] = {
    "convolution": dsp_cases.convolution,
    "pointwise": partial(dsp_cases.convolution, pointwise=True),
    "depthwise": partial(dsp_cases.convolution, depthwise=True),
    "square": partial(dsp_cases.convolution, depthwise=True, square=True),
    "whole": dsp_cases.whole_depthwise,
    "grouped": dsp_cases.grouped,
    "tiles": dsp_cases.tiled,
    "dense": dsp_cases.fully_connected,
}
OTHERS: dict[str, Callable[[int], DspCase]] = {
    "add": dsp_cases.add,
    "elementwise": elementwise,
    "block dense": block_dense,
    "float edges": float_edge,
    "elementwise_floats": of_floats,
    "pool_floats": dsp_cases.pool_of_floats,
    "arithmetic": arithmetic,
    "rescaled": rescaled,
    "matmul": dsp_cases.matmul,
    "matmul int16": dsp_cases.matmul_of_int16,
    "transposed": dsp_cases.transposed,
    "transposed int16": lambda seed: dsp_cases.in_int16(seed, dsp_cases.transposed(seed)),
    "frames": dsp_cases.frames,
    "pool": dsp_cases.pool,
    "average": dsp_cases.global_average,
    "float": dsp_cases.floating,
    "float depthwise": partial(dsp_cases.floating, depthwise=True),
    "float dense": dsp_cases.floating_dense,
    "reductions": reduced,
    "resized": resized,
    "long sums": dsp_cases.long_sums,
    "longest sums": dsp_cases.longest_sums,
}


def check(layer: Node) -> set[str]:
    """Ask every kernel of a layer, whatever the target, what its functions read."""
    offered = [kernel.candidate(layer, counts_constants=True) for kernel in kernels_of(layer)]
    for candidate in offered:
        if not candidate.is_view:
            assert candidate.weight_bytes == emitted_bytes(layer, candidate), candidate.name
    return {candidate.kernel for candidate in offered}


@pytest.mark.soak
@pytest.mark.parametrize("kind", WEIGHTED)
def test_weighted_layers(kind: str) -> None:
    """Layers of int8 and int16, with all remainders, rescaled in fixed point and in floats."""
    for seed in seeds(0, 2):
        case = WEIGHTED[kind](seed)
        forms = (case, dsp_cases.in_float_rescaling(case))
        if seed % 2 and kind != "tiles":
            forms = (dsp_cases.in_int16(seed, case), dsp_cases.in_int16_and_float(seed, case))
        for form in forms:
            check(form.graph.nodes[0])


@pytest.mark.soak
@pytest.mark.parametrize("kind", OTHERS)
def test_other_layers(kind: str) -> None:
    """Layers without weights, of floats, and with long sums."""
    for seed in seeds(0, 2):
        check(OTHERS[kind](seed).graph.nodes[0])


@pytest.mark.soak
@pytest.mark.parametrize("operator", [*OPERATORS, *RECURRENT])
def test_operators(operator: str) -> None:
    """Every operator of TFLite in every type: what formulas and written functions read."""
    kind = OPERATORS.get(operator) or RECURRENT[operator]
    for dtype in kind.dtypes:
        for seed in seeds(0, 1):
            graph = from_tflite(generate(operator, seed, dtype).model).graph
            assert graph is not None
            for layer in rewritten(graph, GRAPH_PASSES, PassConfig()).nodes:
                check(layer)


@pytest.mark.parametrize(
    "kernel",
    [
        "conv_s8_8x1_dsp", "conv_s8_4x4_dsp_winograd", "conv_s8_16x4_c_winograd",
        "conv_s8_16x4_zbb_winograd",
    ],
)  # fmt: skip
def test_kernels_for_few_layers(kernel: str) -> None:
    """Those that few random layers of the others have."""
    for case, _ in found(kernel, 1):
        assert kernel in check(case.graph.nodes[0])


def test_formulas_of_every_kind() -> None:
    """Reductions row by row, and planes of pixels."""
    x = tensor("x", (1, 5, 7, 3), DType.INT8, quant(0.1))
    y = tensor("y", (1, 1, 1, 3), DType.INT8, quant(0.05))
    assert "accumulate" in check(node(Mean((1, 2)), (x,), y))
    assert "interleave" in check(planes((1, 3, 5, 7)))


@pytest.mark.parametrize("op", [Add(), Sub(), SquaredDifference()])
def test_tables_of_an_operand(op: Operator) -> None:
    """256 numbers of an operand that no line has; the node's constants count beside them."""
    a = tensor("a", (4, 8), DType.INT8, quant(0.05, -3))
    b = constant("b", np.arange(8, dtype=np.int8), quant(0.04, 5))
    y = tensor("y", (4, 8), DType.INT8, quant(0.08, -7))
    assert "direct_s8_table" in check(node(op, (a, b), y))


def test_they_count_where_flash_has_a_budget() -> None:
    """Without one, weights count as the model has them: prices are made for that."""
    layer = dsp_cases.fully_connected(0).graph.nodes[0]
    config = CompilationConfig(targets="c -mcpu=cortex-m4")
    free, limited = (
        {c.name: c.weight_bytes for c in candidates(layer, asked)}
        for asked in (config, config.with_(budget={"flash": 1 << 20}))
    )
    own = sum(t.type.bytes for t in layer.inputs[1:])
    assert free["direct"] == own < limited["direct"]
    assert limited == {c.name: emitted_bytes(layer, c) for c in candidates(layer, config)}
