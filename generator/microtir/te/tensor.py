"""Makes tensors: placeholders, constants, and what is computed element by element."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from microtir.dtype import DType
from microtir.errors import TirError
from microtir.support.arguments import checked_arguments
from microtir.te import expr
from microtir.te.expr import Expr  # what `ExprLike` names, where arguments are checked
from microtir.tir import ir

DimLike: TypeAlias = "int | ir.Var | expr.ScalarVar"
Body: TypeAlias = Callable[..., expr.ExprLike]


def _as_shape(shape: Sequence[DimLike], where: str) -> tuple[ir.Dim, ...]:
    dims: list[ir.Dim] = []
    for dim in shape:
        if isinstance(dim, expr.ScalarVar):
            dims.append(dim.var)
        elif isinstance(dim, ir.Var):
            dims.append(dim)
        else:
            dims.append(int(dim))
        if isinstance(dims[-1], int) and dims[-1] < 0:
            raise TirError(f"extent {dims[-1]} is negative", where=where)
    return tuple(dims)


@checked_arguments
def var(name: str, low: int, high: int) -> expr.ScalarVar:
    """Declare a runtime integer in [low, high], for expressions, ranges and shapes."""
    if low > high:
        raise TirError(f"the range [{low}, {high}] is empty", where=f"te.var '{name}'")
    return expr.ScalarVar(ir.Var(name, DType.INT32, low, high))


@checked_arguments
def placeholder(
    shape: Sequence[DimLike], dtype: DType, name: str, *, alignment: int = 1
) -> expr.Tensor:
    """Declare an input: storage that the caller passes in, row-major.

    `alignment` is what the caller guarantees, in bytes.
    """
    dims = _as_shape(shape, f"te.placeholder '{name}'")
    return expr.Tensor(ir.Buffer(name, dims, dtype, alignment=alignment), dims)


@checked_arguments
def constant(data: npt.ArrayLike, name: str, *, alignment: int = 1) -> expr.Tensor:
    """Store a table or weights in the program, so that it is no parameter of the function.

    Raises:
        TirError: the array's element type is not one of TIR.
    """
    array: npt.NDArray[Any] = np.array(data, order="C")  # a copy: the caller may go on writing
    array.setflags(write=False)
    legal = {dtype.value: dtype for dtype in DType}
    if array.dtype.name not in legal:
        raise TirError(
            f"TIR has no elements of type {array.dtype.name}",
            where=f"te.constant '{name}'",
            legal=", ".join(legal),
        )
    dtype = legal[array.dtype.name]
    buffer = ir.Buffer(name, array.shape, dtype, ir.Scope.CONSTANT, array, alignment)
    return expr.Tensor(buffer, array.shape)


@checked_arguments
def compute(
    shape: Sequence[DimLike],
    body: Body,
    name: str,
    *,
    axes: Sequence[str] | None = None,
    ranges: Mapping[int, tuple[expr.ExprLike, expr.ExprLike]] | None = None,
    store: Callable[..., Sequence[expr.ExprLike]] | None = None,
    buffer_shape: Sequence[DimLike] | None = None,
    into: expr.Tensor | None = None,
    alignment: int = 1,
) -> expr.Tensor:
    """Define a tensor whose element at (i, j, ...) is ``body(i, j, ...)``: one loop nest.

    Args:
        shape: extents of the tensor.
        body: called once with a handle per axis; its result has the type of the tensor.
        name: of the tensor and of its buffer.
        axes: names of the loops; the names of body's parameters if None.
        ranges: restricts axis number n to [low, high); the rest of the tensor is not written.
        store: maps the axes to indices of the storage, e.g. ``lambda row, col: (row % 3, col)``;
            reading the tensor goes through the same map.
        buffer_shape: extents of the storage; needed with `store` unless `into` is given.
        into: a computed tensor whose storage takes these elements, too (a concatenation).
        alignment: what the storage's address must be a multiple of, in bytes.

    Raises:
        TirError: wrong ranks, types or arguments.
    """
    where = f"te.compute '{name}'"
    dims = _as_shape(shape, where)
    loops = _axes(dims, _axis_names(body, len(dims), axes, where), ranges or {}, where)
    handles = [Expr(loop.var) for loop in loops]
    value = expr.as_expr(body(*handles))
    indices = tuple(handle.node for handle in handles)
    if store is not None:
        places = expr.as_indices(tuple(store(*handles)), f"{where}, store")
        if any(place.needs is not expr.NOTHING for place in places):
            raise TirError("store must not read tensors, reductions or binds", where=where)
        indices = tuple(place.node for place in places)
    fresh = _storage(name, dims, value.dtype, store, buffer_shape, alignment, into, where)
    if len(indices) != len(fresh.shape):
        raise TirError(
            f"store gives {len(indices)} indices for rank {len(fresh.shape)}", where=where
        )
    return expr.Tensor(fresh, dims, expr.Computation(loops, value, indices))


def _axis_names(body: Body, rank: int, axes: Sequence[str] | None, where: str) -> tuple[str, ...]:
    if axes is None:
        parameters = inspect.signature(body).parameters.values()
        named = [p.name for p in parameters if p.kind is not p.VAR_POSITIONAL]
        axes = named if len(named) == len(parameters) else [f"i{n}" for n in range(rank)]
    if len(axes) != rank:
        raise TirError(
            f"got {len(axes)} axes ({', '.join(axes)}) for a tensor of rank {rank}", where=where
        )
    return tuple(axes)


def _axes(
    dims: tuple[ir.Dim, ...],
    names: tuple[str, ...],
    ranges: Mapping[int, tuple[expr.ExprLike, expr.ExprLike]],
    where: str,
) -> tuple[expr.Axis, ...]:
    for number in ranges:
        if not 0 <= number < len(dims):
            raise TirError(
                f"ranges has no axis {number}", where=where, legal=f"0 .. {len(dims) - 1}"
            )
    loops = []
    for number, (dim, axis_name) in enumerate(zip(dims, names, strict=True)):
        bounds = expr.as_indices(ranges.get(number, (0, dim)), f"{where}, axis '{axis_name}'")
        loops.append(expr.Axis(ir.Var(axis_name), *bounds))
    return tuple(loops)


def _storage(
    name: str,
    dims: tuple[ir.Dim, ...],
    dtype: DType,
    store: Callable[..., Sequence[expr.ExprLike]] | None,
    buffer_shape: Sequence[DimLike] | None,
    alignment: int,
    into: expr.Tensor | None,
    where: str,
) -> ir.Buffer:
    if (buffer_shape is not None or into is not None) and store is None:
        raise TirError("buffer_shape and into are valid only with store", where=where)
    if into is None:
        if store is not None and buffer_shape is None:
            raise TirError("store needs buffer_shape or into", where=where)
        extents = dims if buffer_shape is None else _as_shape(buffer_shape, where)
        return ir.Buffer(name, extents, dtype, alignment=alignment)
    if buffer_shape is not None or into.computation is None or alignment != 1:
        raise TirError(
            "into must be a computed tensor, without buffer_shape and alignment", where=where
        )
    if into.dtype is not dtype:
        raise TirError(
            f"elements of type {dtype.value} cannot be stored in '{into.name}' of "
            f"{into.dtype.value}",
            where=where,
            fix="convert the value with te.cast(dtype, value)",
        )
    return into.buffer
