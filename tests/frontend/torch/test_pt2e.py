"""Programs that PT2E quantised: each integer is what the formula of the program says."""

from __future__ import annotations

import json
from collections.abc import Mapping

import numpy as np
import pytest

from microtir import CompilationConfig
from microtir.config import Numerics
from microtir.errors import MicrotirError
from microtir.frontend import check, from_torch
from microtir.graph.ir import Array, Graph
from microtir.operators.conversion.definition import Dequantize, Quantize
from microtir.operators.dense.definition import FullyConnected
from microtir.operators.movement.definition import Transpose
from microtir.rewrite import reference
from microtir.rewrite.requests.numerics import made_for
from microtir.rewrite.requests.requested import completed
from tests.support.torch_programs import NUMBERS, TorchProgram, zipped

Q = "quantized_decomposed."


def stored_as(dtype: str, low: int, high: int) -> dict[str, object]:
    """Return the arguments that say how integers are stored."""
    return {"quant_min": low, "quant_max": high, "dtype": {"as_scalar_type": NUMBERS[dtype]}}


def formula(x: Array, scale: float, zero: int, low: int, high: int) -> Array:
    """Return integers as the program defines them, by its own words."""
    inverse = np.float32(1.0 / np.float64(np.float32(scale)))
    return np.asarray(np.clip(np.rint(x * inverse).astype(np.int64) + zero, low, high))


def graph_of(program: TorchProgram) -> Graph:
    """Return the graph of a program."""
    graph = from_torch(program.archive()).graph
    assert graph is not None
    return graph


