"""Scales so small that factors become 0, or are no float32 with all its bits."""

from __future__ import annotations

import zlib
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
import pytest

from microtir.config.enums import Numerics
from microtir.errors import MicrotirError
from microtir.operators.common.tflite_schema import BuiltinOperator, Padding, TfliteActivation
from microtir.operators.pooling.tflite import Pool2DOptions
from microtir.writers.tflite import TfliteBuilder
from tests.execute.cases import compare
from tests.operators.test_unlike_scales import compare_where_defined, computed, ran
from tests.support.c_compilers import STRICT
from tests.support.litert import run_litert
from tests.support.operator_cases import OPERATORS
from tests.support.sketch import Case
from tests.support.tflm import run_tflm
from tests.support.unlike_sketch import (
    TINY_SCALE,
    TinyOutputSketch,
    TinySecondSketch,
    TinySketch,
)

REQUANTISED = ("FULLY_CONNECTED", "CONV_2D", "DEPTHWISE_CONV_2D", "ADD", "MUL")

# What has no such kernel here, or ends references: infinities are no integers.
_APART = {
    *("FLOOR_DIV", "FLOOR_MOD", "LOGICAL_AND", "LOGICAL_OR"),
    *("RELU6", "RSQRT", "SOFTMAX", "LOG_SOFTMAX"),
    *("LOGISTIC", "TANH"),  # see below
}

# LiteRT's SUM rounds otherwise; tflite-micro's GREATER of int16 compares nothing.
_OF_MICRO, _OF_LITERT = {"SUM"}, {("GREATER", "int16")}


def tiny_case(operator: str, dtype: str, kind: type[TinySketch], seed: int = 3) -> Case:
    """Draw a model of one operator, of whose tensors one was always 0 when it was converted."""
    rng = np.random.default_rng([seed, zlib.crc32(f"{operator} {dtype} tiny".encode())])
    name = f"{operator.lower()}_{dtype}_tiny"
    return OPERATORS[operator].recipe(kind(name, operator, np.dtype(dtype), rng))


@pytest.mark.tools
@pytest.mark.parametrize("operator", [name for name in OPERATORS if name not in _APART])
def test_tiny_inputs_are_those_of_the_references(operator: str) -> None:
    """Factors below 2^-32 are 0 in all of them, whatever is multiplied."""
    for dtype in ("int8", "int16"):
        for kind in (TinySketch, TinySecondSketch):
            if operator == "DIV" and kind is TinySecondSketch:
                continue  # a factor that no reference can shift by
            case = tiny_case(operator, dtype, kind)
            outputs = {
                Numerics.TFLM: ran(
                    partial(run_tflm, case.model, *case.inputs, outputs=case.outputs)
                ),
                Numerics.TFLITE_REF: ran(partial(run_litert, case.model, *case.inputs)),
            }
            if operator in _OF_MICRO:
                del outputs[Numerics.TFLITE_REF]
            if (operator, dtype) in _OF_LITERT:
                del outputs[Numerics.TFLM]
            for numerics, expected in outputs.items():
                if expected is None:
                    continue
                made = computed(case, numerics)
                assert made is not None, (case.name, kind, numerics)
                for result, want in zip(made, expected, strict=True):
                    compare_where_defined(case, result, want, numerics)


def test_activations_of_tiny_tensors_clamp_nothing() -> None:
    """Six is more than any number of a scale whose steps are less than 6 by the largest float32."""
    builder = TfliteBuilder()
    x = builder.tensor("x", (1, 2, 2, 1), np.int8, None, [TINY_SCALE], [-3])
    y = builder.tensor("y", (1, 1, 1, 1), np.int8, None, [TINY_SCALE], [-3])
    options = Pool2DOptions(Padding.VALID, 2, 2, 2, 2, TfliteActivation.RELU6)
    builder.operator(BuiltinOperator.MAX_POOL_2D, [x], [y], options)
    for largest, result in ((127, 127), (-5, -3)):
        values = np.array([-128, -99, largest, -7], np.int8).reshape(1, 2, 2, 1)
        made = computed(Case("pool", builder.build([x], [y]), (values,), 1), Numerics.TFLM)
        assert made is not None and made[0].item() == result


@pytest.mark.tools
def test_c_of_tiny_scales(tmp_path: Path) -> None:
    """Generated C multiplies by 0, too."""
    kinds = [(o, d) for o in (*REQUANTISED, "LOGISTIC", "TANH") for d in ("int8", "int16")]
    compare([tiny_case(o, d, TinySketch) for o, d in kinds], tmp_path, STRICT)


@pytest.mark.tools
@pytest.mark.parametrize("operator", ["LOGISTIC", "TANH"])
@pytest.mark.parametrize("dtype", ["int8", "int16"])
def test_curves_of_what_is_always_0(operator: str, dtype: str) -> None:
    """Of int16, references shift by more bits than there are, unless what they shift is 0."""
    case = tiny_case(operator, dtype, TinySketch)
    x = case.inputs[0].copy()
    x.reshape(-1)[0] = 0
    made, expected = computed(replace(case, inputs=(x,)), Numerics.TFLM), run_tflm(case.model, x)[0]
    assert made is not None
    counts = x == 0 if dtype == "int16" else np.full(x.shape, True)
    np.testing.assert_array_equal(made[0][counts], expected[counts])
    assert len(np.unique(made[0])) == 1


@pytest.mark.parametrize("operator", REQUANTISED)
@pytest.mark.parametrize("dtype", ["int8", "int16"])
def test_tiny_outputs_are_refused(operator: str, dtype: str) -> None:
    """References shift to the left by more bits than there are: what comes of it is nobody's."""
    with pytest.raises(
        MicrotirError, match=r"the ratio of its scales is (2|not finite)|it has the scale 3\.6"
    ):
        tiny_case(operator, dtype, TinyOutputSketch).graph()
