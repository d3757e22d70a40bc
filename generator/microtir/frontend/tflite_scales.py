"""Operators with a meaning in one scale whose tensors have several: as references compute them.

References move stored integers from input to output, whatever scale either is said to have.  Such
a node gets one scale here, that of its output, and nodes beside it that say which stored values
are taken for those of another scale.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace

from microtir.frontend.tflite_channels import moves_scales_of_channels, scales_follow
from microtir.graph.ir import Node, Quantization, Tensor, TensorType
from microtir.operators.common.quantization import is_near
from microtir.operators.common.unlike_scales import (
    COPIED,
    NARROW,
    FixedResult,
    Moved,
    UnlikeScales,
)
from microtir.operators.movement.definition import Relabel


def is_unlike(source: TensorType, taken: TensorType) -> bool:
    """Return whether integers of one type stand for other numbers than those of another."""
    return source.dtype in NARROW and source.quantization != taken.quantization


@dataclass(frozen=True, slots=True)
class OneScale:
    """Makes nodes of one scale of nodes of several.

    Args:
        new_tensor: gives a tensor of a name that is not taken.
        new_label: gives a name of a node.
    """

    new_tensor: Callable[[str, TensorType], Tensor]
    new_label: Callable[[str], str]

    def nodes(self, node: Node, moved: Moved | None, fixed: Sequence[FixedResult]) -> list[Node]:
        """Return what stands for a node.

        Args:
            node: as it was read.
            moved: what references do where scales differ that are to be one.
            fixed: what they do where the output has another one than its results.
        """
        types = node.inputs[0].dtype, node.outputs[0].dtype
        own = next((one for one in fixed if one.is_of(*types)), None)
        return self._moved(node, moved) if own is None else self._computed_in(node, own)

    def _computed_in(self, node: Node, fixed: FixedResult) -> list[Node]:
        """Return a node that computes in the fixed quantisation, and what relabels its results."""
        output = node.output
        quant = output.type.quantization
        if quant is None or quant == fixed.quantization or quant.is_per_channel:
            return [node]
        if fixed.refused_by_micro and is_near(quant, fixed.quantization):
            return [node]  # that is the fixed one, for every reference
        by_micro, by_litert = fixed.by_micro(quant), fixed.by_litert(quant)
        if by_micro is by_litert is UnlikeScales.REFUSES:
            return [node]
        computed = self.new_tensor(
            f"{output.name}_stored", replace(output.type, quantization=fixed.quantization)
        )
        name = self.new_label(f"{node.name}_relabelled")
        label = Relabel(by_micro, by_litert, node.name)
        return [
            replace(node, outputs=(computed,)),
            Node(label, (computed,), (output,), name, node.source),
        ]

    def _moved(self, node: Node, moved: Moved | None) -> list[Node]:
        """Return a node itself, if its scales are equal or no reference takes it.

        The operator itself is there once, and all others are `Relabel`.
        """
        data = _data(node)
        dtype = node.inputs[0].dtype
        scales = [tensor.type.quantization for tensor in data]
        of_channels = [quant is not None and quant.is_per_channel for quant in scales]
        if moved is None or (not any(of_channels) and all(q == scales[0] for q in scales)):
            return [node]
        in_input_scale = moved.in_input_scale or len(node.outputs) > 1
        common = scales[0] if in_input_scale else node.outputs[0].type.quantization
        taken: Quantization | None = None
        if any(of_channels):
            if not moves_scales_of_channels(node, moved):
                return [node]
            # The operator itself is told of no scale: it only moves what is stored.
            common, taken = None, None if scales_follow(node) else scales[0]
            moved = COPIED if all(of_channels) else moved
        stored = {
            tensor: self.new_tensor(
                f"{tensor.name}_stored", replace(tensor.type, quantization=common)
            )
            for tensor in dict.fromkeys(data)
            if tensor.type.quantization != common
        }
        copied = _copied(node, moved, stored)
        if len(copied) < len(stored) and not moved.takes(dtype):
            return [node]
        computed = replace(
            node,
            inputs=tuple(stored.get(tensor, tensor) for tensor in node.inputs),
            outputs=tuple(stored.get(tensor, tensor) for tensor in node.outputs),
        )
        before = [
            self._node(None if tensor in copied else moved, node, tensor, taken)
            for tensor, taken in stored.items()
            if tensor not in node.outputs
        ]
        behind = [
            self._node(None if tensor in copied else moved, node, stored[tensor], tensor, taken)
            for tensor in node.outputs
            if tensor in stored
        ]
        return [*before, computed, *behind]

    def _node(
        self, moved: Moved | None, node: Node, source: Tensor, target: Tensor,
        taken: Quantization | None = None,
    ) -> Node:  # fmt: skip
        label = Relabel(named=node.name, taken=taken)
        if moved is not None:
            label = replace(
                label,
                by_micro=moved.by_micro(source.type, target.type),
                by_litert=moved.by_litert(source.dtype),
            )
        name = self.new_label(f"{node.name}_relabelled")
        return Node(label, (source,), (target,), name, node.source)


def _copied(node: Node, moved: Moved, unlike: Iterable[Tensor]) -> frozenset[Tensor]:
    """Return the tensors in another scale of which no reference asks it."""
    compared = {tensor for i, tensor in enumerate(node.inputs) if moved.is_compared(i)}
    if moved.compared is None:
        compared.update(node.outputs)
    return frozenset(unlike) - compared


def _data(node: Node) -> list[Tensor]:
    """Return the tensors that one scale is asked of: those of the type of the first input."""
    dtype = node.inputs[0].dtype
    return [tensor for tensor in (*node.inputs, *node.outputs) if tensor.dtype is dtype]
