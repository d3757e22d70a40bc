"""Read ONNX's operators that take or put single elements by index, as gathers of a flat tensor."""

from __future__ import annotations

import math

import numpy as np

from microtir.dtype import DType
from microtir.graph.ir import Array, Tensor, TensorType
from microtir.graph.operator import Operator
from microtir.operators.arithmetic.definition import Add, Maximum, Minimum, Mul, Sub
from microtir.operators.common.onnx_operands import OnnxNode
from microtir.operators.common.onnx_parts import (
    along,
    filled,
    int32s,
    joined,
    numbers,
    reshaped,
    stacked,
    transposed,
    with_row_count,
)
from microtir.operators.common.onnx_types import cast, emit_wide
from microtir.operators.common.shapes import Shape
from microtir.operators.conditions.definition import Equal, Greater, Less, NotEqual
from microtir.operators.division.definition import FloorDiv, FloorMod
from microtir.operators.indexing import definition as indexing
from microtir.operators.selection.definition import Select

_REDUCTIONS: dict[str, Operator] = {
    "add": Add(), "mul": Mul(), "max": Maximum(), "min": Minimum(),
}  # fmt: skip


def counted(node: OnnxNode, indices: Tensor, extent: int) -> Tensor:
    """Return indices of an axis counted from the front, as int32."""
    if indices.data is not None:
        low, high = int(indices.data.min(initial=0)), int(indices.data.max(initial=0))
        if low < -extent or high >= extent:
            raise node.malformed(f"indices {low} to {high} of an axis of {extent}")
        return int32s(node, np.where(indices.data < 0, indices.data + extent, indices.data))
    indices = cast(node, indices, DType.INT32)
    is_negative = node.emit(Less(), indices, node.scalar_like(0, indices), dtype=DType.BOOL)
    moved = node.emit(Add(), indices, node.scalar_like(extent, indices))
    return node.emit(Select(), is_negative, moved, indices, dtype=DType.INT32)


def _flat_elements(node: OnnxNode, indices: Tensor, shape: Shape, axis: int) -> Tensor:
    """Return where elements lie in a flat tensor, whose place is an index along one axis.

    Along the other axes an element has the place that its index has.
    """
    node.check_room(*indices.shape)
    places = np.indices(indices.shape)
    strides = [math.prod(shape[n + 1 :]) for n in range(len(shape))]
    rest = sum(
        (places[n] * strides[n] for n in range(len(shape)) if n != axis), np.zeros(indices.shape)
    )
    index = counted(node, indices, shape[axis])
    scaled = node.emit(Mul(), index, int32s(node, np.array(strides[axis])))
    return node.emit(Add(), scaled, int32s(node, rest))


def gather_elements(node: OnnxNode) -> Tensor:
    """Read GatherElements: of each line along an axis the element that an index names."""
    data, indices = node.input(0), node.input(1)
    axis = node.axis(node.integer("axis", 0), len(data.shape))
    _check_lines(node, data.shape, indices.shape, axis)
    flat = reshaped(node, data, data.type.elements)
    return node.emit(indexing.Gather(0), flat, _flat_elements(node, indices, data.shape, axis))


def _check_lines(node: OnnxNode, data: Shape, indices: Shape, axis: int) -> None:
    pairs = enumerate(zip(data, indices, strict=False))
    if len(data) != len(indices) or any(n != axis and b > a for n, (a, b) in pairs):
        raise node.malformed(f"indices of shape {indices} for the shape {data}", "at most that")


def gather_nd(node: OnnxNode) -> Tensor:
    """Read GatherND: parts of a tensor, named by their indices along its first axes."""
    data, indices = node.input(0), node.input(1)
    batch = node.integer("batch_dims", 0)
    depth = indices.shape[-1] if indices.shape else 0
    if not 0 <= batch < len(indices.shape) or batch + depth > len(data.shape) or depth < 1:
        raise node.malformed(f"indices of shape {indices.shape} for the shape {data.shape}")
    lead, rest = data.shape[: batch + depth], data.shape[batch + depth :]
    rows = _flat_rows(node, indices, data.shape[batch : batch + depth])
    if batch:
        size = math.prod(lead[batch:])
        begins = np.arange(math.prod(lead[:batch])).reshape(lead[:batch]) * size
        spread = begins.reshape(*lead[:batch], *(1,) * (len(rows.shape) - batch))
        rows = node.emit(Add(), rows, int32s(node, spread))
    return node.emit(indexing.Gather(0), reshaped(node, data, math.prod(lead), *rest), rows)


