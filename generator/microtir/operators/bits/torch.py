"""Read PyTorch's operators on bits; of booleans they are logic."""

from __future__ import annotations

from collections.abc import Callable

from microtir.dtype import DType
from microtir.graph.ir import Tensor
from microtir.operators.arithmetic.torch import pair
from microtir.operators.common.torch_operands import TorchNode, TorchReader
from microtir.operators.common.torch_rows import readers


def _bitwise(name: str) -> Callable[[TorchNode], Tensor]:
    def read(node: TorchNode) -> Tensor:
        a, b = pair(node)
        return node.onnx(name if a.dtype is DType.BOOL else f"Bitwise{name}", a, b)

    return read


def invert(node: TorchNode) -> Tensor:
    """Read bitwise_not."""
    x = node.tensor("self")
    return node.onnx("Not" if x.dtype is DType.BOOL else "BitwiseNot", x)


def _shift(direction: str) -> Callable[[TorchNode], Tensor]:
    return lambda node: node.onnx("BitShift", *pair(node), direction=direction)


TORCH_READERS: tuple[TorchReader, ...] = (
    *(
        row
        for name in ("And", "Or", "Xor")
        for row in readers(
            _bitwise(name), "self other",
            *(f"{form}.{kind}" for form in (f"bitwise_{name.lower()}", f"__{name.lower()}__")
              for kind in ("Tensor", "Scalar")),
        )
    ),
    *readers(invert, "self", "bitwise_not"),
    *readers(
        _shift("LEFT"), "self other",
        "bitwise_left_shift.Tensor", "bitwise_left_shift.Tensor_Scalar", "__lshift__.Scalar",
    ),
    *readers(
        _shift("RIGHT"), "self other",
        "bitwise_right_shift.Tensor", "bitwise_right_shift.Tensor_Scalar", "__rshift__.Scalar",
    ),
)  # fmt: skip
