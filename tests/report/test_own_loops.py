"""Elementwise operators with one reader that have loops of their own are named, with the reason."""

from __future__ import annotations

import numpy as np

from microtir import CompilationConfig, Target
from microtir.dtype import DType
from microtir.graph.ir import Graph, Tensor
from microtir.operators.activations.definition import HardSwish
from microtir.operators.arithmetic.definition import Add, Mul
from microtir.operators.convolution.definition import Conv2D
from microtir.operators.movement.definition import Pad
from microtir.operators.pooling.definition import AveragePool2D
from microtir.report.collect import describe
from microtir.report.summary import layer_reasons, loop_table
from tests.support.graphs import constant, graph, node, per_channel, quant, tensor
from tests.support.small_models import module_of

SHAPE = (1, 4, 4, 2)
PORTABLE = CompilationConfig.from_target(Target("c"))


def _int8(name: str, *shape: int) -> Tensor:
    return tensor(name, shape or SHAPE, DType.INT8, quant(0.05))


def _gated_residual() -> Graph:
    """Swish of the input, times a gate of its means, plus a convolution, padded and squashed."""
    small = 1, 1, 1, 2
    x, t, means, gate = _int8("x"), _int8("t"), _int8("means", *small), _int8("gate", *small)
    scaled, convolved, total = _int8("scaled"), _int8("convolved"), _int8("total")
    wide, squashed, y = _int8("wide", 1, 4, 5, 2), _int8("squashed", 1, 4, 5, 2), _int8("y", *small)
    weights = constant("w", np.ones((2, 1, 1, 2), np.int8), per_channel([0.1, 0.1], 0))
    nodes = [
        node(HardSwish(), [x], t),
        node(AveragePool2D((4, 4)), [t], means),
        node(HardSwish(), [means], gate),
        node(Mul(), [t, gate], scaled),
        node(Conv2D(), [scaled, weights], convolved),
        node(Add(), [convolved, t], total),
        node(Pad((0, 0, 0, 0), (0, 0, 1, 0)), [total], wide),
        node(HardSwish(), [wide], squashed),
        node(AveragePool2D((4, 5)), [squashed], y),
    ]
    return graph(nodes, [x], [y])


def test_reasons_by_layer() -> None:
    """An operator that two others read is not named; each other one is, with what keeps it out."""
    config = PORTABLE.with_(optimize="speed")
    report = describe(module_of(_gated_residual()).with_configuration(config))
    assert {layer.number: layer.own_loop for layer in report.layers if layer.own_loop} == {
        "2": "'direct' of layer 1 has no place for a function where it stores its results",
        "3": "values that are broadcast over it depend on all results of layer 0",
        "5": "'conv_s8_4x2_c' of layer 4 has no place for a second operand where it stores its"
             " results; other operators read the result of layer 0, too",
        "7": "'runs' of layer 6 moves elements as they are",
    }  # fmt: skip
    assert [row[:2] for row in loop_table(report).rows] == [
        ("2", "HARD_SWISH"), ("3", "MUL"), ("5", "ADD"), ("7", "HARD_SWISH"),
    ]  # fmt: skip
    assert "a separate loop: values that are broadcast" in layer_reasons(report)[3]


def test_kernels_that_take_less_than_one_loop_are_named() -> None:
    """Lanes of an instruction set beat the formulas of both operators in one loop."""
    shape = 1, 16, 16, 8
    x, w, total, scaled = (_int8(name, *shape) for name in "xwts")
    nodes = [
        node(Add(), [x, w], total), node(Mul(), [total, w], scaled),
        node(AveragePool2D((2, 2)), [scaled], _int8("y", 1, 15, 15, 8)),
    ]  # fmt: skip
    config = CompilationConfig(targets="c -mcpu=cortex-m4", optimize="speed")
    module = module_of(graph(nodes, [x, w], list(nodes[-1].outputs)))
    (_, scaling, _) = describe(module.with_configuration(config)).layers
    lanes = "arithmetic_s8_1x1_dsp"
    assert f"'{lanes}' of layer 0 and '{lanes}' take less than one loop" in scaling.own_loop


def test_what_runs_row_by_row_with_others_shares_their_loop() -> None:
    """It is named where whole tensors are computed, and not where rows are."""
    x, wide, squashed, y = _int8("x"), *(_int8(n, 1, 4, 4, 24) for n in ("a", "b")), _int8("y")
    first = constant("w", np.ones((24, 1, 1, 2), np.int8), per_channel([0.1] * 24, 0))
    second = constant("v", np.ones((2, 1, 1, 24), np.int8), per_channel([0.1] * 2, 0))
    nodes = [
        node(Conv2D(), [x, first], wide),
        node(HardSwish(), [wide], squashed),
        node(Conv2D(), [squashed, second], y),
    ]
    module = module_of(graph(nodes, [x], [y]))
    for optimize, named in (("speed", ["1"]), ("ram-least", [])):
        report = describe(module.with_configuration(PORTABLE.with_(optimize=optimize)))
        assert [layer.number for layer in report.layers if layer.own_loop] == named
