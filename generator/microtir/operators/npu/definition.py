"""Define operators that another compiler has made for an NPU.

What Vela makes of the layers that an Ethos-U computes is one operator: commands, and memory in
which the NPU finds its inputs and leaves its outputs, each at the byte that Vela chose.
"""

from __future__ import annotations

from dataclasses import dataclass

from microtir.graph.ir import Node, Tensor
from microtir.graph.operator import Operator
from microtir.operators.common import quantization, shapes, tflite_operands, types
from microtir.operators.definition import Definition, Trait

ALIGNMENT = 16
"""Bytes at a multiple of which the commands, and all memory of an Ethos-U, begin."""


@dataclass(frozen=True, slots=True)
class EthosU(Operator):
    """A command stream for an Ethos-U, made by Vela.

    Inputs are the commands, the weights if there are some, and what the CPU gives.

    Args:
        scratch: bytes that the NPU works in, with inputs and outputs among them.
        fast_scratch: bytes of faster memory that it works in besides; 0 for none.
        has_weights: whether input 1 holds weights.
        operands: the byte of the scratch at which each input from the CPU lies.
        results: the byte at which each output lies.
    """

    scratch: int = 0
    fast_scratch: int = 0
    has_weights: bool = False
    operands: tuple[int, ...] = ()
    results: tuple[int, ...] = ()

    def inputs_from_cpu(self, node: Node) -> tuple[Tensor, ...]:
        """Return the inputs that are neither commands nor weights."""
        return node.inputs[1 + self.has_weights :]


def _in_scratch(node: Node) -> tuple[shapes.Shape, ...]:
    """Check that inputs and outputs lie inside of the scratch."""
    op = node.attributes(EthosU)
    sides = ((op.inputs_from_cpu(node), op.operands), (node.outputs, op.results))
    for tensors, offsets in sides:
        shapes.require(len(tensors) == len(offsets), f"{len(offsets)} places", f"{len(tensors)}")
        for tensor, offset in zip(tensors, offsets, strict=True):
            shapes.require(
                0 <= offset <= op.scratch - tensor.type.bytes and offset % ALIGNMENT == 0,
                f"'{tensor.name}', {tensor.type.bytes} bytes, at byte {offset}",
                f"multiples of {ALIGNMENT}, inside of {op.scratch} bytes",
            )
    return shapes.declared_shapes(node)


DEFINITIONS = (
    Definition(
        EthosU,
        types=types.ANY_TYPES,
        quantization=quantization.UNUSED,
        shapes=_in_scratch,
        inputs=(2, tflite_operands.MANY),
        outputs=tflite_operands.MANY,
        traits=frozenset({Trait.OPAQUE}),
        limits="made by Vela, with the payload COP1",
    ),
)
