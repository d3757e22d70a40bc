"""Operands that a node must have are asked for by name, so that a defect of a reader is one."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from microtir.frontend import check, from_torch
from microtir.frontend.torch import node as nodes
from microtir.graph.ir import Tensor
from microtir.operators.common.torch_operands import TorchNode, TorchReader
from tests.support.torch_programs import TorchProgram

# Operator, arguments, what is said: "s" is a number, "v" a vector.
MISSING: Mapping[str, tuple[str, dict[str, object], str]] = {
    "an axis of a scalar": (
        "select.int", {"self": "s", "dim": 0, "index": 0}, "axis 0 of a tensor with 0 dimensions",
    ),
    "no tensors to join": ("cat.default", {"tensors": [], "dim": 0}, "'tensors' has 0 tensors"),
    "the weights of a cell": (
        "rnn_tanh_cell.default", {"input": "v", "hx": "v", "w_ih": "v"},
        "the argument 'w_hh' is missing",
    ),
    "rows of a vector": ("cdist.default", {"x1": "v", "x2": "v"}, "'x1' has 1 dimensions"),
    "boundaries": (
        "searchsorted.Tensor", {"sorted_sequence": "s", "self": "v"},
        "'sorted_sequence' has 0 dimensions",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", MISSING)
def test_what_is_missing_is_named(name: str) -> None:
    """A diagnostic says which operand, or which axis of it."""
    operator, arguments, text = MISSING[name]
    program = TorchProgram({"s": ((), "float32"), "v": ((3,), "float32")})
    program.outputs = [program.add(f"aten.{operator}", "y", (3,), **arguments)]
    (problem,) = check(program.archive())
    assert text in problem.what


def test_defects_of_readers_are_no_diagnostics(monkeypatch: pytest.MonkeyPatch) -> None:
    """An index that a reader has wrong is not told to the user as a fault of the file."""

    def broken(node: TorchNode) -> Tensor:
        return (node.tensor("self"),)[int(node.has("self"))]

    reader = TorchReader("aten.relu.default", broken, ("self",))
    monkeypatch.setattr(nodes, "reader_of", lambda _target: (reader, False))
    program = TorchProgram({"v": ((3,), "float32")})
    program.outputs = [program.add("aten.relu.default", "y", (3,), self="v")]
    with pytest.raises(IndexError):
        from_torch(program.archive())


ADVICE = {
    "aten._pack_padded_sequence.default": "padded sequences",
    "quantized_decomposed.choose_qparams.tensor": "is_dynamic=False",
    "quantized_decomposed.quantize_per_channel_group.default": "statically",
    "torchao.choose_qparams_affine.default": "statically",
    "aten.lgamma.default": "a table",
    "aten.fractional_max_pool2d.default": "windows are random",
    "torchvision.roi_align.default": "before torchvision's operator",
    "torchvision.nms.default": "before torchvision's operator",
    "quantized_decomposed.quantize_per_token.default": "statically",
}


@pytest.mark.parametrize("target", ADVICE)
def test_operators_that_are_not_read_say_what_to_write(target: str) -> None:
    """The fix is one that helps for this operator."""
    program = TorchProgram({"v": ((3,), "float32")})
    program.outputs = [program.add(target, "y", (3,), self="v")]
    (problem,) = check(program.archive())
    assert ADVICE[target] in str(problem)
