"""Depthwise 3x3 over planes equals the reference, whoever wrote the planes."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest

import microtir
from microtir import CompilationConfig, Target
from microtir.dtype import DType
from microtir.kernels.arm_dsp import depthwise as words
from microtir.kernels.arm_dsp import planes
from microtir.kernels.arm_dsp.planes import OUTPUTS, TAPS, Plane, depthwise, words_of
from microtir.kernels.common.convolution_geometry import Geometry
from microtir.kernels.common.micro_kernel import call
from microtir.kernels.common.packing import constant
from microtir.kernels.common.statements import at, loop
from microtir.module.ir_module import IRModule
from microtir.rewrite.reference import execute
from microtir.tir import ir
from tests.support.batch import load_batch
from tests.support.dsp_cases import DspCase, Sizes, convolution
from tests.support.emulated_arm import M4, Call, calls_that_differ

SHORT = Sizes(widths=range(1, 7), channels=(4, 5, 8))  # outputs that are left
LONG = Sizes(widths=range(10, 30), heights=range(3, 5), channels=(4, 7, 12))  # several turns
MANY = Sizes(widths=range(6, 12), heights=range(3, 4), channels=(260, 1100))  # large immediates
CONFIG = CompilationConfig.from_target(Target("c -mcpu=cortex-m4")).with_(module_name="planes")


def plane_of(case: DspCase, dtype: DType) -> Plane:
    """The planes that a layer reads, in elements of a type."""
    geometry = Geometry.of(case.graph.nodes[0])
    columns = geometry.windows.columns
    return Plane(
        geometry.image.channels, geometry.output.width, columns.stride, columns.before,
        geometry.copied, dtype,
    )  # fmt: skip


def planar(case: DspCase, plane: Plane) -> npt.NDArray[np.generic]:
    """The input as (rows, channels * columns), borders included."""
    node = case.graph.nodes[0]
    geometry = Geometry.of(node)
    rows, (image,) = geometry.windows.rows, case.inputs[0]
    reached = (geometry.output.height - 1) * rows.stride + TAPS
    zero = node.inputs[0].type.quant.zero_point
    held = np.full((reached, plane.channels, plane.columns), zero, plane.dtype.value)
    inside = image[: reached - rows.before, : plane.copied].transpose(0, 2, 1)
    stop = plane.before + plane.copied
    held[rows.before : rows.before + len(inside), :, plane.before : stop] = inside
    return held.reshape(reached, -1)


def function_of(case: DspCase, plane: Plane, reached: int) -> ir.PrimFunc:
    """Computes a layer from planes (rows, C * columns)."""
    node = case.graph.nodes[0]
    output, stride = Geometry.of(node).output, Geometry.of(node).windows.rows.stride
    factors, weights = words.factors(node), node.inputs[1].data
    assert factors is not None and weights is not None
    held = ir.Buffer("x", (reached, plane.elements), plane.dtype, alignment=plane.alignment)
    y = ir.Buffer("y", (output.height, output.width * output.channels), DType.INT8)
    packed = constant("words", words_of(plane).pack(weights[0], factors.constants))
    kernel = depthwise(plane, factors.rescaling)
    body = loop("row", 0, output.height, lambda row: call(
        kernel, *(at(held, row * stride + n, 0) for n in range(TAPS)), at(packed, 0, 0),
        at(y, row, 0),
    ))  # fmt: skip
    return ir.PrimFunc(f"{case.name}_{plane.dtype.value}", (held, y), body, exported=True)


@pytest.fixture(scope="module")
def compiled() -> tuple[microtir.Artifact, list[Call]]:
    """Layers over planes of both types, and what they must compute."""
    functions, calls, turns = [], [], set()
    sizes = [SHORT] * 60 + [LONG] * 20 + [MANY] * 4
    for seed, size in enumerate(sizes):
        case = convolution(seed, depthwise=True, square=True, sizes=size)
        if planes.DepthwisePlanes().reject(case.graph.nodes[0]) is not None:
            continue
        want = execute(case.graph, case.named_inputs())["y"]
        for dtype in (DType.INT8, DType.INT16):
            plane = plane_of(case, dtype)
            x = planar(case, plane)
            functions.append(function_of(case, plane, len(x)))
            calls.append(Call(functions[-1].name, x, want))
            turns.add((plane.stride, min(plane.outputs // OUTPUTS, 2), plane.outputs % OUTPUTS))
    assert turns >= {(stride, 2, rest) for stride in (1, 2) for rest in range(OUTPUTS)}
    assert turns >= {(stride, 0, rest) for stride in (1, 2) for rest in range(1, OUTPUTS)}
    return microtir.build(IRModule(functions=tuple(functions)), CONFIG), calls


def test_portable_twin_equals_the_reference(
    compiled: tuple[microtir.Artifact, list[Call]], tmp_path: Path
) -> None:
    """Planes of int8 and of int16, one or many turns, every number of outputs left."""
    artifact, calls = compiled
    (model,) = load_batch([artifact], tmp_path)
    for called in calls:
        y = np.zeros((called.y.shape[1], called.y[0, 0].size), np.int8)
        model[called.name](called.x, y)
        np.testing.assert_array_equal(y.reshape(called.y.shape), called.y, err_msg=called.name)


def test_assembly_equals_the_reference(
    compiled: tuple[microtir.Artifact, list[Call]], tmp_path: Path
) -> None:
    """The same on an emulated core."""
    artifact, calls = compiled
    assert calls_that_differ(M4, artifact, calls, tmp_path) == []
