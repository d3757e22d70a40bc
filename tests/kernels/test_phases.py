"""Convolutions that are made of others, in the interpreter of TIR: by phases, images, outputs."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
import pytest

from microtir.config import CompilationConfig
from microtir.graph.ir import Node
from microtir.kernels import candidates, emit
from microtir.kernels.common.phases import phases_of_rows
from microtir.plan.ir import Layout, PlannedOperator
from microtir.rewrite.reference import execute
from microtir.tir.analysis.access import prove_accesses
from microtir.tir.function import LayerName
from microtir.tir.interpreter import Interpreter
from tests.kernels.test_operators import scratch
from tests.support.dsp_cases import (
    DspCase,
    frames,
    in_int16,
    multiplied,
    transposed,
    with_wide_weights,
)
from tests.support.kernel_cases import M4, M55


def computed(
    make: Callable[[int], DspCase], kernel: str, config: CompilationConfig, count: int
) -> Iterator[Node]:
    """Run the random layers that a kernel takes, and compare each with the reference."""
    for case in map(make, range(count)):
        layer = case.graph.nodes[0]
        chosen = {c.kernel: c for c in candidates(layer, config)}.get(kernel)
        if chosen is None:
            continue
        layouts = {t: Layout.whole(t.type) for t in (*layer.activations, layer.output)}
        function = emit(PlannedOperator(layer, chosen), layouts, LayerName("layer"))
        prove_accesses(function)
        output = np.zeros(layer.output.shape, layer.output.dtype.value)
        rows = (0, layer.output.type.rows) if function.row_range else ()
        Interpreter([function]).run("layer", [*case.inputs, output, *scratch(function), *rows])
        np.testing.assert_array_equal(output, execute(case.graph, case.named_inputs())["y"])
        yield layer


@pytest.mark.parametrize(
    ("kernel", "config"),
    [
        ("tconv_s8_2x4_dsp", M4),
        ("tconv_s8_4x2_dsp", M4),
        ("tconv_s8_2x4_mve", M55),
        ("tconv_s16_2x4_dsp", M4),
        ("tconv_s16_2x4_mve", M55),
    ],
)
def test_phases_equal_the_reference(kernel: str, config: CompilationConfig) -> None:
    """Whatever the phases, of single columns or of rows whose pixels are channels."""

    def make(seed: int) -> DspCase:
        case = transposed(seed)
        return in_int16(seed, case) if "s16" in kernel else case

    layers = list(computed(make, kernel, config, 24))
    assert sum(layer.output.shape[-1] < 4 for layer in layers) > 1
    assert sum(bool(phases_of_rows(layer)) for layer in layers) > 3


@pytest.mark.parametrize(
    ("kernel", "config"),
    [
        ("frames_conv_s8_2x4_dsp", M4),
        ("frames_conv_s8_4x2_dsp", M4),
        ("frames_conv_s8_2x4_mve", M55),
    ],
)
def test_images_equal_the_reference(kernel: str, config: CompilationConfig) -> None:
    """Each image of a batch inside a model is a convolution of its own."""
    assert len(list(computed(frames, kernel, config, 20))) > 4


def test_images_with_weights_of_any_zero_point_equal_the_reference() -> None:
    """Such weights are of int16, as those of older uint8 models become."""

    def make(seed: int) -> DspCase:
        return with_wide_weights(seed, frames(seed))

    assert len(list(computed(make, "frames_conv_s8_2x4_dsp", M4, 20))) > 4


def test_outputs_of_a_channel_equal_the_reference() -> None:
    """Each of several outputs of a channel is a depthwise convolution of its own."""
    layers = list(computed(multiplied, "dwconv_s8_4x1_dsp_windows", M4, 30))
    assert len(layers) > 4
    assert {layer.inputs[0].shape[-1] % 4 > 0 for layer in layers} == {False, True}
