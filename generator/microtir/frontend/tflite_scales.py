"""Operators with a meaning in one scale whose tensors have several: as references compute them.

References move stored integers from input to output, whatever scale either is said to have.  Such
a node gets one scale here, that of its output, and nodes beside it that say which stored values
are taken for those of another scale.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace

from microtir.frontend.tflite_channels import clamps, scales_follow, scales_of_channels
from microtir.graph.ir import Node, Tensor, TensorType
from microtir.operators.common.quantization import is_near
from microtir.operators.common.unlike_scales import (
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
        scales = [tensor.type.quantization for tensor in data]
        of_channels = any(quant is not None and quant.is_per_channel for quant in scales)
        if moved is None or node.inputs[0].dtype not in moved.types:
            return [node]
        if not of_channels and (moved.has_own_scales or all(q == scales[0] for q in scales)):
            return [node]
        in_input_scale = moved.in_input_scale or len(node.outputs) > 1
        target = node.inputs[0] if in_input_scale else node.outputs[0]
        does = _done(node, moved, target.type)
        taken, told = None, True
        if of_channels:
            does = dict.fromkeys(data, _done_to_channels(node, does.values()))
            computed_in = scales_of_channels(node, data, moved, target)
            taken, told = scales[0], clamps(node) or not scales_follow(node)
        else:
            computed_in = dict.fromkeys(data, target.type.quantization)
        if (UnlikeScales.REFUSES, UnlikeScales.REFUSES) in does.values():
            return [node]
        stored = {
            tensor: self.new_tensor(
                f"{tensor.name}_stored", replace(tensor.type, quantization=quant)
            )
            for tensor, quant in computed_in.items()
            if tensor.type.quantization != quant
        }
        computed = replace(
            node,
            inputs=tuple(stored.get(tensor, tensor) for tensor in node.inputs),
            outputs=tuple(stored.get(tensor, tensor) for tensor in node.outputs),
        )
        before, behind = [], []
        # Of scales for each channel it is told once, where they are those of the model again.
        is_told_before = told and not (of_channels and stored.keys() & set(node.outputs))
        for tensor, inner in stored.items():
            label = Relabel(*does[tensor], node.name)
            name = self.new_label(f"{node.name}_relabelled")
            if tensor in node.outputs:
                label = replace(label, taken=taken, is_told=told)
                behind.append(Node(label, (inner,), (tensor,), name, node.source))
            else:
                label = replace(label, is_told=is_told_before)
                before.append(Node(label, (tensor,), (inner,), name, node.source))
        return [*before, computed, *behind]


_Done = tuple[UnlikeScales, UnlikeScales]
"""Treatment by tflite-micro and by LiteRT."""


def _done(node: Node, moved: Moved, target: TensorType) -> dict[Tensor, _Done]:
    """Return what references do with each tensor whose scale is compared with that of another."""
    compared = {tensor for i, tensor in enumerate(node.inputs) if moved.is_compared(i)}
    compared.update(node.outputs if moved.compared is None else ())
    return {
        tensor: (moved.by_micro(tensor.type, target), moved.by_litert(tensor.type, target))
        if tensor in compared
        else (UnlikeScales.COPIES, UnlikeScales.COPIES)
        for tensor in _data(node)
    }


def _done_to_channels(node: Node, does: Iterable[_Done]) -> _Done:
    """Return what references do with an operator of which they refuse no tensor, or one."""
    by_micro, by_litert = (
        UnlikeScales.REFUSES if UnlikeScales.REFUSES in one else UnlikeScales.COPIES
        for one in zip(*does, strict=True)
    )
    # It divides the bounds by a scale, and has that of 0.
    return by_micro, UnlikeScales.REFUSES if clamps(node) else by_litert


def _data(node: Node) -> list[Tensor]:
    """Return the tensors that one scale is asked of: those of the type of the first input."""
    dtype = node.inputs[0].dtype
    return [tensor for tensor in (*node.inputs, *node.outputs) if tensor.dtype is dtype]
