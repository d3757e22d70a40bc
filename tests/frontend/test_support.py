from __future__ import annotations

import re

import numpy as np
import pytest

from microtir.dtype import DType
from microtir.frontend import check
from microtir.frontend.operator_table import operator_rows
from microtir.frontend.tflite_operators import OPTIONS_OF, READERS
from microtir.frontend.tflite_subgraphs import CONTROL_OPTIONS
from microtir.frontend.tflite_variables import VARIABLE_OPTIONS
from microtir.graph.ir import Node, Quantization, SourceLocation, Tensor, TensorType
from microtir.graph.operator import Operator
from microtir.operators import OPERATORS, OperatorRecord
from microtir.operators.arithmetic.tflite import AddOptions
from microtir.operators.common.quantization import EQUAL, UNUSED
from microtir.operators.common.tflite_schema import BuiltinOperator
from microtir.operators.conversion.definition import Dequantize
from microtir.operators.convolution.tflite import Conv2DOptions
from microtir.operators.definition import Trait
from microtir.operators.dense.tflite import FullyConnectedOptions
from microtir.operators.movement.tflite import ConcatenationOptions, ReshapeOptions
from microtir.operators.softmax.tflite import SoftmaxOptions
from microtir.rewrite.facts.rules import quantization
from microtir.writers.tflite import TfliteBuilder
from tests.frontend.binary import Patched
from tests.frontend.models import Value, add, int8, ints, model, read_node, refusal, zeros

Code = BuiltinOperator


def test_tables_cover_each_other() -> None:
    """Every known operator has a table of options, and a reader or another rule."""
    codes = {reader.code for reader in READERS.values()}
    assert len(codes) == len(READERS)
    codes = {code for code in codes if isinstance(code, Code)}
    assert codes.isdisjoint(VARIABLE_OPTIONS)
    assert codes.isdisjoint(CONTROL_OPTIONS)
    assert {*codes, *VARIABLE_OPTIONS, *CONTROL_OPTIONS, Code.DENSIFY} == set(OPTIONS_OF)


def test_rows() -> None:
    """The rows say in words what the table says."""
    rows = {row.name: row for row in operator_rows()}
    names = [code if isinstance(code, str) else BuiltinOperator(code).name for code in READERS]
    resolved = [code.name for code in (*VARIABLE_OPTIONS, *CONTROL_OPTIONS)]
    assert list(rows) == [*names, *resolved, "TFLM_DECODE", "DENSIFY"]
    assert {code.name for code in OPTIONS_OF} <= set(rows)
    assert rows["WHILE"].operator == "the operators of its subgraphs"
    assert rows["CALL_ONCE"].operator == "a state"
    assert rows["PADV2"].operator == "pad"
    assert rows["ADD"].types == "float32; int8; int16; int32; int64"
    assert rows["QUANTIZE"].types == (
        "float32, int8, int16, int32, uint8 -> int8, int16; int8, int16 -> int32;"
        " float32, int8, uint8 -> uint8"
    )
    assert rows["DEQUANTIZE"].types == "int8, uint8, int16, float32 -> float32"
    movable = "float32, int8, uint8, int16, int32, int64, bool, uint32, uint64"
    assert rows["CAST"].types == f"{movable} -> {movable}"
    assert rows["CONV_2D"].types == (
        "int8, int8, int32 -> int8; int8, int16, int32 -> int8;"
        " float32, float32, float32 -> float32; float32, int8, float32 -> float32;"
        " int16, int8, int64 -> int16; int16, int8, int32 -> int16"
    )
    assert rows["TANH"].types == "float32; int8; int16"
    assert rows["TANH"].quantization == (
        "input its own; output int8 scale 1/128, zero point 0;"
        " output int16 scale 1/32768, zero point 0;"
        " int8 to int8 in another is copied as stored by tflite-micro"
    )
    assert all(row.format == "TFLite" and row.types and row.quantization for row in rows.values())


def made(operator: type[Operator], *types: TensorType) -> Node:
    """A node of tensors that have these types, the last being the output."""
    tensors = [Tensor(f"t{i}", type_) for i, type_ in enumerate(types)]
    source = SourceLocation("model", 0, "X")
    return Node(operator(), tuple(tensors[:-1]), (tensors[-1],), "node", source)


