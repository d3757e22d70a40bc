from __future__ import annotations

import numpy as np
import pytest

from microtir.dtype import DType
from microtir.frontend import check
from microtir.frontend.operator_table import operator_rows
from microtir.frontend.tflite_operators import OPTIONS_OF, READERS
from microtir.frontend.tflite_shapes import SHAPE_OPTIONS
from microtir.graph.ir import Node, Quantization, SourceLocation, Tensor, TensorType
from microtir.graph.operator import Operator
from microtir.graph.rules import quantization
from microtir.operators import OPERATORS, OperatorRecord
from microtir.operators.arithmetic.tflite import AddOptions
from microtir.operators.common.quantization import EQUAL, OWN, UNUSED, weights
from microtir.operators.common.tflite_schema import BuiltinOperator
from microtir.operators.conversion.definition import Dequantize
from microtir.operators.convolution.tflite import Conv2DOptions
from microtir.operators.definition import Trait
from microtir.operators.dense.tflite import FullyConnectedOptions
from microtir.operators.movement.tflite import ConcatenationOptions, ReshapeOptions
from microtir.operators.softmax.tflite import SoftmaxOptions
from scripts.models.tflite_writer import TfliteBuilder
from tests.frontend.binary import Patched
from tests.frontend.models import Value, add, int8, ints, model, read_node, refusal, zeros

Code = BuiltinOperator


def test_tables_cover_each_other() -> None:
    """Every operator code that is known has a table of options, and one reader or shape rule."""
    codes = {reader.code for reader in READERS.values()}
    assert len(codes) == len(READERS)
    assert codes.isdisjoint(SHAPE_OPTIONS.keys() - {Code.REDUCE_PROD})
    assert {*codes, *SHAPE_OPTIONS} == set(OPTIONS_OF)


def test_rows() -> None:
    """The rows say in words what the table says."""
    rows = {row.name: row for row in operator_rows()}
    assert list(rows) == [BuiltinOperator(int(code)).name for code in READERS]
    assert rows["PADV2"].operator == "pad"
    assert rows["ADD"].types == "float32; int8"
    assert rows["QUANTIZE"].types == "float32, int8, int16, uint8 -> int8; int8 -> uint8"
    assert rows["DEQUANTIZE"].types == "int8, uint8, int16 -> float32"
    movable = "float32, int8, uint8, int16, int32, int64, bool"
    assert rows["CAST"].types == f"{movable} -> {movable}"
    assert rows["CONV_2D"].types == (
        "int8, int8, int32 -> int8; float32, float32, float32 -> float32;"
        " float32, int8, float32 -> float32"
    )
    assert rows["TANH"].quantization == "input its own; output scale 1/128, zero point 0"
    assert all(row.format == "TFLite" and row.types and row.quantization for row in rows.values())


def made(operator: type[Operator], *types: TensorType) -> Node:
    """A node of tensors that have these types, the last being the output."""
    tensors = [Tensor(f"t{i}", type_) for i, type_ in enumerate(types)]
    source = SourceLocation("model", 0, "X")
    return Node(operator(), tuple(tensors[:-1]), (tensors[-1],), "node", source)


ONE, OTHER = Quantization((0.5,), (3,)), Quantization((0.25,), (3,))
OUTPUTS = {
    "input its own; output scale 1/256, zero point -128": Quantization((1 / 256,), (-128,)),
    "input its own; output scale 1/128, zero point 0": Quantization((1 / 128,), (0,)),
    "input its own; output scale 1/16, zero point 127": Quantization((1 / 16,), (127,)),
}


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

    own = OWN.words, weights(0).words, UNUSED.words
    assert accepts(ONE, OTHER) is (words in own)
    assert accepts(ONE, ONE) is (words not in OUTPUTS)
    assert accepts(None, OTHER) is (words == UNUSED.words)
    assert accepts(ONE, OUTPUTS.get(words, ONE))
    assert words in (*own, EQUAL.words, *OUTPUTS)


def quantized(code: BuiltinOperator, dtype: type) -> bytes:
    """RELU, CONV_2D or FULLY_CONNECTED in an integer type that is not supported."""
    wide = np.int64 if dtype is np.int16 else np.int32
    weights = np.int8 if dtype is np.int16 else dtype

    def activation(*shape: int) -> Value:
        return Value(shape, dtype, None, (0.5,), (0,))

    if code is Code.RELU:
        return model(code, [activation(1, 4)], activation(1, 4))
    if code is Code.CONV_2D:
        image = activation(1, 4, 4, 2)
        constants = zeros(2, 1, 1, 2, dtype=weights, scales=(0.5,)), zeros(2, dtype=wide)
        return model(code, [image, *constants], image, Conv2DOptions())
    constants = zeros(3, 4, dtype=weights, scales=(0.5,)), zeros(3, dtype=wide)
    options = FullyConnectedOptions()
    return model(code, [activation(1, 4), *constants], activation(1, 3), options)


@pytest.mark.parametrize("code", [Code.RELU, Code.CONV_2D, Code.FULLY_CONNECTED])
@pytest.mark.parametrize(
    ("dtype", "fix"),
    [
        (np.uint8, "uint8 is the older quantisation: convert again with a converter of Tensor"),
        (np.int16, "quantise activations to 8 bits instead of 16: convert with TFLITE_BUILTINS_"),
    ],
)
def test_other_integer_models_are_refused(code: BuiltinOperator, dtype: type, fix: str) -> None:
    """Models in uint8 and with 16-bit activations get advice how to convert them."""
    text = refusal(quantized(code, dtype))
    assert f"{code.name} ('y0'): its types are {np.dtype(dtype).name}" in text
    assert f"\n  fix:   {fix}" in text


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
            "tensor 'x0': it is not quantised\n  legal: a scale and a zero point",
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
            "it has scale 0.00392156886 and zero point -128\n  legal: scale 0.00390625 and zero",
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
            "tensor 'x1': it is quantised along axis 3\n  legal: axis 0",
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
            "tensor 'x1': it has a zero point that is not 0\n  legal: 0",
        ),
        (
            model(Code.QUANTIZE, [Value((4,))], Value((4,), np.uint8, None, (0.5,), (3,))),
            "its types are float32 -> uint8\n  legal: float32, int8, int16, uint8 -> int8; int8 ->",
        ),
        (
            model(Code.ADD, [Value((4,)), zeros(4, dtype=np.int32)], Value((4,)), AddOptions()),
            "its types are float32, int32 -> float32\n  legal: float32; int8",
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
        (42, "DIV", "multiply by the reciprocal"),
        (27, "SVDF", "use a depthwise convolution over time"),
        (30, "SKIP_GRAM", "replace the layer, or compute it in the application"),
        (101, "ABS", "replace the layer, or compute it in the application"),
        (1 << 20, "operator code 1048576", "replace the layer, or compute it in the application"),
    ):
        data = patched.put(patched.field(code, 3), number).bytes
        assert refusal(data) == (
            f"model: operator 0 {name} ('y0'): the operator {name} is not supported\n"
            "  legal: the operators that `microtir operators` lists\n"
            f"  fix:   {advice}"
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
    half = add(builder, zeros(3, 1, 1, 2, dtype=np.float16), "half")
    weights = add(builder, Value((3, 1, 1, 2)), "weights")
    result = add(builder, Value((1, 4, 4, 3)), "result")
    builder.operator(Code.DEQUANTIZE, [half], [weights])
    builder.operator(Code.CONV_2D, [image, weights], [result], Conv2DOptions())
    problems = check(builder.build([image], [result]))
    assert [problem.what for problem in problems] == ["its type is FLOAT16"]
