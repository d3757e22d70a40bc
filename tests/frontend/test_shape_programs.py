"""Random programs that compute with shapes: known while reading, as numpy and LiteRT have them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any

import numpy as np
import pytest

from microtir import frontend
from microtir.graph.ir import Array
from microtir.operators.common.tflite_schema import BuiltinOperator, Options, TfliteType
from microtir.operators.conversion.tflite import CastOptions
from microtir.operators.movement.tflite import (
    ConcatenationOptions,
    PackOptions,
    SplitOptions,
    StridedSliceOptions,
)
from microtir.operators.reduction.tflite import ReducerOptions
from microtir.operators.shapes.tflite import ShapeOptions
from microtir.rewrite.reference import execute
from microtir.writers.tflite import TfliteBuilder
from tests.frontend.models import Value, model, read, refusal, scalar
from tests.support.litert import run_litert
from tests.support.seeds import seeds
from tests.support.shape_programs import ShapeProgram, Step, drawn, shown

Code = BuiltinOperator
RNG = np.random.default_rng(3)

PLAIN: Mapping[str, Code] = MappingProxyType(
    {
        "add": Code.ADD, "sub": Code.SUB, "mul": Code.MUL, "max": Code.MAXIMUM,
        "min": Code.MINIMUM, "floor_div": Code.FLOOR_DIV, "mod": Code.FLOOR_MOD,
    }
)  # fmt: skip
REDUCING: Mapping[str, Code] = MappingProxyType(
    {"prod": Code.REDUCE_PROD, "sum": Code.SUM, "max": Code.REDUCE_MAX, "min": Code.REDUCE_MIN}
)


def type_of(array: Array) -> TfliteType:
    """The name that a file has for a numpy type."""
    return TfliteType[array.dtype.name.upper()]


class Writer(TfliteBuilder):
    """A model of a program."""

    def __init__(self, program: ShapeProgram) -> None:
        super().__init__()
        self.program = program
        self.x = self.tensor("x", program.shape, np.float32)
        self.known: list[int] = []
        for step in program.steps:
            made = [self.made(result) for result in step.results]
            self.write(step, [self.known[n] for n in step.inputs], made)
            self.known += made

    def made(self, result: Array) -> int:
        """A tensor for a result."""
        return self.tensor(f"t{len(self._tensors)}", result.shape, result.dtype)

    def constant(self, values: object, dtype: object = np.int32) -> int:
        """A constant."""
        data = np.asarray(values, dtype)  # type: ignore[call-overload]
        return self.tensor(f"c{len(self._tensors)}", data.shape, data.dtype, data)

    def write(self, step: Step, inputs: list[int], results: list[int]) -> None:
        """Write the operators of a step."""
        given, source = step.given, self.program.values[step.inputs[0]] if step.inputs else None
        if step.kind == "scale":
            assert source is not None
            self.scale(source, given["factor"], inputs[0], results[0])
            return
        code, more, options = self.operator_of(step, source)
        if code is Code.SPLIT:
            inputs, more = [*more, *inputs], []
        if code in (Code.RANGE, Code.SHAPE):
            inputs, more = more[:1] + inputs + more[1:], []
        self.operator(code, [*inputs, *more], results, options)

    def operator_of(
        self, step: Step, source: Array | None
    ) -> tuple[Code, list[int], Options | None]:
        """Return the operator of a step, its constants and options."""
        given, n = step.given, self.constant
        if step.kind == "binary":
            return PLAIN[given["name"]], [], None
        if step.kind == "reduce":
            return REDUCING[given["name"]], [n(given["axis"])], ReducerOptions(given["keep"])
        if step.kind == "shape":
            return Code.SHAPE, [self.x], ShapeOptions(type_of(step.results[0]))
        assert source is not None
        simple: Mapping[str, Callable[[], tuple[Code, list[int], Options | None]]] = {
            "take": lambda: (Code.GATHER, [n(given["places"], self.program.dtype)], None),
            "part": lambda: (
                Code.STRIDED_SLICE, [n([given[k]]) for k in ("begin", "end", "stride")],
                StridedSliceOptions(),
            ),
            "pick": lambda: (
                Code.STRIDED_SLICE, [n([given["place"]]), n([given["place"] + 1]), n([1])],
                StridedSliceOptions(shrink_axis_mask=1),
            ),
            "slice": lambda: (
                Code.SLICE,
                [n(given["begin"]), n(np.subtract(given["end"], given["begin"]))], None,
            ),
            "join": lambda: (Code.CONCATENATION, [], ConcatenationOptions(0)),
            "stack": lambda: (Code.PACK, [], PackOptions(2, 0)),
            "cast": lambda: (
                Code.CAST, [], CastOptions(type_of(source), type_of(step.results[0])),
            ),
            "range": lambda: (Code.RANGE, [n(0, source.dtype), n(1, source.dtype)], None),
            "reshape": lambda: (Code.RESHAPE, [n(given["shape"])], None),
            "squeeze": lambda: (Code.SQUEEZE, [], None),
            "unsqueeze": lambda: (Code.EXPAND_DIMS, [n(given["axis"])], None),
            "halves": lambda: (Code.SPLIT, [n(0)], SplitOptions(2)),
            "negate": lambda: (Code.NEG, [], None),
            "tile": lambda: (Code.TILE, [n([given["times"]])], None),
            "fill": lambda: (Code.FILL, [n(given["number"], self.program.dtype)], None),
        }  # fmt: skip
        return simple[step.kind]()

    def scale(self, source: Array, factor: float, x: int, y: int) -> None:
        """Multiply in float32."""
        whole, scaled = (self.made(source.astype(np.float32)) for _ in range(2))
        self.operator(Code.CAST, [x], [whole], CastOptions(type_of(source), TfliteType.FLOAT32))
        self.operator(Code.MUL, [whole, self.constant(factor, np.float32)], [scaled])
        self.operator(Code.CAST, [scaled], [y], CastOptions(TfliteType.FLOAT32, type_of(source)))

    def model(self, numbers: Sequence[int]) -> tuple[bytes, dict[str, Array], list[Array]]:
        """Return a model that adds values to inputs, the inputs, and what it has to give."""
        fed = {"x": np.zeros(self.program.shape, np.float32)}
        inputs, outputs, wanted = [self.x], [], []
        for number in numbers:
            value = self.program.values[number]
            fed[f"z{number}"] = RNG.integers(0, 9, value.shape).astype(value.dtype)
            inputs.append(self.tensor(f"z{number}", value.shape, value.dtype))
            outputs.append(self.made(value))
            self.operator(Code.ADD, [inputs[-1], self.known[number]], outputs[-1:])
            wanted.append(fed[f"z{number}"] + value)
        return self.build(inputs, outputs), fed, wanted


@pytest.mark.tools
@pytest.mark.soak
def test_random_programs_are_known_as_numpy_and_litert_have_them() -> None:
    """Scalars, lists and empty ones: nothing of it is left to compute, and the numbers are right.

    LiteRT has not all types of all operators: what it refuses is compared with numpy alone.
    """
    compared = 0
    for seed in seeds(0, 150):
        program = drawn(seed, np.int64 if seed % 3 == 0 else np.int32)
        numbers = shown(program)
        data, fed, wanted = Writer(program).model(numbers)
        graph = read(data)
        assert len(graph.nodes) == len(numbers), f"seed {seed}: {graph.nodes}"
        for got, want in zip(execute(graph, fed).values(), wanted, strict=True):
            np.testing.assert_array_equal(got, want, err_msg=f"seed {seed}")
        try:
            outputs = run_litert(data, *fed.values())
        except RuntimeError as error:
            if "is not supported" in str(error):
                continue
            raise
        compared += 1
        for got, want in zip(outputs, wanted, strict=True):
            np.testing.assert_array_equal(got, want, err_msg=f"seed {seed}, of LiteRT")
    assert compared > 50


@pytest.mark.parametrize(
    ("code", "operands"),
    [
        (Code.RANGE, [0, 1 << 30, 1]),
        (Code.RANGE, [0, 4, 0]),
        (Code.FILL, [[1 << 15, 1 << 15], 7]),
        (Code.TILE, [[1, 2], [1 << 30]]),
        (Code.FLOOR_DIV, [[3], [0]]),
        (Code.FLOOR_MOD, [[3], [0]]),
        (Code.SLICE, [[1, 2], [-1], [1]]),
        (Code.SLICE, [[1, 2], [1], [4]]),
        (Code.SLICE, [[1, 2], [0, 0], [1, 1]]),
        (Code.SLICE, [[1, 2], [[0]], [[1]]]),
        (Code.EXPAND_DIMS, [[1, 2], [0, 1]]),
        (Code.GATHER, [3, [0, 0]]),
        (Code.SUM, [[1, 2], [4]]),
    ],
)
def test_what_makes_no_sense_or_too_much_is_no_value(code: Code, operands: list[Any]) -> None:
    """Nothing large is made, and nothing ends in a traceback."""
    b = TfliteBuilder()
    inputs = [b.tensor(f"c{i}", np.shape(v), np.int32, v) for i, v in enumerate(operands)]
    x, made = b.tensor("x", (2,), np.int32), b.tensor("made", (2,), np.int32)
    y = b.tensor("y", (2,), np.int32)
    b.operator(code, inputs, [made])
    b.operator(Code.ADD, [x, made], [y])
    assert frontend.check(b.build([x], [y]))


def test_a_scalar_in_a_concatenation_is_refused() -> None:
    """It has no axis to lie along; it ended in a traceback behind a list of one axis."""
    listed, single = Value((2,), np.int32), scalar(3)
    text = refusal(model(Code.CONCATENATION, [listed, single], Value((3,), np.int32)))
    assert "shapes [(2,), ()] along axis 0" in text
