"""Read PyTorch's padding; its numbers are pairs that begin with the last axis."""

from __future__ import annotations

from microtir.graph.ir import Tensor
from microtir.operators.common.torch_operands import TorchNode, TorchReader
from microtir.operators.common.torch_rows import readers
from microtir.operators.common.torch_types import as_type

_MODES = {"constant": "constant", "reflect": "reflect", "replicate": "edge", "circular": "wrap"}
"""ONNX's names of the modes."""


def padded(node: TorchNode, x: Tensor, pads: tuple[int, ...], mode: str) -> Tensor:
    """Return a tensor that is larger, or smaller, at both ends of its last axes."""
    rank = len(x.shape)
    if len(pads) % 2 or len(pads) > 2 * rank:
        raise node.malformed(
            f"pads {pads} for {rank} axes", "two numbers for each of the last axes"
        )
    rest = (0,) * (rank - len(pads) // 2)
    before, after = (*rest, *pads[-2::-2]), (*rest, *pads[::-2])
    value = None
    if mode == "constant":
        value = as_type(node, node.number("value", 0), x.dtype)
    return node.onnx("Pad", x, node.ints(*before, *after), value, mode=_MODES[mode])


def pad(node: TorchNode) -> Tensor:
    """Read pad in any mode."""
    mode = node.text("mode", "constant")
    if mode not in _MODES:
        raise node.malformed(f"the mode {mode!r}", ", ".join(_MODES))
    return padded(node, node.tensor("self"), node.integers("pad", ()), mode)


def constant_pad(node: TorchNode) -> Tensor:
    """Read constant_pad_nd."""
    return padded(node, node.tensor("self"), node.integers("pad", ()), "constant")


def reflection_pad(node: TorchNode) -> Tensor:
    """Read reflection_pad1d, 2d and 3d."""
    return padded(node, node.tensor("self"), node.integers("padding"), "reflect")


def replication_pad(node: TorchNode) -> Tensor:
    """Read replication_pad1d, 2d and 3d."""
    return padded(node, node.tensor("self"), node.integers("padding"), "replicate")


TORCH_READERS: tuple[TorchReader, ...] = (
    *readers(pad, "self pad mode value", "pad"),
    *readers(constant_pad, "self pad value", "constant_pad_nd"),
    *readers(reflection_pad, "self padding", *(f"reflection_pad{n}d" for n in (1, 2, 3))),
    *readers(replication_pad, "self padding", *(f"replication_pad{n}d" for n in (1, 2, 3))),
)
