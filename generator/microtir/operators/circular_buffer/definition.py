"""Define the ring of newest inputs that tflite-micro's streaming models keep, and its counter."""

from __future__ import annotations

from dataclasses import dataclass

from microtir.dtype import DType
from microtir.graph.ir import Node
from microtir.graph.operator import Operator
from microtir.operators.common import quantization, types
from microtir.operators.common.shapes import Shape, input_shape, require
from microtir.operators.definition import Definition, Trait


@dataclass(frozen=True, slots=True)
class CircularBuffer(Operator):
    """CIRCULAR_BUFFER: drops the oldest slot of a ring and puts a new one behind the others.

    Inputs: the ring (1, slots, W, C), the newest slot (1, 1, W, C).
    """


@dataclass(frozen=True, slots=True)
class Countdown(Operator):
    """Says in every run of number `period` that it is one; the counter begins with `period`.

    Input: the runs that are left, this one among them.  Outputs: whether this run is the last of
    them, and those left for the next.
    """

    period: int = 1


def _ring_shape(node: Node) -> tuple[Shape, ...]:
    ring, newest = input_shape(node, 0, 4), node.inputs[1].shape
    expected = (1, 1, *ring[2:])
    require(ring[0] == 1, f"a ring of {ring[0]} images", "1")
    require(newest == expected, f"a slot of the shape {newest}", f"{expected}, by the ring")
    return (ring,)


def _counter_shapes(node: Node) -> tuple[Shape, ...]:
    op, shape = node.attributes(Countdown), node.inputs[0].shape
    require(op.period >= 1, f"a period of {op.period} runs", "1 or more")
    require(shape == (), f"a counter of the shape {shape}", "a number")
    return ((), ())


DEFINITIONS = (
    Definition(
        CircularBuffer,
        types.equal_types(DType.INT8),
        quantization.EQUAL,
        shapes=_ring_shape,
        inputs=(2, 2),
        traits=frozenset({Trait.IN_PLACE}),
        limits="one image; operators after it run once in cycles_max runs",
    ),
    Definition(
        Countdown,
        types.TypeRule((types.TypeSignature((DType.INT32,), DType.BOOL, (DType.INT32,)),)),
        quantization.UNUSED,
        shapes=_counter_shapes,
        outputs=2,
        traits=frozenset({Trait.KEEPS_LAST}),
    ),
)