ONE, OTHER = Quantization((0.5,), (3,)), Quantization((0.25,), (3,))
FREE = ("each tensor its own", "activations their own", "not used")  # how words begin


def fixed_output(words: str) -> Quantization | None:
    """The quantisation that words fix for an int8 output of an int8 input."""
    found = re.search(r"output int8 scale (\d+)/(\d+), zero point (-?\d+)", words)
    if found is None:
        return None
    above, below, zero_point = map(int, found.groups())
    return Quantization((above / below,), (zero_point,))


@pytest.mark.parametrize("record", [record for record in OPERATORS if record.tflite], ids=repr)
def test_words_about_quantisation_are_true(record: OperatorRecord) -> None:
    """What the rule of an operator says in words is what it asks of int8 tensors."""
    words = record.definition.quantization.words

    def accepts(given: Quantization | None, result: Quantization | None) -> bool:
        weights = TensorType((1,), DType.INT8, Quantization((1.0,), (0,)))
        middle = [weights] if record.has(Trait.WEIGHTED) else []
        output = DType.FLOAT32 if record.op is Dequantize else DType.INT8
        types = TensorType((1,), DType.INT8, given), *middle, TensorType((1,), output, result)
        return not list(quantization(made(record.op, *types)))

    expected = fixed_output(words)
    is_free = words.startswith(FREE)
    assert is_free or expected or words == EQUAL.words
    assert accepts(ONE, OTHER) is is_free
    assert accepts(ONE, ONE) is (expected is None)
    assert accepts(None, OTHER) is (words == UNUSED.words)
    assert accepts(ONE, expected or ONE)


def quantized(code: BuiltinOperator, dtype: type) -> bytes:
    """A unary operator, CONV_2D or FULLY_CONNECTED in a type that is not supported."""

    def activation(*shape: int) -> Value:
        return Value(shape, dtype, None, (0.5,), (0,))

    if code in (Code.RELU, Code.LOG_SOFTMAX):
        return model(code, [activation(1, 4)], activation(1, 4))
    if code is Code.CONV_2D:
        image = activation(1, 4, 4, 2)
        constants = zeros(2, 1, 1, 2, dtype=dtype, scales=(0.5,)), zeros(2, dtype=np.int32)
        return model(code, [image, *constants], image, Conv2DOptions())
    constants = zeros(3, 4, dtype=dtype, scales=(0.5,)), zeros(3, dtype=np.int32)
    options = FullyConnectedOptions()
    return model(code, [activation(1, 4), *constants], activation(1, 3), options)


_INT16 = "quantise activations to 8 bits instead of 16: convert with TFLITE_BUILTINS_"


@pytest.mark.parametrize(
    ("code", "dtype", "fix"),
    [
        (Code.LOG_SOFTMAX, np.int16, _INT16),
    ],
)
def test_other_integer_models_are_refused(code: BuiltinOperator, dtype: type, fix: str) -> None:
    """Operators that have no 16-bit activations get advice."""
    text = refusal(quantized(code, dtype))
    assert f"{code.name} ('y0'): its types (inputs -> outputs) are {np.dtype(dtype).name}" in text
    assert f"\n  fix:      {fix}" in text


@pytest.mark.parametrize("dtype", ["float32", "int8", "uint8", "int16", "int32", "int64", "bool"])
def test_elements_of_any_type_are_moved(dtype: str) -> None:
    """Operators that compute nothing take every type, quantised or not."""
    node = read_node(
        Code.RESHAPE,
        [Value((4,), np.dtype(dtype)), ints(2, 2)],
        Value((2, 2), np.dtype(dtype)),
        ReshapeOptions(),
    )
    assert node.output.dtype is DType(dtype)


