"""Operators on integers with a scale for each channel: what each reference makes of them."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from itertools import product
from pathlib import Path

import numpy as np
import pytest

from microtir import (
    CompilationConfig,
    build,
    export_model_library_format,
    import_model_library_format,
)
from microtir.artifact import read_metadata
from microtir.codegen.metadata import ChannelQuantizationData
from microtir.config.enums import Numerics
from microtir.errors import MicrotirError
from microtir.frontend import from_tflite
from microtir.frontend.model_bytes import load
from microtir.frontend.tflite_file import parse
from microtir.operators.common.tflite_schema import BuiltinOperator as Code
from microtir.operators.common.tflite_schema import Padding, TfliteActivation
from microtir.operators.convolution.tflite import Conv2DOptions
from microtir.operators.indexing.tflite import GatherOptions
from microtir.operators.pooling.tflite import Pool2DOptions
from microtir.rewrite.reference import execute
from microtir.rewrite.requests.unlike_scales import stored_as_is
from microtir.support.reading import WrongDataError
from microtir.writers.tflite import TfliteBuilder
from tests.execute.cases import compare
from tests.operators.test_unlike_scales import computed, ran, read
from tests.support.c_compilers import STRICT
from tests.support.channel_sketch import KINDS, channel_case
from tests.support.command import Command
from tests.support.litert import run_litert
from tests.support.seeds import seeds
from tests.support.sketch import Array, Case
from tests.support.tflm import run_tflm
from tests.support.unlike_sketch import NARROW, unlike_case

# The operators that only move data, and those that compute what they move.
MOVE = (
    "RESHAPE", "PAD", "SPLIT", "SPLIT_V", "TRANSPOSE", "SLICE", "STRIDED_SLICE", "GATHER",
    "GATHER_ND", "SQUEEZE", "REVERSE_V2", "SPACE_TO_DEPTH", "DEPTH_TO_SPACE",
    "RESIZE_NEAREST_NEIGHBOR", "DYNAMIC_UPDATE_SLICE", "EXPAND_DIMS", "PACK", "UNPACK", "TILE",
    "BROADCAST_TO", "MIRROR_PAD", "SCATTER_ND", "FILL", "SPACE_TO_BATCH_ND", "BATCH_TO_SPACE_ND",
    "CONCATENATION", "PADV2", "MAX_POOL_2D", "AVERAGE_POOL_2D", "RELU", "RELU6",
)  # fmt: skip

SCALES = [0.01, 0.02, 0.03]


# LiteRT has no scale of a tensor with several, and divides 0 by 0 in these.
DIVIDE = ("RELU", "RELU6")


def has_channels(case: Case) -> bool:
    """Return whether a tensor of a model has several scales."""
    return any(len(t.quantization.scales) > 1 for t in parse(load(case.model)).graphs[0].tensors)


@pytest.mark.tools
@pytest.mark.soak
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("operator", MOVE)
def test_stored_integers_are_those_of_the_references(operator: str, kind: type) -> None:
    """Of each whose numerics are asked for; where it has no kernel of a type, of the other one.

    What they refuse is refused, and so is what LiteRT makes of a division by 0.
    """
    oracles: dict[Numerics, Callable[[Case], list[Array] | None]] = {
        Numerics.TFLM: lambda c: ran(partial(run_tflm, c.model, *c.inputs, outputs=c.outputs)),
        Numerics.TFLITE_REF: lambda c: ran(partial(run_litert, c.model, *c.inputs)),
    }
    for dtype, seed in product(NARROW, seeds(1, 2)):
        ordinary = unlike_case(operator, dtype, seed, is_unlike=False)
        known = [n for n, oracle in oracles.items() if oracle(ordinary) is not None]
        case = channel_case(operator, dtype, kind, seed)
        for numerics in oracles if known and has_channels(case) else ():
            judge = numerics if numerics in known else known[0]
            divides = judge is Numerics.TFLITE_REF and operator in DIVIDE
            expected = None if divides else oracles[judge](case)
            made = computed(case, numerics)
            assert (made is None) is (expected is None), (case.name, numerics)
            for result, want in zip(made or [], expected or [], strict=True):
                np.testing.assert_array_equal(result, want, err_msg=f"{case.name} {numerics}")


def pooled(code: Code, activation: TfliteActivation, scales: list[float]) -> Case:
    """Return a model of pooling with a fused activation and scales for each channel."""
    builder = TfliteBuilder()
    x = builder.tensor("x", (1, 4, 4, 3), np.int8, None, SCALES, [0] * 3, 3)
    y = builder.tensor("y", (1, 4, 4, 3), np.int8, None, scales, [0] * 3, 3)
    builder.operator(code, [x], [y], Pool2DOptions(Padding.VALID, 1, 1, 1, 1, activation))
    values = np.linspace(-128, 127, 48).round().astype(np.int8).reshape(1, 4, 4, 3)
    return Case("pooled", builder.build([x], [y]), (values,), 1)


@pytest.mark.tools
@pytest.mark.parametrize("code", [Code.MAX_POOL_2D, Code.AVERAGE_POOL_2D], ids=lambda c: c.name)
def test_fused_activations_clamp_by_the_first_scale(code: Code) -> None:
    """tflite-micro's bounds are those of the first channel; LiteRT divides them by 0."""
    case = pooled(code, TfliteActivation.RELU_N1_TO_1, SCALES)
    (expected,), made = run_tflm(case.model, *case.inputs), computed(case, Numerics.TFLM)
    assert made is not None and expected.max() == 100
    np.testing.assert_array_equal(made[0], expected)
    with pytest.raises(MicrotirError, match="3 scales along axis 3: LiteRT reads a scale of 0"):
        read(case.model, Numerics.TFLITE_REF)
    other = pooled(code, TfliteActivation.NONE, [0.02, 0.02, 0.03])
    assert ran(partial(run_tflm, other.model, *other.inputs)) is None
    with pytest.raises(MicrotirError, match="tflite-micro reads the first one"):
        read(other.model, Numerics.TFLM)


