"""Small files that ask for much: a diagnostic within limits of time and memory."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import helper

from microtir.errors import MicrotirError
from microtir.frontend import check, from_onnx
from microtir.frontend.onnx.node import CANNOT_COMPUTE
from microtir.rewrite.reference import execute
from tests.support.onnx_models import (
    IR_VERSION,
    OPSET,
    model_of,
    run_onnxruntime,
    typed,
    with_inferred_outputs,
)

pytestmark = pytest.mark.tools

HUGE = 1 << 40
LINE, IMAGE = (1, 4), (1, 1, 4, 4)


def named(constants: Sequence[Any]) -> dict[str, Any]:
    """Return constants by names: numbers are int64, or float32 if they have a point."""
    return {
        f"c{n}": np.array(c, np.float32 if isinstance(np.ravel(c).tolist()[0], float) else np.int64)
        for n, c in enumerate(constants)
    }


def absurd(
    operator: str,
    constants: Sequence[Any] = (),
    shape: tuple[int, ...] = LINE,
    opset: int = OPSET,
    domain: str = "",
    dtype: Any = np.float32,
    **attributes: Any,
) -> bytes:
    """Return a model of one node on x and some constants."""
    held = named(constants)
    node = helper.make_node(operator, ["x", *held], ["y"], domain=domain, **attributes)
    domains = {domain: 3} if domain else {}
    return model_of([node], [typed("x", shape, dtype)], ["y"], held, opset, domains)


def of_constants(operator: str, *constants: Any, opset: int = OPSET, **attributes: Any) -> bytes:
    """Return a model that adds up what a node makes of constants."""
    held = named(constants)
    nodes = [
        helper.make_node(operator, list(held), ["made"], **attributes),
        helper.make_node("Cast", ["made"], ["floats"], to=onnx.TensorProto.FLOAT),
        helper.make_node("ReduceMax", ["floats"], ["most"]),
        helper.make_node("Add", ["x", "most"], ["y"]),
    ]
    return model_of(nodes, [typed("x", LINE)], ["y"], held, opset)


ABSURD = {
    "depth of one-hot": absurd("OneHot", [HUGE, [0.0, 1.0]], (4,), dtype=np.int64),
    "a depth that is no number": absurd("OneHot", [float("nan"), [0.0, 1.0]], (4,), dtype=np.int64),
    "expanded": absurd("Expand", [[HUGE, 4]]),
    "expanded to 3,000 axes": absurd("Expand", [[1] * 3000 + [4]]),
    "tiled": absurd("Tile", [[HUGE, HUGE]]),
    "resized": absurd("Upsample", [[1.0, 1.0, 1e12, 1e12]], IMAGE, opset=9),
    "resized by no number": absurd("Upsample", [[1.0, 1.0, float("nan"), 1.0]], IMAGE, opset=9),
    "resized by infinity": absurd("Upsample", [[1.0, 1.0, float("inf"), 1.0]], IMAGE, opset=9),
    "padded": absurd("Pad", [[0, 0, HUGE, HUGE, 0, 0, 0, 0]], IMAGE),
    "padded by the edge": absurd("Pad", [[0, 0, 1 << 30, 0, 0, 0, 0, 0]], IMAGE, mode="edge"),
    "padded by wrapping": absurd("Pad", [[0, 0, 1 << 30, 0, 0, 0, 0, 0]], IMAGE, mode="wrap"),
    "an input": absurd("Relu", shape=(HUGE, HUGE)),
    "a triangle": absurd("Trilu", shape=(20000, 20000)),
    "100,000 axes": absurd("Unsqueeze", [np.arange(100_000)]),
    "window without steps": absurd("Col2Im", [[4, 4], [2, 2]], (1, 4, 4), 18, strides=[0, 0]),
    "means of a huge window": absurd(
        "AveragePool", [], IMAGE, kernel_shape=[50_000, 2], dilations=[1, 2], pads=[49_999, 1] * 2
    ),
    "means of a huge volume": absurd(
        "AveragePool", [], (1, 1, 32, 32, 1 << 20), kernel_shape=[2] * 3
    ),
    "places of a huge volume": model_of(
        [helper.make_node("MaxPool", ["x"], ["y", "i"], kernel_shape=[2] * 3)],
        [typed("x", (1, 1, 32, 32, 1 << 20))],
        ["y", "i"],
    ),
    "an update of another batch": model_of(
        [helper.make_node("TensorScatter", ["x", "u", "at"], ["y"])],
        [typed("x", (3, 4, 5)), typed("u", (1000, 2, 5))],
        ["y"],
        {"at": np.array([1, 1, 0])},
        24,
    ),
    "100,000 parts": model_of(
        [
            helper.make_node("SplitToSequence", ["x"], ["parts"], axis=1, keepdims=0),
            helper.make_node("ConcatFromSequence", ["parts"], ["y"], axis=0),
        ],
        [typed("x", (1, 100_000))],
        ["y"],
    ),
    "frequencies": absurd("DFT", [HUGE], (1, 4, 1), 17, axis=1),
    "frames": absurd("STFT", [1 << 20, [1.0] * 8], (1, 4, 1), 17),
    "features": absurd("FeatureVectorizer", domain="ai.onnx.ml", inputdimensions=[HUGE]),
    "constants of a shape": of_constants("ConstantOfShape", [HUGE]),
    "constants of 70 axes": of_constants("ConstantOfShape", [1] * 70),
    "a range": of_constants("Range", 0, HUGE, 1),
    "a range to no number": of_constants("Range", 0.0, float("nan"), 1.0),
    "a range to infinity": of_constants("Range", 0.0, float("inf"), 1.0),
    "frequencies of hearing": of_constants(
        "MelWeightMatrix", 1 << 30, 1 << 30, 16000, 0.0, 8000.0, opset=17
    ),
    "no frequencies of hearing": of_constants(
        "MelWeightMatrix", 4, 16, 0, float("nan"), -8000.0, opset=17
    ),
    "a window of frames": of_constants("HannWindow", HUGE, opset=17),
}


def doubled(count: int, first: str) -> list[Any]:
    """Return nodes each of which makes a tensor twice as large."""
    names = [first, *(f"a{n}" for n in range(count))]
    return [helper.make_node("Concat", [a, a], [b], axis=0) for a, b in pairwise(names)]


def functions(count: int, calls: int = 2, *, back: bool = False) -> bytes:
    """Return a model with functions that call the next one some times, the last one the first."""
    sets = [helper.make_opsetid("", OPSET), helper.make_opsetid("own", 1)]
    made = []
    for n in range(count):
        names = [f"v{k}" for k in range(calls + 1)]
        callee = f"f{n + 1}" if n + 1 < count else "f0"
        is_last = n + 1 == count and not back
        nodes = [
            helper.make_node("Relu", [a], [b])
            if is_last
            else helper.make_node(callee, [a], [b], domain="own")
            for a, b in pairwise(names)
        ]
        made.append(helper.make_function("own", f"f{n}", [names[0]], [names[-1]], nodes, sets))
    graph = helper.make_graph([helper.make_node("f0", ["x"], ["y"], domain="own")], "g",
                              [typed("x", LINE)], [typed("y", LINE)])  # fmt: skip
    model = helper.make_model(graph, functions=made, opset_imports=sets, ir_version=IR_VERSION)
    return bytes(model.SerializeToString())


def chains() -> dict[str, bytes]:
    """Return models whose nodes ask for little each, and for much together."""
    sizes, held = np.array([1 << 12, 1 << 12]), {"c": np.ones(LINE, np.float32)}
    shaped = [helper.make_node("ConstantOfShape", ["s"], [f"c{n}"]) for n in range(40)]
    shaped.append(helper.make_node("Sum", [f"c{n}" for n in range(40)], ["y"]))
    copies = [helper.make_node("Neg", ["a19"], [f"z{n}"]) for n in range(40)]
    ends = [helper.make_node("Sum", [f"z{n}" for n in range(40)], ["y"])]
    squares = [
        helper.make_node("ConstantOfShape", ["s"], ["a"]),
        helper.make_node("MatMul", ["a", "a"], ["y"]),
    ]
    x = [typed("x", LINE)]
    return {
        "constants of shapes": model_of(shaped, x, ["y"], {"s": sizes}),
        "a tensor that doubles": model_of(doubled(60, "x"), x, ["a59"]),
        "a constant that doubles": model_of(doubled(60, "c"), x, ["a59"], held),
        "copies of a constant": model_of([*doubled(20, "c"), *copies, *ends], x, ["y"], held),
        "products of constants": model_of(squares, x, ["y"], {"s": sizes // 4}),
        "functions that call twice": functions(26),
        "functions in a circle": functions(3, back=True),
        "functions in a long row": functions(200, calls=1),
    }


CHAINS = chains()


@pytest.mark.parametrize("title", ABSURD)
def test_absurd_numbers(title: str) -> None:
    """A number that asks for gigabytes, or is none, is named, before anything is made of it."""
    problems = check(ABSURD[title])
    assert problems
    assert not any(CANNOT_COMPUTE in problem.what for problem in problems)


@pytest.mark.parametrize("title", CHAINS)
def test_nodes_that_ask_for_much_together(title: str) -> None:
    """What all nodes and functions of a small file come to has a limit, too."""
    assert check(CHAINS[title])


def test_functions_that_call_each_other() -> None:
    """Functions that come to little are read as what they compute."""
    graph = from_onnx(functions(6)).graph
    assert graph is not None
    x = np.array([[-1, 2, -3, 4]], np.float32)
    (got,) = execute(graph, {"x": x}).values()
    np.testing.assert_array_equal(got, np.maximum(x, 0))


@pytest.mark.parametrize("number", [float("nan"), float("inf")])
@pytest.mark.parametrize("size", [1, 4])
def test_a_scale_that_is_no_number(number: float, size: int) -> None:
    """A scale that makes a NaN of every value is refused."""
    scale = np.full(size, number, np.float32).reshape((size,) if size > 1 else ())
    zero = np.zeros(scale.shape, np.int8)
    nodes = [
        helper.make_node("QuantizeLinear", ["x", "s", "z"], ["q"]),
        helper.make_node("DequantizeLinear", ["q", "s", "z"], ["y"]),
    ]
    problems = check(model_of(nodes, [typed("x", LINE)], ["y"], {"s": scale, "z": zero}))
    assert "not a finite number" in problems[0].what


def test_wide_sums_of_few_channels() -> None:
    """LRN over more channels than there are adds up those that are there."""
    x = np.random.default_rng(0).standard_normal((1, 3, 2, 2)).astype(np.float32)
    for size in (1, 2, 4, 5, 6, 9, 1001):
        node = helper.make_node("LRN", ["x"], ["y"], size=size, alpha=2.0)
        model = model_of([node], [typed("x", x)], ["y"])
        (got,) = execute(read_graph(model), {"x": x}).values()
        if size % 2:  # onnxruntime refuses even ones
            (want,) = run_onnxruntime(with_inferred_outputs(model), {"x": x})
            np.testing.assert_allclose(got, want, rtol=1e-5)
    with pytest.raises(MicrotirError):
        from_onnx(absurd("LRN", [], IMAGE, size=0))


def read_graph(model: bytes) -> Any:
    """Return the graph of a model."""
    graph = from_onnx(model).graph
    assert graph is not None
    return graph


def test_an_output_that_is_an_input() -> None:
    """A graph without nodes gives what it is given, under names of their own."""
    x = np.array([[1, 2, 3, 4]], np.float32)
    graph = read_graph(model_of([], [typed("x", LINE)], [typed("x", LINE)]))
    assert len({tensor.name for tensor in (*graph.inputs, *graph.outputs)}) == 2
    (got,) = execute(graph, {"x": x}).values()
    np.testing.assert_array_equal(got, x)
