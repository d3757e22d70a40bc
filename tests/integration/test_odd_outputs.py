"""Outputs that no operator makes for themselves: an input, a constant, an output listed again."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import microtir as package
from microtir import CompilationConfig, Executor
from microtir.graph.ir import Array
from microtir.operators.common.tflite_schema import BuiltinOperator
from microtir.writers.tflite import TfliteBuilder
from tests.support.command import Command
from tests.support.tflm import run_tflm

HELD: Array = np.array([[4, -5, 6]], np.int8)


def odd_model() -> bytes:
    """RELU, whose result is an output twice, with an input twice and a constant among them."""
    builder = TfliteBuilder()
    x, y = (builder.tensor(n, (1, 3), np.int8, None, [0.5], [3]) for n in "xy")
    held = builder.tensor("held", (1, 3), np.int8, HELD, [0.5], [0])
    builder.operator(BuiltinOperator.RELU, [x], [y])
    return builder.build([x], [y, x, y, held, x])


@pytest.mark.parametrize("optimize", ["balanced", "ram"])
@pytest.mark.parametrize(
    ("executor", "interface"), [("aot", "c"), ("aot", "packed"), ("graph", None), ("debug", None)]
)
def test_odd_outputs_run(executor: str, interface: str | None, optimize: str) -> None:
    """Each is memory of its own with the right bytes; both models were refused as damaged."""
    options = {} if interface is None else {"interface-api": interface}
    config = CompilationConfig(targets="c", executor=Executor(executor, options), optimize=optimize)
    module = package.frontend.from_tflite(odd_model())
    model = package.host.load(package.build(module, config))
    x: Array = np.array([[-9, 3, 50]], np.int8)
    found = model.run({"x": x})
    y: Array = np.maximum(x, 3)
    for got, wanted in zip(found.values(), (y, x, y, HELD, x), strict=True):
        np.testing.assert_array_equal(got, wanted)
    assert list(found) == ["y", "x_2", "y_2", "held_2", "x_3"]


def test_odd_outputs_are_those_of_tflite_micro(microtir: Command, tmp_path: Path) -> None:
    """tflite-micro gives the same tensors, and `verify` compares all of them."""
    x: Array = np.array([[-9, 3, 50]], np.int8)
    y: Array = np.maximum(x, 3)
    for got, wanted in zip(run_tflm(odd_model(), x, outputs=5), (y, x, y, HELD, x), strict=True):
        np.testing.assert_array_equal(got, wanted)
    path = tmp_path / "odd.tflite"
    path.write_bytes(odd_model())
    result = microtir("verify", path, "--oracle", "tflm", "--target", "c")
    assert result.status == 0, result.out + result.err
    assert "identical" in result.out