def test_rescaling_by_the_first_scale_is_told() -> None:
    """A RELU rescales all channels as the first one: real values differ, and `check` says so."""
    builder = TfliteBuilder()
    x = builder.tensor("x", (2, 3), np.int8, None, SCALES, [0] * 3, 1)
    y = builder.tensor("y", (2, 3), np.int8, None, [0.02], [-128])
    builder.operator(Code.RELU, [x], [y])
    (told,) = stored_as_is(read(builder.build([x], [y]), Numerics.TFLM))
    assert told.name == "y" and "3 scales along axis 1" in told.what


@dataclass(frozen=True)
class Move:
    """An operator on a tensor with a scale for each index of an axis."""

    code: Code
    axis: int
    shape: tuple[int, ...]  # of the output
    axis_out: int
    operand: Array
    scales_out: tuple[float, ...] = tuple(SCALES)
    zero_points: tuple[int, ...] = (0, 0, 0)

    def model(self) -> bytes:
        """Return the model; its input has the shape (1, 2, 4, 3) with the axis 3 of 3 scales."""
        builder = TfliteBuilder()
        x = builder.tensor("x", (1, 2, 4, 3), np.int8, None, SCALES, self.zero_points, self.axis)
        operand = builder.tensor("operand", self.operand.shape, np.int32, self.operand)
        y = builder.tensor(
            "y", self.shape, np.int8, None, self.scales_out, self.zero_points, self.axis_out
        )
        options = GatherOptions(self.axis_out) if self.code is Code.GATHER else None
        builder.operator(self.code, [x, operand], [y], options)
        return builder.build([x], [y])


def _ints(*numbers: object) -> Array:
    return np.array(numbers, np.int32)


