from __future__ import annotations

import os
import struct
import tracemalloc
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from microtir.errors import MicrotirError, ModelFileError, UnsupportedModelError
from microtir.frontend import check, from_tflite, inspect
from microtir.operators.arithmetic.tflite import AddOptions
from microtir.operators.common.tflite_schema import BuiltinOperator, Padding
from microtir.operators.convolution.tflite import Conv2DOptions
from microtir.operators.movement.tflite import (
    ConcatenationOptions,
    SplitOptions,
    StridedSliceOptions,
)
from microtir.rewrite.verify import verify
from microtir.writers.tflite import TfliteBuilder
from tests.frontend.binary import Patched
from tests.frontend.models import Value, add, int8, ints, model, refusal, scalar, zeros

Code = BuiltinOperator
DIGITS = Path(__file__).parents[2] / "examples" / "digits"
AGAIN = "export or download the model again; the file is damaged or was cut short"
RELU = model(Code.RELU, [int8(1, 8)], int8(1, 8))


def ones(*shape: int, scales: tuple[float, ...]) -> Value:
    """Weights of int8, quantised along the first axis."""
    return Value(shape, np.int8, np.ones(shape, np.int8), scales, (0,) * len(scales), 0)


CONV = model(
    Code.CONV_2D,
    [
        int8(1, 6, 6, 3),
        ones(4, 3, 3, 3, scales=(0.5, 0.25, 1.0, 2.0)),
        zeros(4, dtype=np.int32, scales=(0.25, 0.125, 0.5, 1.0), axis=0),
    ],
    int8(1, 6, 6, 4),
    Conv2DOptions(),
)
CONSTANT = model(
    Code.ADD,
    [Value((2,)), Value((2,), np.float32, np.array([1.5, 2.5]))],
    Value((2,)),
    AddOptions(),
)
SPLIT = model(
    Code.SPLIT, [scalar(-1), int8(2, 6)], [int8(2, 2), int8(2, 2), int8(2, 2)], SplitOptions(3)
)
SLICE = model(
    Code.STRIDED_SLICE,
    [Value((4, 6)), ints(1, 0), ints(4, 5), ints(2, 1)],
    Value((2, 6)),
    StridedSliceOptions(end_mask=2),
)


# --- what is no file ----------------------------------------------------------------------------


def test_missing_file(tmp_path: Path) -> None:
    """A missing file is named."""
    path = tmp_path / "no.tflite"
    assert refuse_path(path) == (
        f"{path}: there is no such file\n  fix:      check the spelling of the path"
    )


def test_folder(tmp_path: Path) -> None:
    """A folder is not a model."""
    assert "this is a folder\n  expected: a .tflite, .onnx, .keras or .pt2 file" in refuse_path(
        tmp_path
    )


def test_pipe_is_not_opened(tmp_path: Path) -> None:
    """A pipe, on which reading might never end, is refused without being opened."""
    path = tmp_path / "pipe"
    os.mkfifo(path)
    assert "this is not a regular file" in refuse_path(path)


def test_name_that_no_file_can_have() -> None:
    """A path with a NUL, or longer than the system allows, is a diagnostic too."""
    for path in ("a\0b", "x" * 5000):
        assert refuse_path(Path(path))


def refuse_path(path: Path) -> str:
    """The text of the error for a path, which `check` returns too."""
    with pytest.raises(ModelFileError) as caught:
        from_tflite(path)
    assert list(map(str, check(path))) == [str(caught.value)]
    return str(caught.value)


def test_empty_file() -> None:
    """An empty file is said to be empty."""
    assert refusal(b"").startswith("model: the file is empty\n")


def test_other_formats() -> None:
    """Bytes without the identifier are not a TFLite model."""
    for data in (b"\0" * 60, b"abc", RELU.replace(b"TFL3", b"TFL2")):
        text = refusal(data)
        assert "this is not a TFLite model" in text
        assert "expected: 'TFL3' as bytes 4 to 7" in text


def test_schema_version() -> None:
    """Another version of the schema is refused."""
    patched = Patched(RELU)
    patched.put(patched.field(patched.root(), 0), 2)
    assert "the schema version is 2\n  expected: 3" in refusal(patched.bytes)


