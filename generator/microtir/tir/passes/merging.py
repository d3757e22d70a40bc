"""One function for layers that do the same: the code of a model, several times smaller.

Layers of a network repeat: the same loops over other weights and other shapes.  Each group of
layers with equal bodies becomes one function that is given the weights and numbers in which they
differ, and every layer a call of it.  Layers stay functions, so that debuggers, profilers and hooks
find them.

Bodies are compared as text, after buffers have become one-dimensional, constants parameters and
every number a placeholder.  A placeholder of equal numbers becomes the number again, placeholders
that agree in every layer one parameter.

That every access of a layer lies inside its buffer is proven before, of the layer with its own
numbers: products of parameters are beyond the prover.  So each call that is made here is opened
again and compared with the layer that it stands for, which carries the proof over.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from microtir.errors import TirError
from microtir.tir.build import linear_index
from microtir.tir.dtype import DType
from microtir.tir.function import MicroKernel
from microtir.tir.ir import (
    Binary,
    BinaryOp,
    Buffer,
    BufferArgument,
    Expr,
    ExternCall,
    IntImm,
    KernelCall,
    KernelContract,
    Load,
    Param,
    PrimFunc,
    Region,
    Scope,
    Stmt,
    Store,
    Var,
)
from microtir.tir.text import to_text
from microtir.tir.visitor import Rewriter, buffers_written, substitute, walk

# Below this a call with its arguments is no smaller than the body.
_LEAST_NODES = 30
_MOST_NUMBERS = 24
_SHIFTS = frozenset({BinaryOp.SHIFT_LEFT, BinaryOp.SHIFT_RIGHT})


def merge_functions(layers: Sequence[PrimFunc]) -> tuple[PrimFunc, ...]:
    """Give layers with equal bodies one body, and return all layers in their order.

    Args:
        layers: lowered functions, whose accesses are proven.

    Raises:
        TirError: a merged layer is not what it was, which is a defect of this pass.
    """
    groups: dict[str, list[_Skeleton]] = {}
    for layer in filter(_is_large, layers):
        skeleton = _skeleton(layer)
        groups.setdefault(to_text(skeleton.function), []).append(skeleton)
    calls: dict[PrimFunc, PrimFunc] = {}
    for number, group in enumerate(groups.values()):
        if len(group) > 1:
            calls |= _calls(group, number)
    return tuple(calls.get(layer, layer) for layer in layers)


def _is_large(function: PrimFunc) -> bool:
    """Return whether a call instead of the body saves code, and nothing in it is one layer's."""
    nodes = tuple(walk(function))
    symbolic = any(
        not isinstance(n, int) for p in function.params if isinstance(p, Buffer) for n in p.shape
    )
    own = any(isinstance(node, ExternCall) for node in nodes)
    return len(nodes) >= _LEAST_NODES and not symbolic and not own


@dataclass(frozen=True, slots=True, eq=False)
class _Skeleton:
    """A layer as a function of everything that is its own.

    `function` has the layer's parameters, then one for each constant, then placeholders.
    """

    layer: PrimFunc
    function: PrimFunc
    constants: tuple[Buffer, ...]
    numbers: tuple[int, ...]

    @property
    def placeholders(self) -> tuple[Var, ...]:
        count = len(self.numbers)
        last = self.function.params[len(self.function.params) - count :]
        return tuple(p for p in last if isinstance(p, Var))


def _skeleton(layer: PrimFunc) -> _Skeleton:
    opened = _Opened(layer)
    placeholders = _Placeholders()
    body = placeholders.stmt(opened.stmt(layer.body))
    params = tuple(opened.param(p) for p in layer.params)
    skeleton_params = (*params, *opened.constants.values(), *placeholders.values)
    known = layer.origin.name if layer.origin is not None else None
    name = layer.name if known is None else known.work
    return _Skeleton(
        layer,
        PrimFunc(name, skeleton_params, body),
        tuple(opened.constants),
        tuple(placeholders.values.values()),
    )


class _Opened(Rewriter):
    """Parameters and constants as one-dimensional parameters without an extent of their own."""

    def __init__(self, layer: PrimFunc) -> None:
        self.layer = layer
        self.constants: dict[Buffer, Buffer] = {}
        self._params: dict[Param, Param] = {}

    def param(self, param: Param) -> Param:
        if param not in self._params:
            flat = (
                Var(param.name, param.dtype)
                if isinstance(param, Var)
                else replace(param, shape=(1,))
            )
            self._params[param] = flat
        return self._params[param]

    def buffer(self, buffer: Buffer) -> Buffer:
        if buffer.scope is Scope.CONSTANT:
            if buffer not in self.constants:
                self.constants[buffer] = replace(
                    buffer, shape=(1,), scope=Scope.PARAMETER, data=None
                )
            return self.constants[buffer]
        if buffer.scope is not Scope.PARAMETER:
            return buffer
        flat = self.param(buffer)
        assert isinstance(flat, Buffer)
        return flat

    def expr(self, e: Expr) -> Expr:
        if isinstance(e, Load) and e.buffer.scope is not Scope.LOCAL:
            return Load(self.buffer(e.buffer), (self.expr(linear_index(e.buffer, e.indices)),))
        if isinstance(e, Var) and e in self.layer.params:
            var = self.param(e)
            assert isinstance(var, Var)
            return var
        return self.expr_parts(e)

    def stmt(self, s: Stmt) -> Stmt:
        if isinstance(s, Store) and s.buffer.scope is not Scope.LOCAL:
            index = self.expr(linear_index(s.buffer, s.indices))
            return Store(self.buffer(s.buffer), (index,), self.expr(s.value))
        if isinstance(s, KernelCall):
            args = tuple(self._argument(a) for a in s.args)
            return KernelCall(s.meaning, args, s.contract, s.assembly)
        return self.stmt_parts(s)

    def _argument(self, argument: BufferArgument | Expr) -> BufferArgument | Expr:
        if not isinstance(argument, BufferArgument):
            return self.expr(argument)
        if argument.buffer.scope is Scope.LOCAL:
            return argument
        index = self.expr(linear_index(argument.buffer, argument.indices))
        return BufferArgument(self.buffer(argument.buffer), (index,))