@pytest.mark.parametrize(
    ("dtype", "low", "high", "zero"),
    [
        ("int8", -128, 127, -7), ("int8", -127, 127, 0), ("uint8", 0, 255, 131),
        ("int16", -32768, 32767, 5), ("int8", -8, 7, 1),
    ],
)  # fmt: skip
def test_conversions(dtype: str, low: int, high: int, zero: int) -> None:
    """Quantised and back, on values near the middle of two integers and outside of the range."""
    scale = 0.1 if dtype != "int16" else 0.001
    steps = np.arange(low - zero - 3, high - zero + 4, max(1, (high - low) // 400)) + 0.5
    x = np.concatenate([np.float32(scale) * steps, np.nextafter(np.float32(scale) * steps, 9)])
    x = x.astype(np.float32)
    kind = stored_as(dtype, low, high)
    program = TorchProgram({"x": (x.shape, "float32")})
    program.add(f"{Q}quantize_per_tensor.default", "q", x.shape, dtype,
                input="x", scale=scale, zero_point=zero, **kind)  # fmt: skip
    program.outputs = [program.add(f"{Q}dequantize_per_tensor.default", "y", x.shape,
                                   input="q", scale=scale, zero_point=zero, **kind)]  # fmt: skip
    (result,) = reference.execute(graph_of(program), {"x": x}).values()
    wanted = (formula(x, scale, zero, low, high) - zero).astype(np.float32) * np.float32(scale)
    assert np.array_equal(result, wanted)


@pytest.mark.parametrize(
    ("blocks", "scales"),
    [([3, 4], (1,)), ([1, 4], (3, 1)), ([3, 1], (1, 4)), ([1, 2], (3, 2))],
)
def test_conversions_of_torchao(blocks: list[int], scales: tuple[int, ...]) -> None:
    """A scale for each block: the tensor, a row, a column, or a part of a row."""
    generator = np.random.default_rng(1)
    scale = generator.uniform(0.05, 0.2, scales).astype(np.float32)
    zero = generator.integers(-3, 4, scales)
    x = generator.uniform(-9, 9, (3, 4)).astype(np.float32)
    program = TorchProgram({"x": (x.shape, "float32")}, {"scale": scale, "zero": zero})
    kind = {"block_size": blocks, "scale": "b_scale", "zero_point": "b_zero"}
    int8 = {"as_scalar_type": NUMBERS["int8"]}
    program.add("torchao.quantize_affine.default", "q", x.shape, "int8",
                input="x", output_dtype=int8, **kind)  # fmt: skip
    program.outputs = [program.add("torchao.dequantize_affine.default", "y", x.shape,
                                   input="q", input_dtype=int8, **kind)]  # fmt: skip
    (result,) = reference.execute(graph_of(program), {"x": x}).values()
    of_each, zeros = (
        np.broadcast_to(values.reshape(scales if len(scales) > 1 else (1, 1)).repeat(
            blocks[1] if len(scales) > 1 else 1, axis=1
        )[:, :4], x.shape)
        for values in (scale, zero)
    )  # fmt: skip
    inverse = np.float32(1) / of_each
    stored = np.clip(np.rint(x * inverse).astype(np.int64) + zeros, -128, 127)
    assert np.array_equal(result, (stored - zeros).astype(np.float32) * of_each)


def layer(per_channel: bool, bias: Array) -> TorchProgram:
    """Return a dense layer between conversions, with a float bias as PT2E leaves it."""
    generator = np.random.default_rng(3)
    weights = generator.integers(-127, 128, (4, 8)).astype(np.int8)
    scales = np.array([0.01, 0.02, 0.015, 0.03], np.float32)
    buffers: dict[str, Array] = {"w": weights, "bias": bias}
    if per_channel:
        buffers |= {"scales": scales, "zeros": np.zeros(4, np.int64)}
    program = TorchProgram({"x": ((3, 8), "float32")}, buffers)
    kind, of_weights = stored_as("int8", -128, 127), stored_as("int8", -127, 127)
    program.add(f"{Q}quantize_per_tensor.default", "q", (3, 8), "int8",
                input="x", scale=0.05, zero_point=3, **kind)  # fmt: skip
    program.add(f"{Q}dequantize_per_tensor.default", "d", (3, 8),
                input="q", scale=0.05, zero_point=3, **kind)  # fmt: skip
    if per_channel:
        program.add(f"{Q}dequantize_per_channel.default", "dw", (4, 8), input="b_w",
                    scales="b_scales", zero_points="b_zeros", axis=0, **of_weights)  # fmt: skip
    else:
        program.add(f"{Q}dequantize_per_tensor.default", "dw", (4, 8),
                    input="b_w", scale=0.01, zero_point=0, **of_weights)  # fmt: skip
    program.add("aten.linear.default", "l", (3, 4), input="d", weight="dw", bias="b_bias")
    program.add(f"{Q}quantize_per_tensor.default", "p", (3, 4), "int8",
                input="l", scale=0.2, zero_point=-5, **kind)  # fmt: skip
    program.outputs = [program.add(f"{Q}dequantize_per_tensor.default", "y", (3, 4),
                                   input="p", scale=0.2, zero_point=-5, **kind)]  # fmt: skip
    return program


@pytest.mark.parametrize("per_channel", [False, True])
def test_a_layer_becomes_integers(per_channel: bool) -> None:
    """Its integers are those of exact sums with a bias at their scale."""
    bias = np.array([0.3, -1.1, 0.0, 2.7], np.float32)
    program = layer(per_channel, bias)
    graph = graph_of(program)
    (dense,) = (node for node in graph.nodes if isinstance(node.op, FullyConnected))
    assert {tensor.dtype.value for tensor in (*dense.inputs[:2], dense.output)} == {"int8"}
    assert made_for(graph) is Numerics.PT2E
    assert completed(CompilationConfig(targets="c"), graph).numerics is Numerics.PT2E
    x = np.random.default_rng(4).uniform(-7, 7, (3, 8)).astype(np.float32)
    (result,) = reference.execute(graph, {"x": x}).values()
    stored = formula(x, 0.05, 3, -128, 127) - 3
    weights = program.buffers["w"].astype(np.int64)
    scales = program.buffers["scales"] if per_channel else np.full(4, 0.01, np.float32)
    step = scales.astype(np.float64) * np.float64(np.float32(0.05))
    sums = stored @ weights.T + np.rint(bias / step).astype(np.int64)
    exact = sums * step * np.float64(np.float32(1 / np.float64(np.float32(0.2))))
    wanted = np.clip(np.rint(exact) - 5, -128, 127)
    made = np.rint(result / np.float32(0.2)) - 5
    assert np.array_equal(made, wanted)


def real(program: TorchProgram, name: str, shape: list[int], scale: float, zero: int) -> str:
    """Add what stores a value as int8 and gives its real numbers again; return their name."""
    kind = stored_as("int8", -128, 127)
    ends = {"scale": scale, "zero_point": zero, **kind}
    program.add(f"{Q}quantize_per_tensor.default", f"{name}_q", shape, "int8", input=name, **ends)
    return program.add(
        f"{Q}dequantize_per_tensor.default", f"{name}_d", shape, input=f"{name}_q", **ends
    )


def are_integers(graph: Graph) -> bool:
    """Return whether floats are converted or turned alone: nothing computes with them."""
    converted = (n for n in graph.nodes if not isinstance(n.op, Quantize | Dequantize | Transpose))
    return not any(t.dtype.is_float for n in converted for t in (*n.inputs, *n.outputs))


def test_products_of_matrices_become_integers() -> None:
    """Both matrices are activations; the second one is turned, as keys of attention are."""
    program = TorchProgram({"x": ((1, 3, 4), "float32"), "y": ((1, 5, 4), "float32")})
    first, second = (real(program, n, s, 0.05, z) for n, s, z in
                     (("x", [1, 3, 4], 3), ("y", [1, 5, 4], -6)))  # fmt: skip
    program.add("aten.transpose.int", "t", [1, 4, 5], self=second, dim0=-2, dim1=-1)
    program.add("aten.matmul.default", "m", [1, 3, 5], self=first, other="t")
    program.outputs = [real(program, "m", [1, 3, 5], 0.11, 2)]
    graph = graph_of(program)
    assert are_integers(graph)
    rng = np.random.default_rng(6)
    data = {n: rng.uniform(-6, 6, s).astype(np.float32)
            for n, s in (("x", (1, 3, 4)), ("y", (1, 5, 4)))}  # fmt: skip
    (result,) = reference.execute(graph, data).values()
    a = formula(data["x"], 0.05, 3, -128, 127) - 3
    b = formula(data["y"], 0.05, -6, -128, 127) + 6
    exact = a @ b.swapaxes(1, 2) * np.float64(np.float32(0.05)) ** 2
    wanted = formula(exact, 0.11, 2, -128, 127)
    assert np.array_equal(np.rint(result / np.float32(0.11)) + 2, wanted)


@pytest.mark.parametrize("groups", [1, 2])
def test_transposed_convolutions_become_integers(groups: int) -> None:
    """Weights (I, O / groups, ...) have a scale for each of the second axis."""
    rng = np.random.default_rng(7)
    weights = rng.integers(-127, 128, (4, 2, 3, 3)).astype(np.int8)
    scales = np.array([0.02, 0.013], np.float32)
    bias = rng.normal(0, 1, 2 * groups).astype(np.float32)
    buffers: dict[str, Array] = {
        "w": weights,
        "bias": bias,
        "scales": scales,
        "zeros": np.zeros(2, np.int64),
    }
    program = TorchProgram({"x": ((1, 4, 3, 3), "float32")}, buffers)
    image, size = real(program, "x", [1, 4, 3, 3], 0.05, 3), [1, 2 * groups, 7, 7]
    program.add(f"{Q}dequantize_per_channel.default", "dw", (4, 2, 3, 3), input="b_w",
                scales="b_scales", zero_points="b_zeros", axis=1,
                **stored_as("int8", -127, 127))  # fmt: skip
    program.add("aten.conv_transpose2d.input", "c", size, input=image, weight="dw",
                bias="b_bias", stride=[2, 2], groups=groups)  # fmt: skip
    program.add("aten.relu.default", "r", size, self="c")
    program.outputs = [real(program, "r", size, 0.2, -100)]
    graph = graph_of(program)
    assert are_integers(graph)
    x = rng.uniform(-6, 6, (1, 4, 3, 3)).astype(np.float32)
    (result,) = reference.execute(graph, {"x": x}).values()
    centred = formula(x, 0.05, 3, -128, 127) - 3
    step = np.float64(np.float32(0.05)) * np.tile(scales, groups).astype(np.float64)
    sums = np.zeros(size, np.int64) + np.rint(bias / step).astype(np.int64)[:, None, None]
    each = 4 // groups
    for i, o, row, column, down, right in np.ndindex(4, 2, 3, 3, 3, 3):
        term = centred[0, i, row, column] * int(weights[i, o, down, right])
        sums[0, i // each * 2 + o, 2 * row + down, 2 * column + right] += term
    exact = np.maximum(sums * step[:, None, None], 0.0)
    wanted = formula(exact, 0.2, -100, -128, 127)
    assert np.array_equal(np.rint(result / np.float32(0.2)) - 100, wanted)


def test_functions_of_one_tensor_become_a_table() -> None:
    """Several operators on elements of one tensor, and numbers, between integers."""
    program, shape = TorchProgram({"x": ((2, 9), "float32")}), [2, 9]
    x = real(program, "x", shape, 0.05, 3)
    program.add("aten.sigmoid.default", "s", shape, self=x)
    program.add("aten.mul.Tensor", "m", shape, self=x, other="s")
    program.add("aten.add.Tensor", "a", shape, self="m", other=1.5)
    program.add("aten.leaky_relu.default", "l", shape, self="a", negative_slope=0.1)
    program.outputs = [real(program, "l", shape, 0.07, -4)]
    graph = graph_of(program)
    assert are_integers(graph) and len(graph.nodes) == 3
    data = np.linspace(-7, 7, 18, dtype=np.float32).reshape(2, 9)
    (result,) = reference.execute(graph, {"x": data}).values()
    value = (formula(data, 0.05, 3, -128, 127) - 3) * np.float64(np.float32(0.05))
    total = value / (1 + np.exp(-value)) + 1.5
    wanted = formula(np.where(total < 0, 0.1 * total, total), 0.07, -4, -128, 127)
    assert np.array_equal(np.rint(result / np.float32(0.07)) - 4, wanted)


def test_parts_of_a_join_become_integers() -> None:
    """What only a concatenation takes is quantised before it, at its scale."""
    program = TorchProgram({"x": ((1, 4), "float32"), "y": ((1, 4), "float32")})
    x, y = (real(program, name, [1, 4], scale, 1) for name, scale in (("x", 0.05), ("y", 0.04)))
    program.add("aten.sigmoid.default", "s", [1, 4], self=x)
    program.add("aten.cat.default", "c", [1, 8], tensors=["s", y], dim=1)
    program.outputs = [real(program, "c", [1, 8], 0.03, 0)]
    graph = graph_of(program)
    assert are_integers(graph)
    data = np.array([[-3.0, -0.4, 0.2, 5.0]], np.float32)
    (result,) = reference.execute(graph, {"x": data, "y": data / 2}).values()
    first, second = (
        (formula(v, s, 1, -128, 127) - 1) * np.float64(np.float32(s))
        for v, s in ((data, 0.05), (data / 2, 0.04))
    )
    wanted = formula(np.concatenate([1 / (1 + np.exp(-first)), second], 1), 0.03, 0, -128, 127)
    assert np.array_equal(np.rint(result / np.float32(0.03)), wanted)


def refusal(program: TorchProgram, **changes: object) -> MicrotirError:
    """Return why a program is refused whose first conversion has other arguments."""
    members = program.members()
    document = json.loads(members["models/model.json"])
    for item in document["graph_module"]["graph"]["nodes"][0]["inputs"]:
        if item["name"] in changes:
            item["arg"] = changes[item["name"]]
    problem, *_ = check(zipped({**members, "models/model.json": json.dumps(document).encode()}))
    return problem


CHANGES: Mapping[str, tuple[dict[str, object], str]] = {
    "a scale of 0": ({"scale": {"as_float": 0.0}}, "not a finite number above 0"),
    "no number": ({"scale": {"as_float": "NaN"}}, "not a finite number above 0"),
    "an infinite scale": ({"scale": {"as_float": "Infinity"}}, "not a finite number above 0"),
    "a negative scale": ({"scale": {"as_float": -1.0}}, "not a finite number above 0"),
    "a zero point outside": ({"zero_point": {"as_int": 200}}, "a zero point"),
    "an empty range": ({"quant_min": {"as_int": 127}}, "its range is 127 to 127"),
    "a range outside": ({"quant_max": {"as_int": 300}}, "its range is -128 to 300"),
    "floats": ({"dtype": {"as_scalar_type": 7}}, "no integer type"),
    "a computed scale": ({"scale": {"as_tensor": {"name": "x"}}}, "computes its 'scale'"),
}


@pytest.mark.parametrize("name", CHANGES)
def test_scales_and_ranges_are_checked(name: str) -> None:
    """They stand in the file as anything may."""
    changes, text = CHANGES[name]
    assert text in refusal(layer(False, np.zeros(4, np.float32)), **changes).what