@pytest.mark.parametrize(
    ("data", "text"),
    [
        (
            model(Code.RELU, [Value((4,), np.int8)], int8(4)),
            "tensor 'x0': it is not quantised\n  expected: a scale and a zero point",
        ),
        (
            model(
                Code.CONCATENATION,
                [int8(4), int8(4, scale=0.25)],
                int8(8),
                ConcatenationOptions(),
            ),
            "tensor 'x1': its quantisation differs from that of the first input",
        ),
        (
            model(
                Code.SOFTMAX,
                [int8(4)],
                int8(4, scale=1 / 255, zero_point=-128),
                SoftmaxOptions(),
            ),
            "it has scale 0.00392156886 and zero point -128\n  expected: scale 0.00390625 and zero",
        ),
        (
            model(
                Code.CONV_2D,
                [
                    int8(1, 4, 4, 2),
                    zeros(3, 1, 1, 2, dtype=np.int8, scales=(0.5, 0.25), axis=3),
                    zeros(3, dtype=np.int32),
                ],
                int8(1, 4, 4, 3),
                Conv2DOptions(),
            ),
            "tensor 'x1': it is quantised along axis 3\n  expected: axis 0",
        ),
        (
            model(
                Code.CONV_2D,
                [
                    int8(1, 4, 4, 2),
                    zeros(3, 1, 1, 2, dtype=np.int8, scales=(0.5,), zero_points=(1,)),
                ],
                int8(1, 4, 4, 3),
                Conv2DOptions(),
            ),
            "tensor 'x1': it has a zero point that is not 0\n  expected: 0",
        ),
        (
            model(Code.QUANTIZE, [Value((4,))], Value((4,), np.int32, None, (0.5,), (0,))),
            "outputs) are float32 -> int32\n  expected: float32, int8, int16, int32, uint8 ->",
        ),
        (
            model(Code.ADD, [Value((4,)), zeros(4, dtype=np.int32)], Value((4,)), AddOptions()),
            "(inputs -> outputs) are float32, int32 -> float32\n  expected: float32; int8",
        ),
    ],
)
def test_refusals(data: bytes, text: str) -> None:
    """Types and quantisation that the compiler does not take are named with what it takes."""
    assert text in refusal(data)


def test_unsupported_operator_has_advice() -> None:
    """An operator of the schema that microtir lacks is called by its name, with what to do."""
    patched = Patched(model(Code.RELU, [Value((4,))], Value((4,))))
    code = patched.item(patched.root(), 1, 0)
    for number, name, advice in (
        (24, "RNN", "use LSTM layers, or unroll the recurrent layer"),
        (30, "SKIP_GRAM", "replace the layer, or compute it in the application"),
        (147, "BUCKETIZE", "replace the layer, or compute it in the application"),
        (1 << 20, "operator code 1048576", "replace the layer, or compute it in the application"),
    ):
        data = patched.put(patched.field(code, 3), number).bytes
        assert refusal(data) == (
            f"model: operator 0 {name} ('y0'): the operator {name} is not supported\n"
            "  expected: the operators that `microtir operators` lists\n"
            f"  fix:      {advice}"
        )


def test_a_tensor_is_reported_once() -> None:
    """A tensor that several operators use is one problem, and hides no other."""
    builder = TfliteBuilder()
    source = add(builder, Value((2,), np.float64), "source")
    results = [add(builder, Value((2,)), name) for name in "abc"]
    for result in results:
        builder.operator(Code.RELU, [source], [result])
    problems = check(builder.build([source], results))
    assert [problem.what for problem in problems] == ["its type is FLOAT64"]


def test_consumers_are_not_blamed() -> None:
    """Weights that come from an operator with a problem are no second problem."""
    builder = TfliteBuilder()
    image = add(builder, Value((1, 4, 4, 2)), "image")
    double = add(builder, zeros(3, 1, 1, 2, dtype=np.float64), "double")
    weights = add(builder, Value((3, 1, 1, 2)), "weights")
    result = add(builder, Value((1, 4, 4, 3)), "result")
    builder.operator(Code.DEQUANTIZE, [double], [weights])
    builder.operator(Code.CONV_2D, [image, weights], [result], Conv2DOptions())
    problems = check(builder.build([image], [result]))
    assert [problem.what for problem in problems] == ["its type is FLOAT64"]
