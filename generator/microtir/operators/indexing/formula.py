"""Compute operators that are given indices while the model runs."""

from __future__ import annotations

from microtir import te
from microtir.dtype import DType
from microtir.graph.ir import Node
from microtir.operators.common.arithmetic import long
from microtir.operators.common.formula import FormulaContext
from microtir.operators.common.indices import nearest, nearest_begins
from microtir.operators.common.written_function import written_function
from microtir.operators.indexing import definition as indexing
from microtir.tir.ir import PrimFunc


def gather(layer: FormulaContext) -> None:
    """Emit GATHER."""
    op, (data, named) = layer.node.attributes(indexing.Gather), layer.node.inputs
    x, indices = layer.whole(0), layer.whole(1)
    batch, axis = op.batch_dims, op.axis
    behind = axis + len(named.shape) - batch

    def element(*at: te.Expr) -> te.Expr:
        place = (*at[:batch], *at[axis:behind])
        index = nearest(indices[place], data.shape[axis] - 1)
        source = (*at[:axis], index, *at[behind:])
        return x[source]

    layer.tensor(element)


def gather_nd(layer: FormulaContext) -> None:
    """Emit GATHER_ND."""
    data, named = layer.node.inputs
    x, indices = layer.whole(0), layer.whole(1)
    outer = len(named.shape) - 1

    def element(*at: te.Expr) -> te.Expr:
        places = [(*at[:outer], te.as_expr(n)) for n in range(named.shape[-1])]
        limits = enumerate(zip(places, data.shape, strict=False))
        source = [nearest(indices[place], n - 1, f"index{i}") for i, (place, n) in limits]
        return x[tuple(source) + at[outer:]]

    layer.tensor(element)


def scatter_nd(layer: FormulaContext) -> None:
    """Emit SCATTER_ND: each element adds up the updates of its place, in their order, or takes one.

    It looks at all places: that costs no memory, and the results come in their order.
    """
    op, named = layer.node.attributes(indexing.ScatterNd), layer.node.inputs[1]
    depth = named.shape[-1]
    count = named.type.elements // depth
    updates = layer.whole(0, (count, *op.shape[depth:]))
    places = layer.whole(1, (count, depth))

    def element(*at: te.Expr) -> te.Expr:
        number = te.reduce_axis(0, count, "number")
        is_here = places[number, 0] == at[0]
        for n in range(1, depth):
            is_here = is_here & (places[number, n] == at[n])
        if op.keeps_last:
            last = te.bind("last", te.max(te.select(is_here, number, -1), number, -1))
            place = (te.clamp(last, 0, count - 1), *at[depth:])
            update = updates[place]
            return te.select(last < 0, te.const(0, update.dtype), update)
        source = (number, *at[depth:])
        update = updates[source]
        if update.dtype.is_float:
            return te.sum(te.select(is_here, update, te.const(0.0, update.dtype)), number)
        value = te.select(is_here, long(update), te.const(0, DType.INT64))
        return _narrowed(te.fold("sum", te.wrapping_add, value, number, 0), update.dtype)

    layer.tensor(element)


def _narrowed(total: te.Expr, dtype: DType) -> te.Expr:
    """Return an INT64 value modulo what an integer type holds."""
    if dtype is DType.INT64:
        return total
    low = te.const(dtype.min, DType.INT64)
    return te.cast(dtype, (te.wrapping_sub(total, low) & ((1 << dtype.bits) - 1)) + low)


def true_places(node: Node, name: str) -> PrimFunc:
    """Write TruePlaces: each place goes behind those that were found before it."""
    size = node.inputs[0].type.elements
    lines = f"""  alloc found: int32[] local
  found[] = 0
  for i in range(0, {size}):
    places[i] = 0
  for i in range(0, {size}):
    if x[i]:
      places[min(max(found[], 0), {size - 1})] = i
      found[] = min(found[] + 1, {size})
  number[0] = found[]""".splitlines()
    results = [("places", (size,)), ("number", (1,))]
    return written_function(node, name, [("x", (size,))], results, lines)


def embedding_lookup(layer: FormulaContext) -> None:
    """Emit EMBEDDING_LOOKUP."""
    data, named = layer.node.inputs
    rows, indices = layer.whole(0), layer.whole(1)
    outer, is_stored = len(named.shape), data.dtype is not layer.node.output.dtype

    def element(*at: te.Expr) -> te.Expr:
        row = nearest(indices[at[:outer]], data.shape[0] - 1)
        source = (row, *at[outer:])
        value = rows[source]
        if not is_stored:
            return value
        return te.cast(DType.FLOAT32, value) * data.type.quant.scale

    layer.tensor(element)


def dynamic_update_slice(layer: FormulaContext) -> None:
    """Emit DYNAMIC_UPDATE_SLICE."""
    x, update, extent = layer.whole(0), layer.whole(1), layer.node.inputs[1].shape
    begins = nearest_begins(layer, 2, extent)

    def element(*at: te.Expr) -> te.Expr:
        missed, place = te.as_expr(0), []
        for i, begin, size in zip(at, begins, extent, strict=True):
            place.append(te.bind("place", te.clamp(i - begin, 0, size - 1)))
            missed = missed + te.abs(i - begin - place[-1])
        return te.select(missed == 0, update[tuple(place)], x[at])

    layer.tensor(element)


def put_slice(node: Node, name: str) -> PrimFunc:
    """Write the elements of an update into a state; the others are there already."""
    data, update, begin = node.inputs
    depth, wide = "  ", begin.dtype is not DType.INT32
    lines: list[str] = []
    source, target = [], []
    for axis, (size, taken) in enumerate(zip(data.shape, update.shape, strict=True)):
        low, high = (f"int64({n})" if wide else str(n) for n in (0, size - taken))
        place = f"min(max(begin[{axis}], {low}), {high})"
        place = f"cast(int32, {place})" if wide else place
        lines.append(f"  let begin{axis}: int32 = {place if size > taken else 0}")
    for axis, taken in enumerate(update.shape):
        source.append(f"i{axis}")
        target.append(f"begin{axis} + i{axis}")
        lines.append(f"{depth}for i{axis} in range(0, {taken}):")
        depth += "  "
    lines.append(f"{depth}y[{', '.join(target)}] = update[{', '.join(source)}]")
    operands = [("x", data.shape), ("update", update.shape), ("begin", begin.shape)]
    return written_function(node, name, operands, [("y", data.shape)], lines)
