"""Read TFLite's operators that are given indices while the model runs."""

from __future__ import annotations

from dataclasses import dataclass

from microtir.graph.ir import Node
from microtir.operators.common import tflite_written as written
from microtir.operators.common.tflite_operands import (
    Converted,
    Operands,
    TfliteReader,
    without_attributes,
)
from microtir.operators.common.tflite_schema import BuiltinOperator, Options
from microtir.operators.common.unlike_scales import COPIED
from microtir.operators.indexing.definition import (
    DynamicUpdateSlice,
    EmbeddingLookup,
    Gather,
    GatherNd,
    ScatterNd,
)


@dataclass(frozen=True, slots=True)
class GatherOptions(Options):
    axis: int = 0
    batch_dims: int = 0


def gather(operands: Operands) -> Converted:
    """Read GATHER: data, indices."""
    options = operands.table(GatherOptions)
    data, indices = operands.present
    batch_dims = options.batch_dims
    if batch_dims < 0:
        batch_dims += len(indices.shape)
    axis = operands.axis(options.axis, len(data.shape))
    return Converted(Gather(axis, batch_dims), (data, indices))


def scatter_nd(operands: Operands) -> Converted:
    """Read SCATTER_ND: places, updates, shape."""
    places, updates, _ = operands.present
    return Converted(ScatterNd(operands.integers(2, "the shape")), (updates, places))


def embedding_lookup(operands: Operands) -> Converted:
    """Read EMBEDDING_LOOKUP: indices, rows."""
    indices, rows = operands.present
    return Converted(EmbeddingLookup(), (rows, indices))


def write_gather(node: Node) -> written.Written:
    """Write GATHER."""
    op = node.attributes(Gather)
    return written.Written(node.inputs, GatherOptions(op.axis, op.batch_dims))


def write_scatter_nd(node: Node) -> written.Written | None:
    """Write SCATTER_ND, which adds up what goes to one place."""
    updates, places = node.inputs[:2]
    op = node.attributes(ScatterNd)
    if op.keeps_last:
        return None
    return written.Written((places, updates, written.numbers(node, "shape", op.shape)))


def write_embedding_lookup(node: Node) -> written.Written:
    """Write EMBEDDING_LOOKUP."""
    rows, indices = node.inputs
    return written.Written((indices, rows))


_Code = BuiltinOperator
READERS = (
    TfliteReader(
        Gather, _Code.GATHER, gather, GatherOptions, (2, 2), moved=COPIED, write=write_gather
    ),
    TfliteReader(
        GatherNd,
        _Code.GATHER_ND,
        without_attributes(GatherNd()),
        inputs=(2, 2),
        moved=COPIED,
        write=written.as_it_is,
    ),
    TfliteReader(
        ScatterNd, _Code.SCATTER_ND, scatter_nd, inputs=(3, 3), moved=COPIED, write=write_scatter_nd
    ),
    TfliteReader(
        EmbeddingLookup,
        _Code.EMBEDDING_LOOKUP,
        embedding_lookup,
        inputs=(2, 2),
        moved=COPIED,
        write=write_embedding_lookup,
    ),
    TfliteReader(
        DynamicUpdateSlice,
        _Code.DYNAMIC_UPDATE_SLICE,
        without_attributes(DynamicUpdateSlice()),
        inputs=(3, 3),
        moved=COPIED,
        write=written.as_it_is,
    ),
)