def _flat_rows(node: OnnxNode, indices: Tensor, extents: Shape) -> Tensor:
    """Return the last axis of indices, one for each of some axes, as the index of all of them."""
    total: Tensor | None = None
    for number, extent in enumerate(extents):
        one = along(node, indices, len(indices.shape) - 1, number, 1)
        index = counted(node, reshaped(node, one, *indices.shape[:-1]), extent)
        if total is None:
            total = index
        else:
            wide = node.emit(Mul(), total, node.scalar_like(extent, total))
            total = node.emit(Add(), wide, index)
    assert total is not None
    return total


def scatter_elements(node: OnnxNode) -> Tensor:
    """Read ScatterElements, and Scatter: GatherElements the other way around."""
    data, indices, updates = node.input(0), node.input(1), node.input(2)
    axis = node.axis(node.integer("axis", 0), len(data.shape))
    _check_lines(node, data.shape, indices.shape, axis)
    places = _flat_elements(node, indices, data.shape, axis)
    return put_rows(node, data, places, updates, ())


def scatter_nd(node: OnnxNode) -> Tensor:
    """Read ScatterND: GatherND the other way around."""
    data, indices, updates = node.input(0), node.input(1), node.input(2)
    depth = indices.shape[-1] if indices.shape else 0
    if not 1 <= depth <= len(data.shape):
        raise node.malformed(f"indices of shape {indices.shape} for the shape {data.shape}")
    places = _flat_rows(node, indices, data.shape[:depth])
    return put_rows(node, data, places, updates, data.shape[depth:])


def put_rows(node: OnnxNode, data: Tensor, places: Tensor, updates: Tensor, row: Shape) -> Tensor:
    """Return data with updates at places, or reduced with what is there.

    Args:
        node: whose attribute says how they are reduced, if they are.
        data: the tensor, rows one behind the other.
        places: of the updates, among the rows.
        updates: one row for each place.
        row: the shape of a row.
    """
    count = data.type.elements // math.prod(row)
    rows = reshaped(node, data, count, *row)
    values = reshaped(node, updates, places.type.elements, *row)
    kind = node.word("reduction", "none")
    if kind != "none" and kind not in _REDUCTIONS:
        raise node.malformed(f"the reduction {kind!r}", ", ".join(("none", *_REDUCTIONS)))
    if places.data is not None:
        result = _put_at_known(node, rows, places.data.reshape(-1), values, kind)
    else:
        result = _put_at_computed(
            node, rows, reshaped(node, places, places.type.elements), values, kind
        )
    return reshaped(node, result, *data.shape)


def _put_at_known(
    node: OnnxNode, rows: Tensor, places: Array, updates: Tensor, kind: str
) -> Tensor:
    """Gather each row from what was there and from the updates; several for one row in turn."""
    count = rows.shape[0]
    node.check_room(count)
    source = joined(node, (rows, updates), 0)
    if kind == "none":
        chosen = np.arange(count)
        chosen[places] = count + np.arange(len(places))
        return node.emit(indexing.Gather(0), source, int32s(node, chosen))
    result, left = rows, list(enumerate(places.tolist()))
    while left:
        chosen, waiting, taken = np.arange(count), [], np.zeros(count, np.bool_)
        for number, place in left:
            if taken[place]:
                waiting.append((number, place))
            else:
                chosen[place], taken[place] = count + number, True
        values = node.emit(indexing.Gather(0), source, int32s(node, chosen))
        both = emit_wide(node, _REDUCTIONS[kind], result, values)
        mask = node.constant(taken.reshape(-1, *(1,) * (len(rows.shape) - 1)))
        result = node.emit(Select(), mask, both, result, dtype=rows.dtype)
        left = waiting
    return result


def _put_at_computed(
    node: OnnxNode, rows: Tensor, places: Tensor, updates: Tensor, kind: str
) -> Tensor:
    """Add up the updates of each row; without a reduction the last one is the row."""
    if kind not in ("none", "add"):
        raise node.unsupported(
            f"the model computes the indices of a reduction with {kind!r} from its inputs",
            "constant indices, or the reductions none and add",
            "export the model with fixed indices",
        )
    at = reshaped(node, places, *places.shape, 1)
    if kind == "add":
        return emit_wide(node, Add(), rows, node.emit(indexing.ScatterNd(rows.shape), updates, at))
    result = node.emit(indexing.ScatterNd(rows.shape, keeps_last=True), updates, at)
    if rows.data is not None and not rows.data.any():
        return result
    ones = filled(node, places.shape, 1, DType.INT32)
    hits = node.emit(indexing.ScatterNd(rows.shape[:1]), ones, at)
    is_hit = node.emit(Greater(), hits, node.scalar_like(0, hits), dtype=DType.BOOL)
    mask = reshaped(node, is_hit, rows.shape[0], *(1,) * (len(rows.shape) - 1))
    return node.emit(Select(), mask, result, rows, dtype=rows.dtype)


