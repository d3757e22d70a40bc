"""Define operators that are given indices while the model runs.

An index outside of its axis is the nearest one inside; a place of SCATTER_ND outside of its tensor
takes nothing.  tflite-micro reads beyond the tensor or fails then.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from microtir.dtype import DType
from microtir.graph.ir import Node
from microtir.graph.operator import Operator
from microtir.operators.common import problem, quantization
from microtir.operators.common.images import by_memory
from microtir.operators.common.shapes import Shape, input_shape, require
from microtir.operators.common.types import MOVED, TypeRule, TypeSignature, equal_types
from microtir.operators.definition import Definition, Trait, moving

_WIDE = (DType.INT32, DType.INT64)
_MOVED_BY_INDICES = MOVED.indexed(1, *_WIDE)


@dataclass(frozen=True, slots=True)
class Gather(Operator):
    """GATHER: data, indices of its `axis` (non-negative).

    The first `batch_dims` axes of data and indices go together.
    """

    axis: int = 0
    batch_dims: int = 0


@dataclass(frozen=True, slots=True)
class GatherNd(Operator):
    """GATHER_ND: data, indices; the last axis of these has one for each of data's first axes."""


@dataclass(frozen=True, slots=True)
class ScatterNd(Operator):
    """SCATTER_ND: updates, places as GATHER_ND has them; zeros to which the updates are added.

    With `keeps_last` the last update of a place is what is there, as ONNX has it.
    """

    shape: tuple[int, ...] = ()
    keeps_last: bool = False


@dataclass(frozen=True, slots=True)
class TruePlaces(Operator):
    """Places of what is true in a line of booleans, zeros behind them; and how many there are."""


@dataclass(frozen=True, slots=True)
class EmbeddingLookup(Operator):
    """EMBEDDING_LOOKUP: rows, indices. Rows of int8 may become float32."""


@dataclass(frozen=True, slots=True)
class DynamicUpdateSlice(Operator):
    """DYNAMIC_UPDATE_SLICE: data, update, the place in data that it takes, as near as it fits."""


@dataclass(frozen=True, slots=True)
class PutSlice(Operator):
    """DYNAMIC_UPDATE_SLICE of a state where it stays: what is outside of the update is not touched.

    The output lies in the memory of the data, which is what a pass has made sure of.
    """


def _gather_shape(node: Node) -> tuple[Shape, ...]:
    op, (data, indices) = node.attributes(Gather), (tensor.shape for tensor in node.inputs)
    axis, batch = op.axis, op.batch_dims
    require(0 <= axis < len(data), f"axis {axis} of the shape {data}")
    require(
        0 <= batch <= min(axis, len(indices)) and data[:batch] == indices[:batch],
        f"{batch} common axes of the shapes {data} and {indices}, and axis {axis}",
        "equal extents of the common axes, which come before the axis",
    )
    return ((*data[:axis], *indices[batch:], *data[axis + 1 :]),)


def index_depth(data: Shape, indices: Shape) -> int:
    """Return how many axes of data the last axis of indices speaks of.

    Raises:
        GraphError: it is none of the axes that the data has.
    """
    require(len(indices) >= 1, "the indices are a scalar", "a list of indices at least")
    depth = indices[-1]
    require(1 <= depth <= len(data), f"{depth} indices for the shape {data}", f"1 to {len(data)}")
    return depth


def _gather_nd_shape(node: Node) -> tuple[Shape, ...]:
    data, indices = (tensor.shape for tensor in node.inputs)
    return ((*indices[:-1], *data[index_depth(data, indices) :]),)


def _scatter_nd_shape(node: Node) -> tuple[Shape, ...]:
    op, (updates, places) = node.attributes(ScatterNd), (tensor.shape for tensor in node.inputs)
    expected = (*places[:-1], *op.shape[index_depth(op.shape, places) :])
    require(updates == expected, f"updates of the shape {updates}", f"{expected}")
    return (op.shape,)


def _true_places_shapes(node: Node) -> tuple[Shape, ...]:
    return input_shape(node, 0, 1), (1,)


def _embedding_shape(node: Node) -> tuple[Shape, ...]:
    data, indices = (tensor.shape for tensor in node.inputs)
    require(len(data) >= 1, "the rows are a scalar", "rows")
    return ((*indices, *data[1:]),)


def _dynamic_update_shape(node: Node) -> tuple[Shape, ...]:
    data, update, begin = (tensor.shape for tensor in node.inputs)
    require(begin == (len(data),), f"a place of the shape {begin}", f"({len(data)},)")
    fits = len(update) == len(data) and all(a <= b for a, b in zip(update, data, strict=True))
    require(
        fits, f"an update of {update} for the shape {data}", "the same rank, and no larger extent"
    )
    return (data,)


def _rows(node: Node) -> Iterator[problem.Problem]:
    """Check that rows are copied as they are, or are symmetric."""
    is_copied = node.inputs[0].dtype is node.output.dtype
    yield from (quantization.EQUAL if is_copied else quantization.SYMMETRIC).check(node)


_SUMMED = equal_types(
    DType.FLOAT32, DType.INT8, DType.UINT8, DType.INT16, DType.INT32, DType.UINT32, DType.INT64
)

_NEAREST = "indices out of range are clamped"


def _gather_one_image(node: Node, images: int) -> Operator | None:
    """Keep images apart that are gathered from by the same indices, or are indices of a table."""
    op, (data, _) = node.attributes(Gather), node.inputs
    if data.is_constant:
        return op if (op.axis, op.batch_dims) == (0, 0) else None
    is_behind = op.axis > data.type.outermost and op.batch_dims == 0
    return by_memory(node, images) if is_behind else None


def _looked_up_one_image(node: Node, _images: int) -> Operator | None:
    return node.op if node.inputs[0].is_constant else None


DEFINITIONS = (
    moving(
        Gather,
        _gather_shape,
        _NEAREST,
        inputs=(2, 2),
        types=_MOVED_BY_INDICES,
        one_image=_gather_one_image,
    ),
    moving(GatherNd, _gather_nd_shape, _NEAREST, inputs=(2, 2), types=_MOVED_BY_INDICES),
    Definition(
        ScatterNd,
        types=_SUMMED.indexed(1, DType.INT32),
        quantization=quantization.EQUAL,
        shapes=_scatter_nd_shape,
        inputs=(2, 2),
        limits="constant shape; places outside take nothing",
    ),
    Definition(
        TruePlaces,
        types=TypeRule((TypeSignature((DType.BOOL,), DType.INT32),)),
        quantization=quantization.UNUSED,
        shapes=_true_places_shapes,
        outputs=2,
    ),
    Definition(
        EmbeddingLookup,
        types=MOVED.also(TypeSignature((DType.INT8,), DType.FLOAT32)).indexed(1, DType.INT32),
        quantization=replace(quantization.EQUAL, check=_rows),
        shapes=_embedding_shape,
        inputs=(2, 2),
        one_image=_looked_up_one_image,
        limits=_NEAREST,
    ),
    moving(
        DynamicUpdateSlice,
        _dynamic_update_shape,
        _NEAREST,
        inputs=(3, 3),
        types=MOVED.indexed(2, *_WIDE),
    ),
    moving(
        PutSlice,
        _dynamic_update_shape,
        _NEAREST,
        inputs=(3, 3),
        types=MOVED.indexed(2, *_WIDE),
        traits=frozenset({Trait.CONTROL, Trait.IN_PLACE}),
    ),
)