FOLLOW = (
    Move(Code.RESHAPE, 3, (8, 3), 1, _ints(8, 3)),
    Move(Code.RESHAPE, 3, (2, 4, 1, 3), 3, _ints(2, 4, 1, 3)),
    Move(Code.TRANSPOSE, 3, (1, 3, 2, 4), 1, _ints(0, 3, 1, 2)),
    Move(Code.PAD, 3, (1, 4, 4, 3), 3, _ints((0, 0), (1, 1), (0, 0), (0, 0))),
    Move(Code.GATHER, 3, (1, 2, 4, 3), 3, _ints(2, 0, 1), (0.03, 0.01, 0.02)),
    Move(Code.REVERSE_V2, 3, (1, 2, 4, 3), 3, _ints(3), (0.03, 0.02, 0.01)),
)
DIFFER = (
    Move(Code.RESHAPE, 3, (3, 8), 0, _ints(3, 8)),
    Move(Code.TRANSPOSE, 3, (1, 3, 2, 4), 1, _ints(0, 3, 1, 2), (0.01, 0.02, 0.04)),
    Move(Code.GATHER, 3, (1, 2, 4, 3), 3, _ints(2, 0, 1)),
    Move(Code.REVERSE_V2, 3, (1, 2, 4, 3), 3, _ints(3)),
)


@pytest.mark.parametrize("move", FOLLOW, ids=lambda move: move.code.name)
def test_scales_that_follow_are_no_change(move: Move) -> None:
    """Each element keeps its scale, wherever its axis is then: nothing is told."""
    assert not stored_as_is(read(move.model(), Numerics.TFLM))
    assert not stored_as_is(read(move.model(), Numerics.TFLITE_REF))


@pytest.mark.parametrize("move", DIFFER, ids=lambda move: move.code.name)
def test_scales_that_do_not_follow_are_told(move: Move) -> None:
    """Equal scales of a reversed axis stand for other numbers, too."""
    (told,) = stored_as_is(read(move.model(), Numerics.TFLM))
    assert "it copies integers stored with 3 scales along axis 3 as such with 3 scales" in told.what


def test_padding_needs_zero_points_of_0() -> None:
    """With tflite-micro the first one pads, and with LiteRT 0."""
    move = Move(
        Code.PAD, 3, (1, 4, 4, 3), 3, _ints((0, 0), (1, 1), (0, 0), (0, 0)), zero_points=(4, 5, 6)
    )
    with pytest.raises(MicrotirError, match="zero point for each channel"):
        read(move.model(), Numerics.TFLM)


def test_check_tells_and_headers_state_scales(microtir: Command, tmp_path: Path) -> None:
    """An application reads the scales of inputs and outputs in the header."""
    path, made = tmp_path / "moved.tflite", tmp_path / "made"
    path.write_bytes(DIFFER[1].model())
    assert "1 operator changes real values" in microtir("check", path).out
    path.write_bytes(FOLLOW[2].model())
    assert "changes real values" not in microtir("check", path).out
    assert microtir("compile", path, "-o", made).status == 0
    lines = [" ".join(line.split()) for line in (made / "moved.h").read_text().splitlines()]
    for name, axis in (("X", 3), ("Y", 1)):
        assert f"#define MOVED_{name}_SCALES {{0.01f, 0.02f, 0.03f}}" in lines
        assert f"#define MOVED_{name}_ZERO_POINTS {{0, 0, 0}}" in lines
        assert f"#define MOVED_{name}_SCALES_AXIS {axis}" in lines


