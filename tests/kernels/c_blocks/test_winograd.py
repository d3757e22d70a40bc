"""Winograd's kernels in plain C: which targets and layers they are for, and what they take."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import microtir
from microtir import CompilationConfig, Target
from microtir.config.enums import Measure, Optimize
from microtir.graph.ir import Node
from microtir.host import run_sanitized
from microtir.kernels import candidates, refusals
from microtir.module.ir_module import IRModule
from microtir.operators.common.attributes import Padding2D
from microtir.operators.convolution.definition import Conv2D
from microtir.plan.ir import Candidate, Refusal
from microtir.rewrite.reference import execute
from tests.kernels.test_code_bytes import IMAGE, SAME, SQUARE, linear
from tests.support.graphs import graph

PLAIN = {
    "c -mcpu=cortex-m3": "conv_s8_16x2_c_winograd",
    "c -mcpu=cortex-m33+nodsp": "conv_s8_16x2_c_winograd",
    "c -mcpu=cortex-m0": "conv_s8_16x1_c_winograd",
    "c -mcpu=cortex-m0plus": "conv_s8_16x1_c_winograd",
    "c -mcpu=cortex-m23": "conv_s8_16x1_c_winograd",
    "c -march=rv32imc": "conv_s8_16x4_c_winograd",
    "c -march=rv32imc_zbb": "conv_s8_16x4_zbb_winograd",
}
OTHERS = (
    "c", "c -mcpu=cortex-m4", "c -mcpu=cortex-m55", "c -mcpu=x86-64", "c -mcpu=aarch64",
    "c -mcpu=atmega2560", "c -mcpu=esp32", "c -march=rv64gc", "c -march=rv32ic",
)  # fmt: skip


def config_of(target: str) -> CompilationConfig:
    """For speed."""
    return CompilationConfig.from_target(Target(target)).with_(
        optimize=Optimize.SPEED, module_name="m"
    )


def plain(target: str) -> list[Candidate]:
    """Return those that a square layer is offered."""
    offered = candidates(SQUARE, config_of(target))
    return [c for c in offered if c.kernel.endswith(("_c_winograd", "_zbb_winograd"))]


@pytest.mark.parametrize("target", PLAIN)
def test_cores_without_simd_have_one_and_take_it(target: str) -> None:
    """It is the fastest by instructions and by cycles; weights take 32 bytes for each pair."""
    (offered,) = plain(target)
    assert offered.kernel == PLAIN[target]
    assert offered.weight_bytes == 32 * 32 * 32 + 32 * 16
    for measure in Measure:
        others = candidates(SQUARE, config_of(target))
        best = min(others, key=lambda c: c.estimate(measure))
        assert best.kernel == offered.kernel


@pytest.mark.parametrize("target", OTHERS)
def test_other_targets_have_none(target: str) -> None:
    """Those with SIMD have kernels of their own, and of some nothing is measured."""
    assert plain(target) == []


@pytest.mark.parametrize(
    ("op", "image", "weights", "refusal"),
    [
        (Conv2D(padding=SAME), IMAGE, (4, 3, 3, 32), None),
        (Conv2D(padding=SAME), (1, 8, 8, 7), (4, 3, 3, 7), Refusal.FEW_CHANNELS),
        (Conv2D(padding=SAME), IMAGE, (3, 3, 3, 32), Refusal.FEW_CHANNELS),
        (Conv2D(padding=Padding2D(1, 1, 0, 1)), (1, 8, 8, 32), (4, 3, 2, 32), Refusal.WINDOWS),
        (Conv2D(padding=SAME), (1, 9, 7, 32), (4, 3, 3, 32), Refusal.SIZES),
    ],
)
def test_what_is_refused_has_a_reason(
    op: Conv2D, image: tuple[int, ...], weights: tuple[int, ...], refusal: Refusal | None
) -> None:
    """Which windows, how many channels, how wide."""
    layer, config = linear(op, image, weights), config_of("c -march=rv32imc")
    name = "conv_s8_16x4_c_winograd"
    assert dict(refusals(layer, config)).get(name) is refusal
    assert any(c.kernel == name for c in candidates(layer, config)) is (refusal is None)


def largest(channels: int) -> Node:
    """Return a layer with weights of -128, whose sums are the largest there are."""
    layer = linear(Conv2D(padding=SAME), (1, 2, 8, channels), (6, 3, 3, channels))
    x, w = layer.inputs
    return replace(layer, inputs=(x, replace(w, data=np.full(w.shape, -128, np.int8))))


def test_sums_at_the_bound() -> None:
    """910 channels of such weights fit, whatever the input; one more is refused."""
    config = config_of("c -mcpu=cortex-m3")
    found = [dict(refusals(largest(channels), config)) for channels in (910, 911)]
    named = [some.get("conv_s8_16x2_c_winograd") for some in found]
    assert named == [None, Refusal.SUMS]


def test_a_sanitizer_finds_nothing_at_the_bound() -> None:
    """With inputs and weights of one sign, whose sums are the largest there are."""
    layer = largest(910)
    model = graph((layer,), layer.activations, layer.outputs)
    artifact = microtir.build(IRModule(graph=model), config_of("c -mcpu=cortex-m3"))
    (operator,) = artifact.module.require_program("test").plan.operators
    assert operator.candidate.kernel == "conv_s8_16x2_c_winograd"
    x = np.full(layer.inputs[0].shape, -128, np.int8)
    want = execute(model, {"x": x})["y"]
    np.testing.assert_array_equal(run_sanitized(artifact, {"x": x})["y"], want)
