"""An operator defined wholly outside of the package, from file bytes to verified C."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pytest

import microtir
from microtir import custom, te
from microtir.dtype import DType
from microtir.errors import ModelFileError, UnsupportedModelError, UsageError
from microtir.graph.ir import Array, Node, Quantization, TensorType
from microtir.graph.text import to_text
from microtir.operators import OPERATORS, OperatorRecord, UserOperator
from microtir.operators.common.arrays import dequantized
from microtir.operators.common.formula import Formula, FormulaContext
from microtir.operators.common.problem import Problem
from microtir.operators.common.quantization import OWN
from microtir.operators.common.tflite_operands import Converted, Operands, TfliteReader
from microtir.operators.common.types import COMPUTED
from microtir.operators.definition import Definition, Trait
from microtir.rewrite.reference import execute
from microtir.writers.tflite import TfliteBuilder


@dataclass(frozen=True, slots=True)
class Softsign(UserOperator):
    """x / (steepness + |x|)."""

    name: ClassVar[str] = "softsign"
    steepness: float = 1.0

    def own_record(self) -> OperatorRecord:
        """Return the record below."""
        return SOFTSIGN


def is_steep(node: Node) -> Iterator[Problem]:
    """Find an output whose scale cannot tell the results apart."""
    if node.output.type.quant.scale > 0.5:
        yield Problem("its scale is too large", "at most 0.5", node.output)


def meaning(op: Softsign, node: Node, x: Array) -> Array:
    """Compute in float32; stored values are dequantised, and rounded to the nearest."""
    steepness = np.float32(op.steepness)
    if node.output.dtype.is_float:
        return np.asarray(x / (steepness + np.abs(x)))
    real = dequantized(x, node.inputs[0].type)
    quant = node.output.type.quant
    stored = np.rint(real / (steepness + np.abs(real)) / np.float32(quant.scale))
    return np.asarray(np.clip(stored + quant.zero_point, -128, 127), np.int8)


def compute(layer: FormulaContext) -> None:
    """Give the output element by element."""
    op, x = layer.node.op, layer.image(0)
    assert isinstance(op, Softsign)
    steepness = op.steepness

    def element(*at: te.Expr) -> te.Expr:
        value = te.bind("value", x.at(*at))
        return value / (te.abs(value) + steepness)

    layer.rows(element)


def read(operands: Operands) -> Converted:
    """Take the steepness from the options: a float32, little endian."""
    if len(operands.custom_options) != 4:
        raise operands.malformed(f"{len(operands.custom_options)} bytes of options", "4")
    (steepness,) = struct.unpack("<f", operands.custom_options)
    return Converted(Softsign(steepness), (operands.input(0),))


SOFTSIGN = OperatorRecord(
    Definition(
        Softsign,
        types=COMPUTED,
        quantization=OWN,
        multipliers=is_steep,
        traits=frozenset({Trait.ELEMENTWISE, Trait.TABULATED}),
    ),
    meaning,
    Formula(compute),
    (TfliteReader(Softsign, "Softsign", read),),
)

SHAPE = (1, 4, 6, 3)


def file(dtype: type, scale: float = 0.01, options: bytes = struct.pack("<f", 0.5)) -> bytes:
    """A model of the operator."""
    builder = TfliteBuilder()
    scales, zero_points = ([scale], [3]) if dtype is np.int8 else (None, None)
    x, y = (
        builder.tensor(name, SHAPE, dtype, scales=scales, zero_points=zero_points) for name in "xy"
    )
    builder.custom_operator("Softsign", [x], [y], options)
    return bytes(builder.build([x], [y]))


@pytest.mark.parametrize("dtype", [np.float32, np.int8])
def test_from_file_to_c(dtype: type) -> None:
    """It is read, verified, evaluated, planned, lowered, proven, printed and run like any other."""
    module = microtir.frontend.from_tflite(file(dtype), operators=[SOFTSIGN])
    assert module.graph is not None
    assert "softsign(%x) {steepness=0.5}" in to_text(module.graph)
    model = microtir.host.load(microtir.build(module), sanitize=True)
    generator = np.random.default_rng(7)
    values = generator.normal(size=SHAPE).astype(np.float32)
    x = values if dtype is np.float32 else (values * 100).clip(-128, 127).astype(np.int8)
    got, want = model.run({"x": x})["y"], execute(module.graph, {"x": x})["y"]
    np.testing.assert_allclose(got, want, rtol=1e-6 if dtype is np.float32 else 0)
    assert SOFTSIGN not in OPERATORS


def test_its_rules_are_asked() -> None:
    """What its definition, its reader and the list of readers object to is refused."""
    with pytest.raises(UnsupportedModelError, match="its scale is too large"):
        microtir.frontend.from_tflite(file(np.int8, 0.75), operators=[SOFTSIGN])
    with pytest.raises(UnsupportedModelError, match="are int16 -> int16"):
        microtir.frontend.from_tflite(file(np.int16), operators=[SOFTSIGN])
    with pytest.raises(ModelFileError, match="3 bytes of options"):
        microtir.frontend.from_tflite(file(np.int8, options=b"abc"), operators=[SOFTSIGN])
    with pytest.raises(UsageError, match="two operators are called 'Softsign'"):
        microtir.frontend.from_tflite(file(np.int8), operators=[SOFTSIGN, SOFTSIGN])
    with pytest.raises(UnsupportedModelError, match="'Softsign' is not supported"):
        microtir.frontend.from_tflite(file(np.int8))


@pytest.mark.parametrize("operator", [SOFTSIGN, Softsign(0.25)], ids=["record", "attributes"])
@pytest.mark.parametrize("dtype", [DType.FLOAT32, DType.INT8], ids=lambda dtype: dtype.value)
def test_it_is_checked_by_itself(operator: OperatorRecord | Softsign, dtype: DType) -> None:
    """A record stands for its operator without attributes; both forms are compared with numpy."""
    quantization = Quantization((0.02,), (3,)) if dtype is DType.INT8 else None
    image = TensorType(SHAPE, dtype, quantization)
    custom.check(operator, [image], [image], samples=2)
