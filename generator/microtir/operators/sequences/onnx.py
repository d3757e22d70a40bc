"""Read ONNX's operators on sequences, whose tensors are known one by one while compiling.

OptionalGetElement and OptionalHasElement stand here, too: what is no optional value has its
element.
"""

from __future__ import annotations

import numpy as np

from microtir.graph.ir import Tensor
from microtir.operators.common.onnx_operands import MANY, OnnxNode, OnnxReader
from microtir.operators.common.onnx_parts import along, joined, reshaped, stacked
from microtir.operators.common.onnx_values import TensorSequence, Value


def construct(node: OnnxNode) -> TensorSequence:
    """Read SequenceConstruct."""
    return TensorSequence(node.present)


def empty(_node: OnnxNode) -> TensorSequence:
    """Read SequenceEmpty; of what type it would have tensors says what is inserted."""
    return TensorSequence(())


def length(node: OnnxNode) -> Tensor:
    """Read SequenceLength."""
    return node.constant(np.array(len(node.sequence(0).items), np.int64))


def at(node: OnnxNode) -> Tensor:
    """Read SequenceAt."""
    items = node.sequence(0).items
    return items[_place(node, 1, len(items))]


def insert(node: OnnxNode) -> TensorSequence:
    """Read SequenceInsert: before a place, or at the end."""
    items = node.sequence(0).items
    place = len(items) if node.optional(2) is None else _place(node, 2, len(items), ends=1)
    return TensorSequence((*items[:place], node.input(1), *items[place:]))


def erase(node: OnnxNode) -> TensorSequence:
    """Read SequenceErase: of a place, or of the end."""
    items = node.sequence(0).items
    place = len(items) - 1 if node.optional(1) is None else _place(node, 1, len(items))
    if not items:
        raise node.malformed("it takes a tensor out of an empty sequence", "one tensor or more")
    return TensorSequence((*items[:place], *items[place + 1 :]))


def _place(node: OnnxNode, index: int, count: int, ends: int = 0) -> int:
    """Return a place that an input says, counted from the front."""
    places = node.integers(index, "the place in the sequence")
    if len(places) != 1 or not -count <= places[0] < count + ends:
        raise node.malformed(
            f"place {places} of a sequence of {count}", f"{-count} to {count + ends - 1}"
        )
    return places[0] + count if places[0] < 0 else places[0]


def split(node: OnnxNode) -> TensorSequence:
    """Read SplitToSequence: into parts of one size, the last the rest, or of several sizes."""
    x = node.input(0)
    axis = node.axis(node.integer("axis", 0), len(x.shape))
    extent, is_said = x.shape[axis], node.optional(1) is not None
    sizes = node.integers(1, "the sizes") if is_said else (1,)
    is_even = not is_said or not node.input(1).shape
    is_legal = sizes[0] >= 1 if is_even else min(sizes, default=0) >= 0 and sum(sizes) == extent
    if not is_legal:
        raise node.malformed(f"parts of {sizes} of an axis of {extent}", "sizes that add up")
    if is_even:
        if -(-extent // sizes[0]) > MANY:
            raise node.malformed(f"parts of {sizes[0]} of an axis of {extent}", f"at most {MANY}")
        sizes = tuple(min(sizes[0], extent - begin) for begin in range(0, extent, sizes[0]))
    begins = np.cumsum((0, *sizes)).tolist()
    parts = [along(node, x, axis, *part) for part in zip(begins, sizes, strict=False)]
    if not is_said and not node.integer("keepdims", 1):
        shape = (*x.shape[:axis], *x.shape[axis + 1 :])
        parts = [reshaped(node, part, *shape) for part in parts]
    return TensorSequence(tuple(parts))


def concat(node: OnnxNode) -> Tensor:
    """Read ConcatFromSequence: along an axis, or along a new one."""
    items, axis = node.sequence(0).items, node.integer("axis")
    if not items:
        raise node.malformed("it joins an empty sequence", "one tensor or more")
    if node.integer("new_axis", 0):
        return stacked(node, items, axis)
    return joined(node, items, node.axis(axis, len(items[0].shape)))


def map_(node: OnnxNode) -> tuple[Value, ...]:
    """Read SequenceMap: the body on the tensors of each place; what is no sequence stays."""
    first = node.sequence(0).items
    lists = [x.items if isinstance(x, TensorSequence) else (x,) * len(first) for x in node.values]
    if any(len(items) != len(first) for items in lists):
        raise node.malformed(f"sequences of {', '.join(str(len(x)) for x in lists)}", "one length")
    results = [node.run("body", *items) for items in zip(*lists, strict=True)]
    columns = zip(*results, strict=True) if results else [()] * node.outputs
    return tuple(TensorSequence(node.tensors(column)) for column in columns)


def get_element(node: OnnxNode) -> Value:
    """Read OptionalGetElement of what is no optional value."""
    return node.value(0)


def has_element(node: OnnxNode) -> Tensor:
    """Read OptionalHasElement of what is no optional value; without an input there is none."""
    return node.constant(np.array(bool(node.inputs) and node.inputs[0] is not None))


ONNX_READERS = (
    OnnxReader("SequenceConstruct", construct, (1, MANY)),
    OnnxReader("SequenceEmpty", empty, (0, 0), ("dtype",)),
    OnnxReader("SequenceAt", at, (2, 2)),
    OnnxReader("SequenceInsert", insert, (2, 3)),
    OnnxReader("SequenceErase", erase, (1, 2)),
    OnnxReader("SequenceLength", length),
    OnnxReader("SequenceMap", map_, (1, MANY), ("body",), outputs=MANY),
    OnnxReader("SplitToSequence", split, (1, 2), ("axis", "keepdims")),
    OnnxReader("ConcatFromSequence", concat, attributes=("axis", "new_axis")),
    OnnxReader("OptionalGetElement", get_element),
    OnnxReader("OptionalHasElement", has_element, (0, 1)),
)
