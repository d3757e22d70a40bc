"""Conversions that tflite-micro has no kernel for, against LiteRT; constants of float16."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest

from microtir.dtype import DType
from microtir.frontend import from_tflite
from microtir.operators.common.tflite_schema import BuiltinOperator, Options, TfliteType
from microtir.operators.conversion.tflite import CastOptions
from microtir.operators.dense.tflite import FullyConnectedOptions
from microtir.rewrite.optimise.fold_constants import FoldConstants
from microtir.rewrite.reference import execute
from microtir.writers.tflite import TfliteBuilder
from tests.execute.cases import compare
from tests.support.c_compilers import STRICT
from tests.support.litert import run_litert
from tests.support.sketch import Case, Quant, Sketch

Code = BuiltinOperator
REALS = [0.0, -0.5, 0.5, 1.5, -1.5, 300.7, -300.7, 7e4, -7e4, 3e9, -3e9, 1e20, -1e20, np.inf]


def case(
    code: BuiltinOperator,
    values: npt.ArrayLike,
    source: str,
    target: str,
    quants: tuple[Quant | None, Quant | None] = (None, None),
    options: Options | None = None,
) -> Case:
    """A model of one conversion."""
    s = Sketch(f"{code.name}_{source}_{target}".lower(), code.name, np.dtype(source),
               np.random.default_rng(0))  # fmt: skip
    data = np.asarray(values).astype(source)
    x = s.input(data.shape, quants[0], data)
    return s.finish([x], s.output(data.shape, quants[1], target), options)


def casts() -> list[Case]:
    """Every cast from or to a type that only LiteRT has."""
    whole = [0, 1, -1, 127, 128, -129, 300, 65535, 1 << 31, -(1 << 31) - 1, 1 << 40, -(1 << 62)]
    names = ("float32", "int8", "int16", "int32", "uint32", "bool")
    pairs = [(a, b) for a in names for b in ("uint8", "int64")]
    pairs += [("int64", b) for b in (*names, "uint8")] + [("uint8", b) for b in names]
    return [
        case(
            Code.CAST,
            np.array(REALS if a == "float32" else whole),
            a,
            b,
            options=CastOptions(TfliteType[a.upper()], TfliteType[b.upper()]),
        )
        for a, b in pairs
    ]


def quantizations() -> list[Case]:
    """Every QUANTIZE that only LiteRT has."""
    stored, result = Quant(0.05, 131), Quant(0.03, 120)
    every = np.arange(256)
    reals = np.linspace(-9, 9, 301)
    return [
        case(Code.QUANTIZE, reals, "float32", "uint8", (None, result)),
        case(Code.QUANTIZE, every, "uint8", "uint8", (stored, result)),
        case(Code.QUANTIZE, every, "uint8", "int16", (stored, Quant(0.03, 0))),
    ]


@pytest.mark.tools
def test_conversions_are_those_of_litert(tmp_path: Path) -> None:
    """Of integers and floats inside and outside the target, in numpy and in C."""
    cases = casts() + quantizations()
    for one in cases:
        with np.errstate(over="ignore", invalid="ignore"):
            (actual,) = execute(one.graph(), one.named_inputs()).values()
        (expected,) = run_litert(one.model, *one.inputs)
        np.testing.assert_array_equal(actual, expected, err_msg=one.name)
    compare(cases, tmp_path, STRICT)


def test_dequantize_takes_a_scale_for_each_channel(tmp_path: Path) -> None:
    """Activations, too, may be quantised per channel, along any axis."""
    builder = TfliteBuilder()
    values = np.arange(-12, 12).astype(np.int8).reshape(2, 3, 4)
    scales, zeros = [0.5, 0.25, 2.0], [1, -2, 3]
    x = builder.tensor("x", values.shape, np.int8, None, scales, zeros, 1)
    y = builder.tensor("y", values.shape, np.float32)
    builder.operator(Code.DEQUANTIZE, [x], [y])
    one = Case("per_channel", builder.build([x], [y]), (values,), 1)
    (result,) = execute(one.graph(), one.named_inputs()).values()
    shape = (3, 1)
    expected = (values - np.reshape(zeros, shape)) * np.reshape(scales, shape)
    np.testing.assert_array_equal(result, expected.astype(np.float32))
    compare([one], tmp_path, STRICT)


def test_constants_of_float16_are_read_as_float32() -> None:
    """Weights of float16 behind a DEQUANTIZE are constants of float32 of the same values."""
    builder = TfliteBuilder()
    values = np.array([[0.1, -2.5, 6e-8], [65504.0, 1.0, -0.0]], np.float16)
    x = builder.tensor("x", (1, 3), np.float32)
    half = builder.tensor("half", values.shape, np.float16, values)
    weights = builder.tensor("weights", values.shape, np.float32)
    y = builder.tensor("y", (1, 2), np.float32)
    builder.operator(Code.DEQUANTIZE, [half], [weights])
    builder.operator(Code.FULLY_CONNECTED, [x, weights], [y], FullyConnectedOptions())
    graph = from_tflite(builder.build([x], [y])).graph
    assert graph is not None
    (node,) = FoldConstants()(graph).nodes
    assert node.inputs[1].dtype is DType.FLOAT32
    np.testing.assert_array_equal(node.inputs[1].data, values.astype(np.float32))