@pytest.mark.parametrize("data", [RELU, CONV, SPLIT, SLICE], ids=["relu", "conv", "split", "slice"])
def test_truncated_at_any_byte(data: bytes) -> None:
    """Cut anywhere, a file gives one clear error, never half a model."""
    for length in range(len(data)):
        text = refusal(data[:length])
        assert text.startswith("model")
        assert "\n  fix:      " in text or "\n  expected: " in text


# --- offsets, lengths, indices ------------------------------------------------------------------


def test_offset_outside_the_file() -> None:
    """An offset beyond the end names the table it was found in."""
    patched = Patched(RELU)
    patched.put(patched.field(patched.tensor(1), 0), 0x7FFFFFF0)
    text = refusal(patched.bytes)
    assert text.startswith("model: tensor 1 'y0': bytes ")
    assert text.endswith(f"are outside the file's {len(RELU)} bytes\n  fix:      {AGAIN}")


@pytest.mark.parametrize("slot", [0, 3])
def test_absurd_length(slot: int) -> None:
    """A vector of four billion elements is refused before it is read."""
    patched = Patched(RELU)
    patched.put(patched.target(patched.graph(), slot), 0xFFFFFFFF)
    assert "are outside the file's" in refusal(patched.bytes)


def test_damaged_layout() -> None:
    """A table whose layout cannot be one is refused."""
    patched = Patched(RELU)
    patched.put(patched.layout(patched.operator(0)), 3, "<H")
    assert refusal(patched.bytes) == (
        f"model: operator 0: the table's layout is damaged\n  fix:      {AGAIN}"
    )


def test_field_outside_its_table() -> None:
    """A field must lie within the size that the table states."""
    patched = Patched(RELU)
    patched.put(patched.layout(patched.operator(0)) + 2, 6, "<H")
    assert "lies outside its table" in refusal(patched.bytes)


def test_indices_out_of_range() -> None:
    """Indices of tensors, operator codes and buffers are checked."""
    patched = Patched(RELU)
    inputs = patched.target(patched.operator(0), 1) + 4
    text = refusal(Patched(RELU).put(inputs, 7).bytes)
    assert "operator 0: inputs refer to tensor 7; there are 2 tensors" in text
    text = refusal(Patched(RELU).put(inputs, -2, "<i").bytes)
    assert "inputs refer to tensor -2" in text
    code = patched.field(patched.operator(0), 0)
    text = refusal(Patched(RELU).put(code, 5).bytes)
    assert "operator 0: its operator code is 5; there are 1 codes" in text
    buffer = patched.field(patched.tensor(0), 2)
    text = refusal(Patched(RELU).put(buffer, 9).bytes)
    assert "tensor 0 'x0': data is in buffer 9; there are 1 buffers" in text


def test_parts_used_over_and_over_do_not_fill_memory() -> None:
    """Many tensors that share one long name are refused, with little memory."""
    tensors, name = 20_000, b"n" * 240_000
    root, subgraphs, graph, vector = 18, 30, 44, 52
    table = vector + 4 + 4 * tensors + 12
    data = struct.pack("<I4s", root, b"TFL3")
    data += struct.pack("<5H", 10, 12, 8, 0, 4)  # layout of the root: version, subgraphs
    data += struct.pack("<iII", 10, subgraphs - root - 4, 3)
    data += struct.pack("<II", 1, graph - subgraphs - 4)
    data += struct.pack("<3H", 6, 8, 4)  # layout of the subgraph: tensors
    data += struct.pack("<iI", 6, vector - graph - 4)
    entries = [table - (vector + 4 + 4 * i) for i in range(tensors)]
    data += struct.pack(f"<I{tensors}I", tensors, *entries)
    data += struct.pack("<6H", 12, 8, 0, 0, 0, 4)  # layout of a tensor: name
    data += struct.pack("<iII", 12, 4, len(name)) + name
    tracemalloc.start()
    try:
        text = refusal(data)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert "the file refers to the same parts too many times" in text
    assert peak < 8 * len(data)


# --- the data flow ------------------------------------------------------------------------------


X, M, Y, C = range(4)