@pytest.mark.parametrize(("key", "value"), [("axis", 4), ("axis", 2), ("zero_points", [0, 0])])
def test_metadata_and_archives_state_scales(tmp_path: Path, key: str, value: object) -> None:
    """They come back from a file and an archive as they were; damaged ones are refused."""
    built = build(from_tflite(FOLLOW[2].model()), CompilationConfig(targets="c"))
    text = built.metadata.text
    first, second = read_metadata(text.encode()).ports
    assert first.quantization is second.quantization is None
    scales = tuple(float(np.float32(scale)) for scale in SCALES)
    assert first.channel_quantization == ChannelQuantizationData(scales, (0, 0, 0), 3)
    assert second.channel_quantization == ChannelQuantizationData(scales, (0, 0, 0), 1)
    archive = tmp_path / "moved.tar"
    export_model_library_format(built, archive)
    (again,) = import_model_library_format(archive)
    assert again.metadata == built.metadata
    written = json.loads(text)
    written["ports"][0]["channel_quantization"][key] = value
    with pytest.raises(WrongDataError, match="has 3 scales"):
        read_metadata(json.dumps(written).encode())


@pytest.mark.tools
def test_c_of_moved_channels(tmp_path: Path) -> None:
    """Generated C moves integers as the graph says it does."""
    kinds = ("RESHAPE", "PAD", "SPLIT", "TRANSPOSE", "REVERSE_V2")
    cases = [channel_case(name, "int8", KINDS[0], 0) for name in kinds]
    cases += [channel_case("RELU", dtype, KINDS[3], 0) for dtype in ("int8", "int16")]
    cases += [channel_case("MAX_POOL_2D", dtype, KINDS[0], 0) for dtype in NARROW]
    compare(cases, tmp_path, STRICT)


def behind(code: Code, scales_of_filter: list[float]) -> tuple[bytes, Array]:
    """Return a convolution whose constant weights are moved first, and its input."""
    rng, builder = np.random.default_rng(32), TfliteBuilder()
    x = builder.tensor("x", (1, 4, 4, 2), np.int8, None, [0.05], [3])
    weights = rng.integers(-127, 127, (3, 1, 1, 2)).astype(np.int8)
    stored, axis, operand = weights.reshape(3, 2), 0, _ints(3, 1, 1, 2)
    if code is Code.TRANSPOSE:
        stored, axis, operand = weights.transpose(3, 1, 2, 0), 3, _ints(3, 1, 2, 0)
    constant = builder.tensor("c", stored.shape, np.int8, stored, SCALES, [0] * 3, axis)
    shape = builder.tensor("shape", operand.shape, np.int32, operand)
    moved = builder.tensor("w", (3, 1, 1, 2), np.int8, None, scales_of_filter, [0] * 3, 0)
    builder.operator(code, [constant, shape], [moved])
    scales = [0.05 * scale for scale in scales_of_filter]
    bias = builder.tensor("bias", (3,), np.int32, _ints(5, -7, 9), scales, [0] * 3, 0)
    y = builder.tensor("y", (1, 4, 4, 3), np.int8, None, [0.2], [-3])
    builder.operator(Code.CONV_2D, [x, moved, bias], [y], Conv2DOptions(Padding.VALID, 1, 1))
    return builder.build([x], [y]), rng.integers(-127, 127, (1, 4, 4, 2)).astype(np.int8)


@pytest.mark.tools
@pytest.mark.parametrize("code", [Code.RESHAPE, Code.TRANSPOSE], ids=lambda code: code.name)
@pytest.mark.parametrize("factor", [1.0, 2.0])
def test_weights_are_moved_with_their_scales(code: Code, factor: float, tmp_path: Path) -> None:
    """They are constants of the convolution in the end, with the scales that it was told."""
    model, x = behind(code, [factor * scale for scale in SCALES])
    expected = run_tflm(model, x)[0]
    np.testing.assert_array_equal(run_litert(model, x)[0], expected)
    graph = from_tflite(model).graph
    assert graph is not None
    (made,) = execute(graph, {"x": x}).values()
    np.testing.assert_array_equal(made, expected)
    assert bool(stored_as_is(graph)) is (factor != 1)
    compare([Case(f"behind_{code.name.lower()}", model, (x,), 1)], tmp_path, STRICT)
