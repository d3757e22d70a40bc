"""Conditions: what the cases of single operators do not reach."""

from __future__ import annotations

import numpy as np
import pytest

import microtir
from microtir.operators.common.tflite_schema import BuiltinOperator as Code
from microtir.rewrite.reference import execute
from microtir.writers.tflite import TfliteBuilder
from tests.frontend.models import Value, int8, model, read, refusal
from tests.support.litert import run_litert


def test_any_byte_but_zero_is_true() -> None:
    """A bool that a caller wrote as 2 compares equal to one written as 1, and is not copied."""
    both = [Value((3,), np.bool_), Value((3,), np.bool_)]
    compiled = microtir.build(
        microtir.frontend.from_tflite(model(Code.EQUAL, both, Value((3,), np.bool_)))
    )
    bytes_ = np.array([2, 2, 0], np.uint8), np.array([1, 0, 0], np.uint8)
    given = {f"x{i}": values.view(np.bool_) for i, values in enumerate(bytes_)}
    (equal,) = microtir.host.load(compiled).run(given).values()
    assert equal.view(np.uint8).tolist() == [1, 0, 1]


@pytest.mark.tools
def test_a_constant_condition_for_each_row_of_one_element() -> None:
    """With ones behind it the condition has the shape of the result, but it stays a vector."""
    builder = TfliteBuilder()
    ports = [builder.tensor(name, (2, 1), np.int16) for name in ("a", "b", "y")]
    condition = builder.tensor("condition", (2,), np.bool_, np.array([True, False]))
    builder.operator(Code.SELECT, [condition, *ports[:2]], ports[2:])
    module = microtir.frontend.from_tflite(builder.build(ports[:2], ports[2:]))
    given = {"a": np.array([[1], [2]], np.int16), "b": np.array([[3], [4]], np.int16)}
    (y,) = microtir.host.load(microtir.build(module)).run(given).values()
    assert y.tolist() == [[1], [4]]


@pytest.mark.tools
def test_where_of_a_constant() -> None:
    """The places that hold are known, as a result and where another operator reads them."""
    mask = np.array([[0, 1, 1], [0, 0, 1]], np.bool_)
    builder = TfliteBuilder()
    x = builder.tensor("x", (3, 2), np.int64)
    places = builder.tensor("places", (3, 2), np.int64)
    total = builder.tensor("total", (3, 2), np.int64)
    builder.operator(Code.WHERE, [builder.tensor("mask", (2, 3), np.bool_, mask)], [places])
    builder.operator(Code.ADD, [x, places], [total])
    data = builder.build([x], [total, places])
    given = np.array([[10, 20], [30, 40], [50, 60]], np.int64)
    module = microtir.frontend.from_tflite(data)
    assert module.graph is not None
    expected = run_litert(data, given)
    for results in (
        execute(module.graph, {"x": given}),
        microtir.host.load(microtir.build(module)).run({"x": given}),
    ):
        for result, want in zip(results.values(), expected, strict=True):
            np.testing.assert_array_equal(result, want)


def test_refusals() -> None:
    """Sizes that depend on data, and scales for which tflite-micro stops, are refused."""
    computed = model(Code.WHERE, [Value((4,), np.bool_)], Value((2, 1), np.int64))
    assert "the number of its results depends on the data" in refusal(computed)
    coarse = Value((4,), np.int8, None, (1.0,), (0,))
    text = refusal(model(Code.LESS, [coarse, int8(4)], Value((4,), np.bool_)))
    assert "its scale is 1" in text and "expected: below 1" in text
    rows = [Value((3,), np.bool_), Value((2, 3)), Value((2, 3))]
    text = refusal(model(Code.SELECT, rows, Value((2, 3))))
    assert "a condition of shape (3,) for (2, 3) and (2, 3)" in text


@pytest.mark.parametrize("code", [Code.EQUAL, Code.NOT_EQUAL, Code.GREATER, Code.LESS_EQUAL])
def test_int16_without_a_scale_is_compared_as_it_is_stored(code: Code) -> None:
    """LiteRT does so, and leaves NOT_EQUAL undefined."""
    numbers = Value((5,), np.int16)
    given = [np.array(values, np.int16) for values in ((-32768, -1, 0, 7, 32767), (1, -1, 0, 8, 9))]
    function = {
        Code.EQUAL: np.equal, Code.NOT_EQUAL: np.not_equal,
        Code.GREATER: np.greater, Code.LESS_EQUAL: np.less_equal,
    }[code]  # fmt: skip
    graph = read(model(code, [numbers, numbers], Value((5,), np.bool_)))
    got = execute(graph, dict(zip(("x0", "x1"), given, strict=True)))["y0"]
    assert got.tolist() == function(*given).tolist()