@pytest.mark.parametrize(
    ("edges", "inputs", "outputs", "text"),
    [
        (
            [(M, Y), (X, M)],
            [X],
            [Y],
            "operator 0: it uses tensor 1 'm', which no earlier operator makes",
        ),
        (
            [(Y, M), (M, Y)],
            [X],
            [Y],
            "operator 0: it uses tensor 2 'y', which no earlier operator makes",
        ),
        ([(X, X)], [X], [Y], "operator 0: tensor 0 'x' is an input of the model already"),
        ([(X, Y), (X, Y)], [X], [Y], "operator 1: tensor 2 'y' is made by operator 0 already"),
        ([(X, C)], [X], [Y], "operator 0: tensor 3 'c' has stored data already"),
        ([(X, M)], [X], [Y], "outputs: no operator makes tensor 2 'y'"),
        ([(X, Y)], [], [Y], "inputs: the model has no inputs"),
        ([(X, Y)], [X], [], "outputs: the model has no outputs"),
        ([(X, Y)], [X, X], [Y], "inputs: a tensor is listed twice in (0, 0)"),
        ([(X, Y)], [X, C], [Y], "inputs: tensor 3 'c' has stored data already"),
    ],
)
def test_order(
    edges: list[tuple[int, int]], inputs: list[int], outputs: list[int], text: str
) -> None:
    """Each tensor is made once, and before it is used; the first breach is named."""
    builder = TfliteBuilder()
    for name in "xmy":
        add(builder, Value((2,)), name)
    add(builder, zeros(2), "c")
    for source, result in edges:
        builder.operator(Code.RELU, [source], [result])
    assert text in refusal(builder.build(inputs, outputs))


def test_all_damage_is_found() -> None:
    """`check` goes on behind a record that cannot be read; thousands of them end with a count."""
    builder = TfliteBuilder()
    names = [add(builder, Value((2,)), f"t{i}") for i in range(60)]
    for source, result in pairwise(names):
        builder.operator(Code.RELU, [source], [result])
    patched = Patched(builder.build(names[:1], names[-1:]))
    shapes = [patched.target(patched.tensor(i), 0) + 4 for i in names]
    for position in (shapes[3], shapes[7]):
        patched.put(position, -1, "<i")
    patched.put(patched.target(patched.operator(11), 1) + 4, 99)
    assert [str(problem).splitlines()[0] for problem in check(patched.bytes)] == [
        "model: tensor 3 't3': the shape (-1,) is not possible",
        "model: tensor 7 't7': the shape (-1,) is not possible",
        "model: operator 11: inputs refer to tensor 99; there are 60 tensors",
    ]
    for position in shapes:
        patched.put(position, -1, "<i")
    *_, last = problems = check(patched.bytes)
    assert len(problems) == 51
    assert "more than 50 parts of the file are damaged; the rest was not read" in str(last)


# --- tensors ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("shape", "text"),
    [
        ((-3, 8), "tensor 0 'x0': the shape (-3, 8) is not possible"),
        ((1 << 30, 1 << 30), "the shape (1073741824, 1073741824) is not possible"),
        ((0, 1 << 30, 3, 1 << 30), "the shape (0, 1073741824, 3, 1073741824) is not possible"),
        ((1 << 30,), "4294967296 bytes are too many"),
        ((0, 8), "the shape (0, 8) has no elements"),
        ((1,) * 7, "7 dimensions are more than the 6 that microtir reads"),
    ],
)
def test_absurd_shapes(shape: tuple[int, ...], text: str) -> None:
    """Negative, empty and enormous shapes are refused, and no memory is set aside for them."""
    assert text in str(first_error(model(Code.RELU, [Value(shape)], Value((1, 8)))))


def first_error(data: bytes) -> MicrotirError:
    """The first problem of a model."""
    return check(data)[0]


def test_data_must_fill_the_shape() -> None:
    """The bytes of a constant are exactly those of its shape."""
    patched = Patched(CONSTANT)
    patched.put(patched.target(patched.tensor(1), 0) + 4, 3)
    text = refusal(patched.bytes)
    assert "tensor 1 'x1': 8 bytes of data for float32 of shape (3,)" in text
    assert "expected: 12 bytes" in text


def test_values_that_no_converter_writes() -> None:
    """NaN among weights and booleans above 1 are signs of damage."""
    data = CONSTANT.replace(struct.pack("<f", 1.5), struct.pack("<f", float("nan")))
    assert "tensor 1 'x1': its data holds NaN\n  expected: numbers" in refusal(data)
    truth = Value((3,), np.bool_, np.array([True, False, True]))
    inputs = [Value((3,), np.bool_), truth]
    joined = model(Code.CONCATENATION, inputs, Value((6,), np.bool_), ConcatenationOptions())
    assert joined.count(b"\1\0\1\0") == 1
    data = joined.replace(b"\1\0\1\0", b"\1\0\2\0")
    assert "tensor 1 'x1': its data holds bytes above 1\n  expected: 0 and 1" in refusal(data)


