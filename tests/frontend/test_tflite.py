from __future__ import annotations

import hashlib
import os
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from microtir.dtype import DType
from microtir.errors import ModelFileError, UnsupportedModelError
from microtir.frontend import check, from_tflite, inspect
from microtir.graph.ir import Graph, Node, Quantization, SourceLocation
from microtir.operators.arithmetic.tflite import AddOptions
from microtir.operators.common.tflite_schema import BuiltinOperator
from microtir.operators.convolution.tflite import Conv2DOptions
from microtir.rewrite.verify import verify
from microtir.writers.tflite import TfliteBuilder
from tests.frontend.models import Value, add, int8, model, read, refusal, zeros

Code = BuiltinOperator
RELU = model(Code.RELU, [Value((1, 8))], Value((1, 8)))
DIGITS = Path(__file__).parents[2] / "examples" / "digits"

# Operators of the file, and multiply-accumulates where they are published.
MODELS = {
    "ad01_float": (10, 264_192),
    "ad01_int8": (10, 264_192),
    "kws_hybrid": (13, 2_656_768),
    "kws_int8": (13, 2_656_768),
    "resnet8_float": (16, 12_501_632),
    "resnet8_int8": (16, 12_501_632),
    "strww_int8": (11, None),
    "vww_float": (31, 7_489_664),
    "vww_int8": (31, 7_489_664),
}


def facts(graph: Graph) -> list[object]:
    """All that a graph says, with tensors by name and data by content."""

    def node(n: Node) -> object:
        return n.name, n.op, n.source, [t.name for t in n.inputs], [t.name for t in n.outputs]

    tensors = [
        (t.name, t.type, None if t.data is None else t.data.tobytes()) for t in graph.tensors()
    ]
    return [graph.name, graph.source_sha256, graph.source_bytes, *map(node, graph.nodes), *tensors]


def test_path_and_bytes_are_the_same_model(tmp_path: Path) -> None:
    """A path, its text and the bytes give the same graph but for names that come from the file."""
    path = tmp_path / "tiny model.v2.tflite"
    path.write_bytes(RELU)
    from_path = from_tflite(path).graph
    from_text = from_tflite(str(path), name="other").graph
    from_bytes = from_tflite(memoryview(RELU)).graph
    assert from_path is not None and from_text is not None and from_bytes is not None
    assert (from_path.name, from_text.name, from_bytes.name) == ("tiny model.v2", "other", "model")
    assert from_path.nodes[0].source == SourceLocation("tiny model.v2.tflite", 0, "RELU")
    assert from_bytes.nodes[0].source == SourceLocation("model", 0, "RELU")
    assert from_path.source_sha256 == hashlib.sha256(RELU).hexdigest()
    assert from_path.source_bytes == len(RELU)
    assert from_path.nodes[0].op == from_bytes.nodes[0].op


def test_module_has_no_configuration() -> None:
    """The reader attaches no configuration: that is the caller's."""
    module = from_tflite(RELU)
    assert module.config is None and module.functions == () and not module.is_lowered


def test_constants_are_read_only_views() -> None:
    """Weights are not copied: they are little-endian views of the file that nobody can write."""
    weights = np.arange(12, dtype=np.float32).reshape(1, 2, 2, 3)
    data = model(
        Code.CONV_2D,
        [Value((1, 4, 4, 3)), Value((1, 2, 2, 3), np.float32, weights)],
        Value((1, 4, 4, 1)),
        Conv2DOptions(),
    )
    (node,) = read(data).nodes
    array = node.inputs[1].data
    assert array is not None
    assert np.array_equal(array, weights)
    assert array.dtype == np.dtype("<f4")
    assert not array.flags.writeable
    assert not array.flags.owndata
    with pytest.raises(ValueError, match="read-only"):
        array[0] = 0


def test_scales_are_float32_values() -> None:
    """A scale is the float32 of the file, exactly, in a Python float."""
    data = model(Code.RELU, [int8(1, 8, scale=0.1)], int8(1, 8, scale=0.2))
    (node,) = read(data).nodes
    assert node.inputs[0].type.quant == Quantization((float(np.float32(0.1)),), (3,))
    assert node.output.dtype is DType.INT8