class _Placeholders(Rewriter):
    """Every number a Var of its own, but for counts of shifts, which C wants to know."""

    def __init__(self) -> None:
        self.values: dict[Var, int] = {}

    def expr(self, e: Expr) -> Expr:
        if isinstance(e, IntImm) and e.dtype is DType.INT32:
            var = Var(f"number{len(self.values)}")
            self.values[var] = e.value
            return var
        if isinstance(e, Binary) and e.op in _SHIFTS:
            return Binary(e.op, self.expr(e.a), e.b)
        return self.expr_parts(e)


def _calls(group: Sequence[_Skeleton], number: int) -> Mapping[PrimFunc, PrimFunc]:
    """Return layers of a group as calls of one function.

    None if they differ in too many numbers.
    """
    first = group[0]
    columns = list(zip(*(s.numbers for s in group), strict=True))
    distinct = [c for c in dict.fromkeys(columns) if len(set(c)) > 1]
    if len(distinct) > _MOST_NUMBERS:
        return {}
    vars_of = {
        column: Var(f"n{n}", low=min(column), high=max(column)) for n, column in enumerate(distinct)
    }
    values: dict[Var | Buffer, Expr | Buffer | int] = {
        placeholder: vars_of.get(column, column[0])
        for placeholder, column in zip(first.placeholders, columns, strict=True)
    }
    count = len(first.function.params) - len(first.numbers)
    params = [_spanning(group, place) for place in range(count)]
    values |= {
        old: new for old, new in zip(first.function.params, params, strict=False) if old is not new
    }  # fmt: skip
    comment = (
        f"What {len(group)} layers have in common, '{first.layer.name}' first: they give numbers"
    )
    body = PrimFunc(
        f"shared{number}_{first.function.name}",
        (*params, *vars_of.values()),
        substitute(first.function.body, values),
        kernel=MicroKernel((comment,), merges=True),
    )
    calls = {
        s.layer: _call(s, body, [column[place] for column in distinct])
        for place, s in enumerate(group)
    }
    for skeleton in group:
        _check(skeleton, calls[skeleton.layer])
    return calls


def _spanning(group: Sequence[_Skeleton], place: int) -> Param:
    """Return a parameter for what all members have at a place.

    The largest extent, the widest range.
    """
    owned = [[*s.layer.params, *s.constants][place] for s in group]
    parameter = group[0].function.params[place]
    if isinstance(parameter, Buffer):
        sizes = [_elements(b) for b in owned if isinstance(b, Buffer)]
        alignments = [b.alignment for b in owned if isinstance(b, Buffer)]
        return replace(parameter, shape=(max(sizes),), alignment=min(alignments))
    highs = [v.high for v in owned if isinstance(v, Var) and v.high is not None]
    return (
        Var(parameter.name, parameter.dtype, 0, max(highs))
        if len(highs) == len(owned)
        else parameter
    )


def _elements(buffer: Buffer) -> int:
    return math.prod(n for n in buffer.shape if isinstance(n, int))


def _call(skeleton: _Skeleton, body: PrimFunc, numbers: Sequence[int]) -> PrimFunc:
    layer = skeleton.layer
    owned = (*layer.params, *skeleton.constants)
    args = [
        BufferArgument(p, (IntImm(0),) * len(p.shape)) if isinstance(p, Buffer) else p
        for p in owned
    ]
    buffers = [p for p in body.params if isinstance(p, Buffer)]
    written = set(buffers_written(body))
    sizes = (_elements(p) for p in owned if isinstance(p, Buffer))
    regions = {b: Region(b, (IntImm(0),), (size,)) for b, size in zip(buffers, sizes, strict=True)}
    contract = KernelContract(
        tuple(regions[b] for b in buffers), tuple(regions[b] for b in buffers if b in written)
    )
    return replace(layer, body=KernelCall(body, (*args, *map(IntImm, numbers)), contract))


def _check(skeleton: _Skeleton, merged: PrimFunc) -> None:
    """Refuse a call that is not its layer once the arguments stand in the body.

    Raises:
        TirError: names the layer.
    """
    layer, call = skeleton.layer, merged.body
    assert isinstance(call, KernelCall), "a merged layer is one call"
    params = skeleton.function.params[: len(skeleton.function.params) - len(skeleton.numbers)]
    own = dict(zip((*layer.params, *skeleton.constants), params, strict=True))
    arguments: dict[Var | Buffer, Expr | Buffer | int] = {}
    for parameter, argument in zip(call.meaning.params, call.args, strict=True):
        match argument:
            case BufferArgument(buffer):
                arguments[parameter] = own[buffer]
            case Var():
                arguments[parameter] = own[argument]
            case _:
                arguments[parameter] = argument
    numbers: dict[Var | Buffer, Expr | Buffer | int] = {}
    numbers.update(zip(skeleton.placeholders, skeleton.numbers, strict=True))
    expected = substitute(skeleton.function.body, numbers)
    actual = substitute(call.meaning.body, arguments)
    if to_text(PrimFunc(layer.name, params, expected)) != to_text(
        PrimFunc(layer.name, params, actual)
    ):
        raise TirError(
            f"merged into '{call.meaning.name}' it is another function",
            where=f"function '{layer.name}'",
            fix="report this: the pass is faulty, not the program",
        )