def test_variables_that_an_operator_does_not_keep() -> None:
    """An operator without state may read a variable, and writes none that others have read."""
    builder = TfliteBuilder()
    source = add(builder, Value((2,)), "source")
    state = builder.tensor("state", (2,), np.float32, is_variable=True)
    result = add(builder, Value((2,)), "result")
    builder.operator(Code.ADD, [source, state], [result], AddOptions())
    assert not check(builder.build([source], [result]))
    builder.operator(Code.ADD, [source, source], [state], AddOptions())
    assert "after other operators have used this variable" in refusal(
        builder.build([source], [result, state])
    )


def test_several_subgraphs() -> None:
    """The model is the first subgraph; what is damaged as a container is damage."""
    patched = Patched(RELU)
    patched.put(patched.target(patched.root(), 2), 2)
    assert "subgraph 1: bytes" in refusal(patched.bytes)


# --- quantisation -------------------------------------------------------------------------------


def quantization(tensor: int, slot: int) -> int:
    """Position of the first element of a vector of a quantisation table of CONV."""
    patched = Patched(CONV)
    return patched.target(patched.target(patched.tensor(tensor), 4), slot) + 4


@pytest.mark.parametrize("scale", [0.0, -1.0, float("nan"), float("inf")])
def test_scales_are_positive_numbers(scale: float) -> None:
    """A scale of 0, below 0, NaN or infinity is refused."""
    data = Patched(CONV).put(quantization(1, 2) + 8, scale, "<f").bytes
    assert refusal(data) == (
        f"model: tensor 1 'x1': scale 2 is {scale}\n"
        "  expected: 1.4013e-45 to 3.40282e+38, and 0 where all that is stored is the zero point\n"
        "  fix:      convert the model again"
    )


def test_scales_of_activations_are_moderate() -> None:
    """A scale near the upper end of float32 is refused; the smallest are of what is always 0."""
    data = Patched(CONV).put(quantization(0, 2), 1e38, "<f").bytes
    assert "expected: 1.4013e-45 to 1.26765e+30" in refusal(data)
    assert from_tflite(Patched(CONV).put(quantization(0, 2), 1e-44, "<f").bytes).graph is not None
    graph = from_tflite(Patched(CONV).put(quantization(1, 2), 1e-44, "<f").bytes).graph
    assert graph is not None


def test_scales_without_a_fixed_point_form() -> None:
    """Scales whose ratio no kernel can represent are refused, not passed on."""
    far_apart = model(Code.RELU, [int8(8, scale=2.0**100)], int8(8, scale=2.0**-100))
    text = refusal(far_apart)
    assert "the ratio of its scales is" in text
    assert "expected: below 2^30" in text
    data = Patched(CONV).put(quantization(1, 2), 3e38, "<f").bytes
    text = refusal(data)
    assert "the ratio of its scales is 2^" in text
    assert "fix:      convert the model again with full integer quantisation" in text


def test_zero_points_fit_the_type() -> None:
    """A zero point outside the type of the tensor is refused."""
    data = Patched(CONV).put(quantization(0, 3), 128, "<q").bytes
    assert (
        "tensor 0 'x0': the zero point 128 does not fit int8\n  expected: -128 to 127"
        in refusal(data)
    )


def test_lengths_of_quantisation() -> None:
    """Scales and zero points come one by one, or one per index of the axis."""
    data = Patched(CONV).put(quantization(1, 2) - 4, 3).bytes
    assert "3 scales along axis 0 of shape (4, 3, 3, 3)\n  expected: 1, or 4" in refusal(data)
    data = Patched(CONV).put(quantization(1, 3) - 4, 3).bytes
    assert "3 zero points for 4 scales" in refusal(data)
    patched = Patched(CONV)
    axis = patched.field(patched.target(patched.tensor(1), 4), 6)
    assert "scales run along axis 4 of a tensor with 4" in refusal(patched.put(axis, 4).bytes)


