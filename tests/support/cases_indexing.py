"""Recipes of operators that are given indices while the model runs."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from microtir.operators.indexing.tflite import GatherOptions
from tests.support.sketch import Array, Case, Shape, Sketch


def _indices(s: Sketch, shape: Shape, extents: int | Shape, dtype: npt.DTypeLike) -> Array:
    """Return indices that lie inside, as LiteRT and some kernels of tflite-micro demand."""
    limits = np.broadcast_to(np.array(extents), shape)
    return np.asarray(s.rng.integers(0, limits, shape), dtype)


def _index_input(s: Sketch, values: Array) -> int:
    """Add indices: mostly an input of the model, now and then constants."""
    if s.chance(0.2):
        return s.constant("indices", values)
    return s.input(values.shape, values=values)


def gather(s: Sketch) -> Case:
    """Draw a case: GATHER along any axis, also with axes that data and indices share."""
    shape = s.shape(1, 4)
    axis = s.integer(0, len(shape) - 1)
    batch = s.integer(0, axis) if s.chance(0.4) else 0
    chosen = s.shape(0, 5 - len(shape) + batch if len(shape) < 4 else 1)
    named = (*shape[:batch], *chosen)
    quant = s.quant() if s.is_int8 else None
    x = s.input(shape, quant)
    indices = _index_input(s, _indices(s, named, shape[axis], np.int32))
    result = (*shape[:axis], *chosen, *shape[axis + 1 :])
    options = GatherOptions(
        axis - len(shape) if s.chance(0.3) else axis,
        batch - len(named) if batch and chosen and s.chance(0.3) else batch,
    )
    return s.finish([x, indices], s.output(result, quant), options)


def gather_nd(s: Sketch) -> Case:
    """Draw a case: GATHER_ND of elements or of slices."""
    shape = s.shape(1, 4)
    depth = s.integer(1, len(shape))
    outer = s.shape(0, 2)
    quant = s.quant() if s.is_int8 else None
    x = s.input(shape, quant)
    indices = _index_input(s, _indices(s, (*outer, depth), shape[:depth], np.int32))
    return s.finish([x, indices], s.output((*outer, *shape[depth:]), quant))


def scatter_nd(s: Sketch) -> Case:
    """Draw a case: SCATTER_ND of elements or of slices, places more than once."""
    shape = s.shape(1, 3)
    depth = s.integer(1, len(shape))
    outer = s.shape(1, 2)
    places = s.input((*outer, depth), values=_indices(s, (*outer, depth), shape[:depth], np.int32))
    updates = s.input((*outer, *shape[depth:]))
    return s.finish([places, updates, s.ints("shape", *shape)], s.output(shape))


def embedding_lookup(s: Sketch) -> Case:
    """Draw a case: EMBEDDING_LOOKUP of constant rows, those of int8 copied or dequantised."""
    rows = s.shape(2, 3)
    named = (s.integer(1, 4),)
    quant: Any = s.quant() if s.is_int8 else None
    result: npt.DTypeLike = s.dtype
    if s.is_int8 and s.chance(0.5):
        quant, result = type(quant)(quant.scale, 0), np.float32
    indices = s.input(named, values=_indices(s, named, rows[0], np.int32))
    table = s.constant("rows", s.values(rows), quant)
    output = s.output((*named, *rows[1:]), None if result == np.float32 else quant, result)
    return s.finish([indices, table], output)


def dynamic_update_slice(s: Sketch) -> Case:
    """Draw a case: DYNAMIC_UPDATE_SLICE at places inside and, as kernels clamp them, outside."""
    shape = s.shape(1, 4)
    size = tuple(s.integer(1, extent) for extent in shape)
    quant = s.quant() if s.is_int8 else None
    x, update = s.input(shape, quant), s.input(size, quant)
    begin = np.array([s.integer(-3, 5) for _ in shape], np.int32)
    place = s.input((len(shape),), values=begin)
    return s.finish([x, update, place], s.output(shape, quant))