def test_per_channel_axis() -> None:
    """Several scales keep their axis; one scale is per tensor whatever axis the file names."""
    for outputs in (4, 1):
        scales = tuple(0.5 + i for i in range(outputs))
        weights = zeros(outputs, 1, 1, 3, dtype=np.int8, scales=scales, axis=0)
        bias = zeros(outputs, dtype=np.int32, scales=scales, axis=0)
        data = model(
            Code.CONV_2D,
            [int8(1, 4, 4, 3), weights, bias],
            int8(1, 4, 4, outputs),
            Conv2DOptions(),
        )
        (node,) = read(data).nodes
        assert node.inputs[1].type.quant.scales == scales
        assert node.inputs[1].type.quant.axis == (0 if outputs > 1 else None)


def test_hybrid_weights_keep_their_quantisation() -> None:
    """Float activations with int8 weights stay as they are stored."""
    weights = zeros(4, 1, 1, 3, dtype=np.int8, scales=(0.25,))
    data = model(
        Code.CONV_2D,
        [Value((1, 4, 4, 3)), weights, zeros(4)],
        Value((1, 4, 4, 4)),
        Conv2DOptions(),
    )
    (node,) = read(data).nodes
    assert [tensor.dtype.value for tensor in node.inputs] == ["float32", "int8", "float32"]
    assert node.inputs[1].type.quant == Quantization((0.25,), (0,))


def test_names_are_unique_and_kept() -> None:
    """Long names stay; repeated and empty ones get a number, inputs and outputs keep theirs."""
    long = "model/conv/Relu;model/conv/BiasAdd;" + "x" * 300
    builder = TfliteBuilder()
    middle = add(builder, Value((2,), name="in"), "")
    unnamed = add(builder, Value((2,), name=""), "")
    fused = add(builder, Value((2,), name=long), "")
    source = add(builder, Value((2,), name="in"), "")
    result = add(builder, Value((2,), name="model/conv/Relu"), "")
    builder.operator(Code.RELU, [source], [middle])
    builder.operator(Code.RELU, [middle], [unnamed])
    builder.operator(Code.RELU, [unnamed], [fused])
    builder.operator(Code.RELU, [fused], [result])
    graph = read(builder.build([source], [result]))
    names = [tensor.name for tensor in graph.tensors()]
    assert names == ["in", "in_2", "tensor_1", long, "model/conv/Relu"]
    labels = [node.name for node in graph.nodes]
    assert labels == ["in", "operator_1", "model/conv/Relu", "model/conv/Relu_2"]


def test_same_tensor_is_one_object() -> None:
    """Identity of tensors is the edge: a shared constant and a reused activation are one object."""
    builder = TfliteBuilder()
    source = add(builder, Value((2,)), "source")
    constant = add(builder, zeros(2), "constant")
    middle = add(builder, Value((2,)), "middle")
    result = add(builder, Value((2,)), "result")
    builder.operator(Code.ADD, [source, constant], [middle], AddOptions())
    builder.operator(Code.ADD, [middle, constant], [result], AddOptions())
    first, second = read(builder.build([source], [result])).nodes
    assert first.inputs[1] is second.inputs[1]
    assert first.output is second.inputs[0]


def test_batch_of_any_size_is_one() -> None:
    """A -1 for the batch with a stored extent of 1 is what converters write, and is read as 1."""
    data = model(Code.RELU, [Value((1, 8), signature=(-1, 8))], Value((1, 8), signature=(-1, 8)))
    assert read(data).inputs[0].shape == (1, 8)


@pytest.mark.parametrize(
    ("shape", "signature"), [((1, 1, 8), (-1, -1, 8)), ((4, 8), (-1, 8)), ((1, 8), (1,))]
)
def test_dynamic_shapes_are_refused(shape: tuple[int, ...], signature: tuple[int, ...]) -> None:
    """Any other dynamic extent is refused, with what to do."""
    text = refusal(model(Code.RELU, [Value(shape, signature=signature)], Value(shape)))
    assert text == (
        f"model: tensor 0 'x0': the shape of the input is open: {signature} (stored as {shape})\n"
        "  expected: fixed extents; but dimension 0, the batch, may be -1 "
        "if its stored extent is 1\n"
        "  fix:      convert the model with fixed input shapes, such as Input(batch_shape=(1, ...))"
    )


