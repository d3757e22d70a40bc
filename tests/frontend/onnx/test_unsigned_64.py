"""Integers of 64 bits without a sign: numbers that int64 does not hold, against numpy's."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from onnx import TensorProto, helper

import microtir
from microtir import host
from microtir.dtype import DType
from microtir.frontend import from_onnx
from microtir.frontend.onnx import check_onnx
from microtir.graph.ir import Array, Graph, Node, SourceLocation, Tensor, TensorType
from microtir.module.ir_module import IRModule
from microtir.operators.common.attributes import Activation
from microtir.operators.division.definition import Div
from microtir.rewrite.reference import execute
from microtir.rewrite.verify import verify
from tests.support.onnx_models import model_of, typed

U64 = np.uint64
EDGES = [0, 1, 2, 3, (1 << 32) + 5, (1 << 53) + 1, (1 << 63) - 1, 1 << 63, (1 << 63) + 9]
NUMBERS = np.array([*EDGES, (1 << 64) - 1 - 2048, (1 << 64) - 1], U64)
A, B = (x.reshape(-1) for x in np.meshgrid(NUMBERS, NUMBERS))
SHIFTS = np.resize(np.array([0, 1, 31, 32, 62, 63, 64, 200], U64), A.shape)
FLOATS = np.resize(np.array([-1.5, 0, 0.5, 2**40, 2**63, 1.5 * 2**63, 2**65, np.nan], np.float32),
                   A.shape)  # fmt: skip
SIGNED = A.view(np.int64)


def to(dtype: Any) -> dict[str, int]:
    """The attribute of a Cast."""
    return {"to": helper.np_dtype_to_tensor_dtype(np.dtype(dtype))}


def shifted(count: Array, way: Callable[[Array, Array], Array]) -> Array:
    """A shift of A, of which nothing is left by 64 bits and more."""
    return np.where(count < 64, way(A, np.minimum(count, U64(63))), U64(0))


OVER = np.where(A > 0, U64((1 << 64) - 1), U64(0))
DIVISOR = np.where(B == 0, U64(1), B)
CASES: list[tuple[str, str, dict[str, Any], Array]] = [
    ("Add", "a b", {}, A + B), ("Sub", "a b", {}, A - B), ("Mul", "a b", {}, A * B),
    ("Div", "a b", {}, np.where(B == 0, OVER, A // DIVISOR)),
    ("Mod", "a b", {}, np.where(B == 0, U64(0), A % DIVISOR)),
    ("Min", "a b", {}, np.minimum(A, B)), ("Max", "a b", {}, np.maximum(A, B)),
    ("Less", "a b", {}, A < B), ("LessOrEqual", "a b", {}, A <= B), ("Equal", "a b", {}, A == B),
    ("Greater", "a b", {}, A > B), ("GreaterOrEqual", "a b", {}, A >= B),
    ("BitwiseAnd", "a b", {}, A & B), ("BitwiseOr", "a b", {}, A | B),
    ("BitwiseXor", "a b", {}, A ^ B), ("BitwiseNot", "a", {}, ~A),
    ("BitShift", "a s", {"direction": "LEFT"}, shifted(SHIFTS, np.left_shift)),
    ("BitShift", "a s", {"direction": "RIGHT"}, shifted(SHIFTS, np.right_shift)),
    ("Cast", "a", to(np.float32), A.astype(np.float32)),
    ("Cast", "a", to(np.int64), SIGNED), ("Cast", "a", to(np.int8), A.astype(np.int8)),
    ("Cast", "a", to(np.uint32), A.astype(np.uint32)), ("Cast", "a", to(np.bool_), A != 0),
    ("Cast", "i", to(U64), A), ("Cast", "n", to(U64), SIGNED.astype(np.int16).astype(U64)),
    ("Cast", "f", to(U64), np.array([
        0 if not x > 0 else (1 << 64) - 1 if x >= 2**64 else int(x) for x in FLOATS.tolist()
    ], U64)),
    ("BitCast", "a", to(np.int64), SIGNED),
    ("Gather", "a first", {}, A[[3, 0]]), ("Concat", "a b", {"axis": 0}, np.concatenate([A, B])),
    ("Transpose", "m", {}, A.reshape(11, 11).T),
    ("Where", "c a b", {}, np.where(A < B, A, B)), ("Identity", "a", {}, A),
]  # fmt: skip
GIVEN: dict[str, Array] = {
    "a": A, "b": B, "s": SHIFTS, "f": FLOATS, "i": SIGNED, "n": SIGNED.astype(np.int16), "c": A < B,
    "m": A.reshape(11, 11),
}  # fmt: skip


def whole_model() -> bytes:
    """All cases in one model, each an output."""
    nodes, outputs = [], []
    for number, (operator, inputs, attributes, want) in enumerate(CASES):
        name = f"y{number}"
        nodes.append(helper.make_node(operator, inputs.split(), [name], **attributes))
        outputs.append(typed(name, want))
    inputs_of_model = [typed(name, array) for name, array in GIVEN.items()]
    return model_of(nodes, inputs_of_model, outputs, {"first": np.array([3, 0])}, opset=26)


def test_numbers_are_numpys() -> None:
    """By the meaning of the graph, and by the C: no number is taken for one below 0."""
    model = whole_model()
    graph = from_onnx(model).graph
    assert graph is not None
    verify(graph)
    loaded = host.load(microtir.build(from_onnx(model)), sanitize=True)
    with np.errstate(all="ignore"):
        meant = execute(graph, GIVEN)
    for found in (meant, loaded.run(GIVEN)):
        for number, (operator, _, attributes, want) in enumerate(CASES):
            got = found[f"y{number}"]
            assert got.dtype == want.dtype
            np.testing.assert_array_equal(got, want, err_msg=f"{operator} {attributes}")


def test_the_largest_and_the_smallest() -> None:
    """TopK sorts numbers above 2^63 in front, with the first of equal ones first."""
    given = np.array([[5, 1 << 63, 7, (1 << 64) - 1, 1 << 63]], U64)
    for largest, want in ((1, [3, 1, 4]), (0, [0, 2, 1])):
        node = helper.make_node("TopK", ["x", "k"], ["y", "at"], largest=largest)
        outputs = [typed("y", (1, 3), U64), typed("at", (1, 3), np.int64)]
        graph = from_onnx(
            model_of([node], [typed("x", given)], outputs, {"k": np.array([3])})
        ).graph
        assert graph is not None
        got = execute(graph, {"x": given})
        assert got["at"].tolist() == [want]
        np.testing.assert_array_equal(got["y"], given[:, want])


@pytest.mark.parametrize("operator", ["Abs", "Sign", "ReduceSum", "ReduceMax", "CumSum", "Sqrt"])
def test_what_is_not_computed_is_named(operator: str) -> None:
    """What has no form for them is refused, with the type."""
    more = ["axis"] if operator == "CumSum" else []
    node = helper.make_node(operator, ["x", *more], ["y"])
    output = helper.make_tensor_value_info("y", TensorProto.UINT64, None)
    model = model_of([node], [typed("x", (3,), U64)], [output], {"axis": np.array(0)})
    (problem,) = check_onnx(model)
    assert f"{operator} ('y')" in str(problem) and "uint64" in str(problem)


def test_a_quotient_that_is_clamped() -> None:
    """A fused activation is none of ONNX's, but the operator has it for all types."""
    a, b, y = (Tensor(name, TensorType(A.shape, DType.UINT64)) for name in "aby")
    node = Node(Div(Activation.RELU6), (a, b), (y,), "y", SourceLocation("", 0, "DIV"))
    module = IRModule(graph=Graph("quotient", (a, b), (y,), (node,)))
    given = {"a": A, "b": B}
    want = np.minimum(np.where(B == 0, OVER, A // DIVISOR), U64(6))
    assert module.graph is not None
    for got in (execute(module.graph, given), host.load(microtir.build(module)).run(given)):
        np.testing.assert_array_equal(got["y"], want)