def image_from_columns(node: OnnxNode) -> Tensor:
    """Read Col2Im: add up, at each pixel, what the windows over it hold."""
    columns, sizes = node.input(0), node.integers(1, "the shape of the image")
    taps, rank = node.integers(2, "the window"), len(sizes)
    strides = node.list_of_integers("strides", (1,) * rank)
    dilations = node.list_of_integers("dilations", (1,) * rank)
    pads = node.list_of_integers("pads", (0,) * (2 * rank))
    is_of_axes = rank == len(taps) == len(strides) == len(dilations) == len(pads) // 2
    if not is_of_axes or min((*sizes, *taps, *strides, *dilations), default=1) < 1:
        raise node.malformed(f"a window of {taps} over {sizes}, strides {strides}, pads {pads}")
    axes = range(rank)
    counts = [
        (sizes[n] + pads[n] + pads[n + rank] - dilations[n] * (taps[n] - 1) - 1) // strides[n] + 1
        for n in axes
    ]
    if len(columns.shape) != 3:
        raise node.malformed(f"columns of shape {columns.shape}", "(N, channels and taps, places)")
    n, rows, places = columns.shape
    if rows % math.prod(taps) or places != math.prod(counts):
        raise node.malformed(f"columns of shape {columns.shape} for windows of {taps} over {sizes}")
    node.check_room(2 * rank, *taps, *counts)
    node.check_room(n, rows, *sizes)
    at = np.indices((*taps, *counts))
    index, is_inside = np.zeros(at.shape[1:], np.int64), np.ones(at.shape[1:], np.bool_)
    for axis in axes:
        place = at[axis] * dilations[axis] + at[rank + axis] * strides[axis] - pads[axis]
        is_inside &= (place >= 0) & (place < sizes[axis])
        index = index * sizes[axis] + place
    channels = rows // math.prod(taps)
    split = reshaped(node, columns, n, channels, index.size)
    values = transposed(node, split, (2, 0, 1))
    inside = np.flatnonzero(is_inside)
    values = (
        values
        if len(inside) == index.size
        else node.emit(indexing.Gather(0), values, int32s(node, inside))
    )
    zeros = filled(node, (math.prod(sizes), n, channels), 0, columns.dtype)
    result = _put_at_known(node, zeros, index.reshape(-1)[inside], values, "add")
    return reshaped(node, transposed(node, result, (1, 2, 0)), n, channels, *sizes)


def compress(node: OnnxNode) -> Tensor:
    """Read Compress: the elements, or parts along an axis, where a condition holds."""
    x, keeps, axis = node.input(0), node.input(1), 0
    if node.has("axis"):
        axis = node.axis(node.integer("axis"), len(x.shape))
    else:
        x = reshaped(node, x, x.type.elements)
    size = min(keeps.type.elements, x.shape[axis])
    line = along(node, reshaped(node, keeps, keeps.type.elements), 0, 0, size)
    places, count = _true_places(node, line)
    return with_row_count(node, node.emit(indexing.Gather(axis), x, places), axis, count)


def _true_places(node: OnnxNode, condition: Tensor) -> tuple[Tensor, Tensor]:
    """Return the places where a line of booleans is true, and how many there are."""
    if condition.data is not None:
        known = np.flatnonzero(condition.data)
        return int32s(node, known), int32s(node, np.array([len(known)]))
    types = (TensorType((), DType.INT32),) * 2
    places, count = node.emitter.emit(indexing.TruePlaces(), (condition,), types)
    return places, count


def non_zero(node: OnnxNode) -> Tensor:
    """Read NonZero: the places along each axis of the elements that are not 0."""
    x = node.input(0)
    flat = reshaped(node, x, x.type.elements)
    if x.dtype is not DType.BOOL:
        flat = emit_wide(node, NotEqual(), flat, node.scalar_like(0, flat), dtype=DType.BOOL)
    (places, count), rows = _true_places(node, flat), []
    for axis, extent in enumerate(x.shape or (1,)):
        stride = math.prod(x.shape[axis + 1 :])
        row = (
            places if stride == 1 else node.emit(FloorDiv(), places, int32s(node, np.array(stride)))
        )
        if axis:
            row = node.emit(FloorMod(), row, int32s(node, np.array(extent)))
        rows.append(row)
    all_places = cast(node, stacked(node, rows, 0), DType.INT64)
    return with_row_count(node, all_places, 1, count)