def test_one_zero_point_serves_all_scales() -> None:
    """A single zero point, or none, holds for every channel."""
    for count in (1, 0):
        data = Patched(CONV).put(quantization(1, 3) - 4, count).bytes
        graph = from_tflite(data).graph
        assert graph is not None
        assert graph.nodes[0].inputs[1].type.quant.zero_points == (0, 0, 0, 0)


def test_custom_quantisation() -> None:
    """Quantisation that is not affine is refused."""
    patched = Patched(CONV)
    table = patched.target(patched.tensor(1), 4)
    layout = patched.layout(table)
    axis = patched.number(layout + 4 + 2 * 6, "<H")
    patched.put(layout + 4 + 2 * 4, axis, "<H").put(table + axis, 1, "<i")
    assert "its quantisation is a custom one" in str(first_error(patched.bytes))


# --- options ------------------------------------------------------------------------------------


def test_options_of_another_operator() -> None:
    """The option table must be the operator's own."""
    patched = Patched(CONV)
    patched.put(patched.field(patched.operator(0), 3), 5, "<B")
    text = refusal(patched.bytes)
    assert "its options have the table number 5\n  expected: number 1 (Conv2DOptions)" in text


def test_unknown_enum() -> None:
    """A number that the schema does not have is refused, with the names it has."""
    data = model(
        Code.CONV_2D,
        [Value((1, 4, 4, 1)), zeros(1, 1, 1, 1)],
        Value((1, 4, 4, 1)),
        Conv2DOptions(padding=9),  # type: ignore[arg-type]
    )
    assert "padding is 9\n  expected: SAME, VALID" in refusal(data)
    assert [p.name for p in Padding] == ["SAME", "VALID"]


def test_unknown_option() -> None:
    """A field that this version does not know might change the result: it is not passed over."""
    patched = Patched(model(Code.ADD, [Value((2,)), Value((2,))], Value((2,)), AddOptions()))
    code = patched.item(patched.root(), 1, 0)
    patched.put(patched.field(code, 0), Code.MUL, "<b").put(patched.field(code, 3), Code.MUL)
    patched.put(patched.field(patched.operator(0), 3), 21, "<B")
    assert "its options have the field 1, which this version does not know" in refusal(
        patched.bytes
    )


# --- anything -----------------------------------------------------------------------------------

BASES = (
    RELU,
    CONV,
    SPLIT,
    SLICE,
    *((DIGITS / f"digits_{kind}.tflite").read_bytes() for kind in ("int8", "float")),
)
INTERESTING = (0, 1, 2, 3, 4, 7, 8, 127, 128, 255, 256, 65535, 1 << 16, 1 << 30, 1 << 31, -1, -4)


@st.composite
def mutated(draw: st.DrawFn) -> bytes:
    """A model with some bytes changed, numbers overwritten, parts of another one, or cut."""
    data = bytearray(draw(st.sampled_from(BASES)))
    for _ in range(draw(st.integers(1, 6))):
        if len(data) < 4:  # a splice of nothing is a cut
            break
        # The tables of a small model lie at both ends; weights in the middle rarely matter.
        place = draw(st.integers(0, len(data) - 4))
        kind = draw(st.sampled_from(["byte", "number", "number", "splice", "cut"]))
        if kind == "byte":
            data[place] ^= draw(st.integers(1, 255))
        elif kind == "number":
            struct.pack_into("<I", data, place & ~3, draw(st.sampled_from(INTERESTING)) % (1 << 32))
        elif kind == "splice":
            other = draw(st.sampled_from(BASES))
            start = draw(st.integers(0, len(other)))
            data[place : place + 32] = other[start : start + 32]
        elif draw(st.integers(0, 4)) == 0:
            del data[max(place, 16) :]
    return bytes(data)


@given(data=mutated())
@settings(max_examples=400)
def test_any_damage_is_a_model_or_a_diagnostic(data: bytes) -> None:
    """Whatever the bytes are, reading gives a valid module or one MicrotirError."""
    problems = check(data)
    assert all(problem.what and problem.where and problem.fix for problem in problems)
    if problems:
        with pytest.raises((ModelFileError, UnsupportedModelError)):
            from_tflite(data)
        return
    module = from_tflite(data)
    assert module.graph is not None
    verify(module.graph)
    assert inspect(module).layers
