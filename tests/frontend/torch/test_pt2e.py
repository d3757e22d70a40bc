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
from microtir.operators.dense.definition import FullyConnected
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
    "a scale of 0": ({"scale": {"as_float": 0.0}}, "no finite number above 0"),
    "no number": ({"scale": {"as_float": "NaN"}}, "no finite number above 0"),
    "an infinite scale": ({"scale": {"as_float": "Infinity"}}, "no finite number above 0"),
    "a negative scale": ({"scale": {"as_float": -1.0}}, "no finite number above 0"),
    "a zero point outside": ({"zero_point": {"as_int": 200}}, "a zero point"),
    "an empty range": ({"quant_min": {"as_int": 127}}, "its range is 127 to 127"),
    "a range outside": ({"quant_max": {"as_int": 300}}, "its range is -128 to 300"),
    "floats": ({"dtype": {"as_scalar_type": 7}}, "no type that is one"),
    "a computed scale": ({"scale": {"as_tensor": {"name": "x"}}}, "computes its 'scale'"),
}


@pytest.mark.parametrize("name", CHANGES)
def test_scales_and_ranges_are_checked(name: str) -> None:
    """They stand in the file as anything may."""
    changes, text = CHANGES[name]
    assert text in refusal(layer(False, np.zeros(4, np.float32)), **changes).what