def one_hot(node: OnnxNode) -> Tensor:
    """Read OneHot: along a new axis one value at the index, and another everywhere else."""
    depths = node.known(1, "the depth").reshape(-1)
    if depths.size != 1 or depths[0] < 1:
        raise node.malformed(f"the depth is {depths.tolist()}", "one number of 1 or more")
    if not float(depths[0]).is_integer():
        raise node.malformed(f"the depth is {depths.tolist()}", "a whole number")
    depth = int(depths[0])
    node.check_room(depth)
    indices, values = cast(node, node.input(0), DType.INT32), node.input(2)
    rank = len(indices.shape) + 1
    if values.shape != (2,):
        raise node.malformed(
            f"values of shape {values.shape}",
            "(2,): the value elsewhere, and the value at the index",
        )
    axis = node.axis(node.integer("axis", -1), rank)
    index = counted(node, indices, depth) if indices.data is None else indices
    if indices.data is not None:  # those outside of the range are nowhere
        index = int32s(node, np.where(indices.data < 0, indices.data + depth, indices.data))
    wide = reshaped(node, index, *indices.shape[:axis], 1, *indices.shape[axis:])
    line = [depth if n == axis else 1 for n in range(rank)]
    places = numbers(node, *line)
    is_here = node.emit(Equal(), wide, places, dtype=DType.BOOL)
    off, on = (reshaped(node, along(node, values, 0, n, 1)) for n in (0, 1))
    return node.emit(Select(), is_here, on, off, dtype=values.dtype)


def reverse_sequence(node: OnnxNode) -> Tensor:
    """Read ReverseSequence: the first elements of each sequence backwards, the others as they are.

    The lengths may be computed.
    """
    x, lengths = node.input(0), cast(node, node.input(1), DType.INT32)
    batch, time = node.integer("batch_axis", 1), node.integer("time_axis", 0)
    if {batch, time} != {0, 1} or len(x.shape) < 2:
        raise node.malformed(f"batch_axis {batch} and time_axis {time}", "0 and 1, or 1 and 0")
    order = (batch, time, *range(2, len(x.shape)))
    rows = transposed(node, x, order)
    count, steps = rows.shape[:2]
    number = numbers(node, 1, steps)
    ends = reshaped(node, lengths, count, 1)
    last = node.emit(Sub(), ends, node.scalar_like(1, ends))
    mirrored = node.emit(Sub(), last, number)
    is_inside = node.emit(Less(), number, ends, dtype=DType.BOOL)
    at = node.emit(Select(), is_inside, mirrored, number, dtype=DType.INT32)
    return transposed(node, node.emit(indexing.Gather(1, 1), rows, at), order)


def tensor_scatter(node: OnnxNode) -> Tensor:
    """Read TensorScatter: an update of each sequence of a cache, from a place of its own on."""
    cache, update, start = node.input(0), node.input(1), node.optional(2)
    axis = node.axis(node.integer("axis", -2), len(cache.shape))
    others = [
        tuple(extent for n, extent in enumerate(x.shape) if n != axis) for x in (cache, update)
    ]
    if others[0] != others[1]:
        raise node.malformed(
            f"an update of shape {update.shape} of a cache of {cache.shape}, axis {axis}",
            "the same extents along the other axes",
        )
    room, size = cache.shape[axis], update.shape[axis]
    wraps = node.word("mode", "linear") == "circular"
    is_one = cache.shape[0] == 1 and axis > 0 and (size == 1 or not wraps)
    if start is not None and start.data is None and is_one:
        return _put_slice(node, cache, update, start, axis)
    begins = np.zeros(cache.shape[0], np.int64)
    if start is not None:
        begins = node.known(2, "the places").reshape(-1)
    is_of_batch = begins.shape == cache.shape[:1] and not (begins < 0).any()
    if axis == 0 or not is_of_batch or (not wraps and (begins + size > room).any()):
        raise node.malformed(f"it writes {size} elements at {begins.tolist()} of {room}")
    strides = [math.prod(cache.shape[n + 1 :]) for n in range(len(cache.shape))]
    node.check_room(*update.shape)
    at = np.indices(update.shape)
    at[axis] = (at[axis] + begins[at[0]]) % room
    places = sum((a * s for a, s in zip(at, strides, strict=True)), np.zeros(update.shape))
    return put_rows(node, cache, int32s(node, places), update, ())


def _put_slice(node: OnnxNode, cache: Tensor, update: Tensor, place: Tensor, axis: int) -> Tensor:
    """Return a cache of one sequence with an update from a computed place of an axis on."""
    first = reshaped(node, cast(node, place, DType.INT32), 1)
    if node.word("mode", "linear") == "circular":
        first = node.emit(FloorMod(), first, int32s(node, np.array([cache.shape[axis]])))
    zero = int32s(node, np.zeros(1))
    begin = joined(node, [first if n == axis else zero for n in range(len(cache.shape))], 0)
    return node.emit(indexing.DynamicUpdateSlice(), cache, update, begin)
