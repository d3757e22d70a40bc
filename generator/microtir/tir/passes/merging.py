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

from microtir.dtype import DType
from microtir.errors import TirError
from microtir.tir import ir
from microtir.tir.build import linear_index
from microtir.tir.function import MicroKernel
from microtir.tir.text import to_text
from microtir.tir.visitor import Replacement, Rewriter, buffers_written, substitute, walk

# Below this a call with its arguments is no smaller than the body.
_LEAST_NODES = 30
_MOST_NUMBERS = 24
_SHIFTS = frozenset({ir.BinaryOp.SHIFT_LEFT, ir.BinaryOp.SHIFT_RIGHT})


def merge_functions(layers: Sequence[ir.PrimFunc]) -> tuple[ir.PrimFunc, ...]:
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
    calls: dict[ir.PrimFunc, ir.PrimFunc] = {}
    for number, group in enumerate(groups.values()):
        if len(group) > 1:
            calls |= _calls(group, number)
    return tuple(calls.get(layer, layer) for layer in layers)


def _is_large(function: ir.PrimFunc) -> bool:
    """Return whether a call instead of the body saves code, and nothing in it is one layer's."""
    nodes = tuple(walk(function))
    symbolic = any(
        not isinstance(n, int) for p in function.params if isinstance(p, ir.Buffer) for n in p.shape
    )
    own = any(isinstance(node, ir.ExternCall) for node in nodes)
    return len(nodes) >= _LEAST_NODES and not symbolic and not own


@dataclass(frozen=True, slots=True, eq=False)
class _Skeleton:
    """A layer as a function of everything that is its own.

    `function` has the layer's parameters, then one for each constant, then placeholders.
    """

    layer: ir.PrimFunc
    function: ir.PrimFunc
    constants: tuple[ir.Buffer, ...]
    numbers: tuple[int, ...]

    @property
    def placeholders(self) -> tuple[ir.Var, ...]:
        count = len(self.numbers)
        last = self.function.params[len(self.function.params) - count :]
        return tuple(p for p in last if isinstance(p, ir.Var))


def _skeleton(layer: ir.PrimFunc) -> _Skeleton:
    opened = _Opened(layer)
    placeholders = _Placeholders()
    body = placeholders.stmt(opened.stmt(layer.body))
    params = tuple(opened.param(p) for p in layer.params)
    skeleton_params = (*params, *opened.constants.values(), *placeholders.values)
    known = layer.origin.name if layer.origin is not None else None
    name = layer.name if known is None else known.work
    return _Skeleton(
        layer,
        ir.PrimFunc(name, skeleton_params, body),
        tuple(opened.constants),
        tuple(placeholders.values.values()),
    )


class _Opened(Rewriter):
    """Parameters and constants as one-dimensional parameters without an extent of their own."""

    def __init__(self, layer: ir.PrimFunc) -> None:
        self.layer = layer
        self.constants: dict[ir.Buffer, ir.Buffer] = {}
        self._params: dict[ir.Param, ir.Param] = {}

    def param(self, param: ir.Param) -> ir.Param:
        if param not in self._params:
            flat = (
                ir.Var(param.name, param.dtype)
                if isinstance(param, ir.Var)
                else replace(param, shape=(1,))
            )
            self._params[param] = flat
        return self._params[param]

    def buffer(self, buffer: ir.Buffer) -> ir.Buffer:
        if buffer.scope is ir.Scope.CONSTANT:
            if buffer not in self.constants:
                self.constants[buffer] = replace(
                    buffer, shape=(1,), scope=ir.Scope.PARAMETER, data=None
                )
            return self.constants[buffer]
        if buffer.scope is not ir.Scope.PARAMETER:
            return buffer
        flat = self.param(buffer)
        assert isinstance(flat, ir.Buffer)
        return flat

    def expr(self, e: ir.Expr) -> ir.Expr:
        if isinstance(e, ir.Load) and e.buffer.scope is not ir.Scope.LOCAL:
            return ir.Load(self.buffer(e.buffer), (self.expr(linear_index(e.buffer, e.indices)),))
        if isinstance(e, ir.Var) and e in self.layer.params:
            var = self.param(e)
            assert isinstance(var, ir.Var)
            return var
        return self.expr_parts(e)

    def stmt(self, s: ir.Stmt) -> ir.Stmt:
        if isinstance(s, ir.Store) and s.buffer.scope is not ir.Scope.LOCAL:
            index = self.expr(linear_index(s.buffer, s.indices))
            return ir.Store(self.buffer(s.buffer), (index,), self.expr(s.value))
        if isinstance(s, ir.KernelCall):
            args = tuple(self._argument(a) for a in s.args)
            return ir.KernelCall(s.meaning, args, s.contract, s.template)
        return self.stmt_parts(s)

    def _argument(self, argument: ir.BufferArgument | ir.Expr) -> ir.BufferArgument | ir.Expr:
        if not isinstance(argument, ir.BufferArgument):
            return self.expr(argument)
        if argument.buffer.scope is ir.Scope.LOCAL:
            return argument
        index = self.expr(linear_index(argument.buffer, argument.indices))
        return ir.BufferArgument(self.buffer(argument.buffer), (index,))


