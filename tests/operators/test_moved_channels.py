"""Operators that move integers with a scale for each channel: copied, as by both references."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np
import pytest

from microtir.config.enums import Numerics
from microtir.errors import MicrotirError
from microtir.frontend import from_tflite
from microtir.operators.common.tflite_schema import BuiltinOperator as Code
from microtir.operators.common.tflite_schema import Padding
from microtir.operators.convolution.tflite import Conv2DOptions
from microtir.operators.indexing.tflite import GatherOptions
from microtir.rewrite.reference import execute
from microtir.rewrite.requests.unlike_scales import stored_as_is
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

# The operators of which both references copy int8 whatever the scales, and so the compiler does.
COPY = (
    "RESHAPE", "PAD", "SPLIT", "SPLIT_V", "TRANSPOSE", "SLICE", "STRIDED_SLICE", "GATHER",
    "GATHER_ND", "SQUEEZE", "REVERSE_V2", "SPACE_TO_DEPTH", "DEPTH_TO_SPACE",
    "RESIZE_NEAREST_NEIGHBOR", "DYNAMIC_UPDATE_SLICE",
)  # fmt: skip

# Those for which one reference has no kernel, or compares scales; the other one copies.
ONE_COPIES = ("EXPAND_DIMS", "PACK", "UNPACK", "TILE", "BROADCAST_TO", "MIRROR_PAD", "SCATTER_ND")

SCALES = [0.01, 0.02, 0.03]


@pytest.mark.tools
@pytest.mark.soak
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("operator", [*COPY, *ONE_COPIES])
def test_stored_integers_are_those_of_the_references(operator: str, kind: type) -> None:
    """Of each whose numerics are asked for; where it has no kernel, of the other one."""
    for seed in seeds(1, 2):
        case = channel_case(operator, "int8", kind, seed)
        expected = {
            Numerics.TFLM: ran(partial(run_tflm, case.model, *case.inputs, outputs=case.outputs)),
            Numerics.TFLITE_REF: ran(partial(run_litert, case.model, *case.inputs)),
        }
        assert any(known is not None for known in expected.values())
        for numerics, wanted in expected.items():
            made = computed(case, numerics)
            assert made is not None or operator in ONE_COPIES
            for result, want in zip(made or [], wanted or [], strict=wanted is not None is made):
                np.testing.assert_array_equal(result, want, err_msg=f"{case.name} {numerics}")
        assert computed(case, Numerics.TFLM) is not None


@pytest.mark.tools
@pytest.mark.parametrize("operator", ["CONCATENATION", "PADV2"])
def test_what_neither_reference_runs_is_refused(operator: str) -> None:
    """Both compare the scales that they know of, and an operator of these names the tensor."""
    case = channel_case(operator, "int8", KINDS[2], 0)
    assert ran(lambda: run_tflm(case.model, *case.inputs)) is None
    assert ran(lambda: run_litert(case.model, *case.inputs)) is None
    with pytest.raises(MicrotirError, match="its quantisation differs"):
        case.graph()


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


@pytest.mark.tools
def test_c_of_moved_channels(tmp_path: Path) -> None:
    """Generated C moves integers as the graph says it does."""
    kinds = ("RESHAPE", "PAD", "SPLIT", "TRANSPOSE", "REVERSE_V2")
    compare([channel_case(name, "int8", KINDS[0], 0) for name in kinds], tmp_path, STRICT)


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