def test_all_problems_at_once(tmp_path: Path) -> None:
    """One error carries every problem, each with operator, tensor and fix; `check` returns them."""
    builder = TfliteBuilder()
    source = add(builder, Value((1, 4, 4, 2), np.int32), "source")
    weights = add(builder, zeros(2, 1, 1, 2, dtype=np.int32), "weights")
    first = add(builder, Value((1, 4, 4, 2), np.int32), "first")
    second = add(builder, Value((1, 4, 4, 2), np.uint8, scales=(0.5,)), "second")
    half = add(builder, Value((1, 4, 4, 2), np.float16), "half")
    builder.operator(Code.CONV_2D, [source, weights], [first], Conv2DOptions())
    builder.custom_operator("Magic", [first], [second])
    builder.operator(Code.DEQUANTIZE, [second], [half])
    path = tmp_path / "legacy.tflite"
    path.write_bytes(builder.build([source], [half]))
    problems = check(path)
    convolution, custom, half_type = map(str, problems)
    assert convolution == (
        "legacy.tflite: operator 0 CONV_2D ('first'): "
        "its types (inputs -> outputs) are int32 -> int32\n"
        "  expected: int8, int8, int32 -> int8; int8, int16, int32 -> int8;"
        " float32, float32, float32 -> float32;"
        " float32, int8, float32 -> float32; int16, int8, int64 -> int16;"
        " int16, int8, int32 -> int16\n"
        "  fix:      convert the model as float32, or with full integer quantisation to int8"
    )
    assert custom == (
        "legacy.tflite: operator 1 CUSTOM 'Magic' ('second'): the custom operator 'Magic' is not"
        " supported\n"
        "  expected: operators of the TFLite schema\n"
        "  fix:      convert the model with built-in operators only, or give the operator to"
        " from_tflite (docs/custom-operators.md)"
    )
    assert half_type == (
        "legacy.tflite: tensor 4 'half': its type is FLOAT16\n"
        "  expected: float32, int8, uint8, int16, int32, uint32, int64, uint64, bool\n"
        "  fix:      convert the model as float32 (without tf.float16 in"
        " target_spec.supported_types), or with full integer quantisation to int8"
    )
    with pytest.raises(UnsupportedModelError) as caught:
        from_tflite(path)
    assert list(map(str, caught.value.problems)) == list(map(str, problems))
    assert str(caught.value).startswith("legacy.tflite: the model is not supported, 3 problems\n- ")


def test_check_of_a_good_and_of_no_model(tmp_path: Path) -> None:
    """`check` is empty for a model that is read, and holds the file's error otherwise."""
    assert check(RELU) == ()
    (problem,) = check(tmp_path / "missing.tflite")
    assert isinstance(problem, ModelFileError)


def test_reading_twice_gives_the_same() -> None:
    """The same bytes give the same graph."""
    data = (DIGITS / "digits_int8.tflite").read_bytes()
    assert facts(read(data)) == facts(read(data))


@pytest.mark.parametrize("kind", ["int8", "float"])
def test_digits(kind: str) -> None:
    """The example's models are read."""
    graph = read((DIGITS / f"digits_{kind}.tflite").read_bytes())
    assert graph.inputs[0].shape == (1, 8, 8, 1)
    assert graph.nodes


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=pytest.mark.model(name)) for name in MODELS]
)
def test_reference_models(name: str, models_dir: Path) -> None:
    """Every reference model is read, with the number of operators and the work that is known."""
    module = from_tflite(models_dir / f"{name}.tflite")
    assert module.graph is not None
    operators, work = MODELS[name]
    assert len(module.graph.nodes) == operators
    assert module.graph.name == name
    verify(module.graph)
    if work is not None:
        assert inspect(module).macs == work
    assert facts(module.graph) == facts(read_again(models_dir / f"{name}.tflite"))


def read_again(path: Path) -> Graph:
    """The same file, read from its path."""
    graph = from_tflite(path).graph
    assert graph is not None
    return graph


@pytest.mark.model("vww_int8")
def test_reading_is_fast(models_dir: Path) -> None:
    """The largest reference model is read in less than a tenth of a second, best of five."""
    path = models_dir / "vww_int8.tflite"
    times = []
    for _ in range(5):
        start = time.perf_counter()
        from_tflite(path)
        times.append(time.perf_counter() - start)
    assert min(times) < 0.1


def test_reading_imports_no_generated_code() -> None:
    """A supported model is read without the packages of generated FlatBuffers code."""
    program = (
        "import sys; from microtir.frontend import from_tflite;"
        f"from_tflite({str(DIGITS / 'digits_int8.tflite')!r});"
        "print([m for m in ('tflite', 'flatbuffers') if m in sys.modules])"
    )
    result = subprocess.run(
        [sys.executable, "-c", program],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        capture_output=True,
        text=True,
        check=True,
    )
    assert result.stdout.strip() == "[]"