class _Placeholders(Rewriter):
    """Every number a Var of its own, but for counts of shifts, which C wants to know."""

    def __init__(self) -> None:
        self.values: dict[ir.Var, int] = {}

    def expr(self, e: ir.Expr) -> ir.Expr:
        if isinstance(e, ir.IntImm) and e.dtype is DType.INT32:
            var = ir.Var(f"number{len(self.values)}")
            self.values[var] = e.value
            return var
        if isinstance(e, ir.Binary) and e.op in _SHIFTS:
            return ir.Binary(e.op, self.expr(e.a), e.b)
        return self.expr_parts(e)


def _calls(group: Sequence[_Skeleton], number: int) -> Mapping[ir.PrimFunc, ir.PrimFunc]:
    """Return layers of a group as calls of one function.

    None if they differ in too many numbers.
    """
    first = group[0]
    columns = list(zip(*(s.numbers for s in group), strict=True))
    distinct = [c for c in dict.fromkeys(columns) if len(set(c)) > 1]
    if len(distinct) > _MOST_NUMBERS:
        return {}
    vars_of = {
        column: ir.Var(f"n{n}", low=min(column), high=max(column))
        for n, column in enumerate(distinct)
    }
    values: dict[ir.Param, Replacement] = {
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
    body = ir.PrimFunc(
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


def _spanning(group: Sequence[_Skeleton], place: int) -> ir.Param:
    """Return a parameter for what all members have at a place.

    The largest extent, the widest range.
    """
    owned = [[*s.layer.params, *s.constants][place] for s in group]
    parameter = group[0].function.params[place]
    if isinstance(parameter, ir.Buffer):
        sizes = [_elements(b) for b in owned if isinstance(b, ir.Buffer)]
        alignments = [b.alignment for b in owned if isinstance(b, ir.Buffer)]
        return replace(parameter, shape=(max(sizes),), alignment=min(alignments))
    highs = [v.high for v in owned if isinstance(v, ir.Var) and v.high is not None]
    return (
        ir.Var(parameter.name, parameter.dtype, 0, max(highs))
        if len(highs) == len(owned)
        else parameter
    )


def _elements(buffer: ir.Buffer) -> int:
    return math.prod(n for n in buffer.shape if isinstance(n, int))


def _call(skeleton: _Skeleton, body: ir.PrimFunc, numbers: Sequence[int]) -> ir.PrimFunc:
    layer = skeleton.layer
    owned = (*layer.params, *skeleton.constants)
    args = [
        ir.BufferArgument(p, (ir.IntImm(0),) * len(p.shape)) if isinstance(p, ir.Buffer) else p
        for p in owned
    ]
    buffers = [p for p in body.params if isinstance(p, ir.Buffer)]
    written = set(buffers_written(body))
    sizes = (_elements(p) for p in owned if isinstance(p, ir.Buffer))
    regions = {
        b: ir.Region(b, (ir.IntImm(0),), (size,)) for b, size in zip(buffers, sizes, strict=True)
    }
    contract = ir.KernelContract(
        tuple(regions[b] for b in buffers), tuple(regions[b] for b in buffers if b in written)
    )
    return replace(layer, body=ir.KernelCall(body, (*args, *map(ir.IntImm, numbers)), contract))


def _check(skeleton: _Skeleton, merged: ir.PrimFunc) -> None:
    """Refuse a call that is not its layer once the arguments stand in the body.

    Raises:
        TirError: names the layer.
    """
    layer, call = skeleton.layer, merged.body
    assert isinstance(call, ir.KernelCall), "a merged layer is one call"
    params = skeleton.function.params[: len(skeleton.function.params) - len(skeleton.numbers)]
    own = dict(zip((*layer.params, *skeleton.constants), params, strict=True))
    arguments: dict[ir.Param, Replacement] = {}
    for parameter, argument in zip(call.meaning.params, call.args, strict=True):
        match argument:
            case ir.BufferArgument(buffer):
                arguments[parameter] = own[buffer]
            case ir.Var():
                arguments[parameter] = own[argument]
            case _:
                arguments[parameter] = argument
    numbers: dict[ir.Param, Replacement] = {}
    numbers.update(zip(skeleton.placeholders, skeleton.numbers, strict=True))
    expected = substitute(skeleton.function.body, numbers)
    actual = substitute(call.meaning.body, arguments)
    if to_text(ir.PrimFunc(layer.name, params, expected)) != to_text(
        ir.PrimFunc(layer.name, params, actual)
    ):
        raise TirError(
            f"after merging into '{call.meaning.name}', the function computes another result",
            where=f"function '{layer.name}'",
            fix="report this as a bug: the pass is faulty, not the program",
        )
