"""Functions that are the same but for the objects that they are made of.

Layers of equal shapes become functions that differ in their weights, and in nothing else.  What
is worked out by reading the body of one of them holds for the others, word by word.

Of the data of a constant, only the lowest and the highest value matter to what reads a body
(`tir.analysis.bounds`), and these only where the body itself loads it: micro-kernels, which are
given pointers, are known by their contracts.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any, TypeAlias

from microtir.tir import build, ir
from microtir.tir.analysis.bounds import Bounds
from microtir.tir.visitor import Replacement, substitute, walk

Item: TypeAlias = ir.Var | ir.Buffer


@dataclass(frozen=True, slots=True, eq=False)
class StructuralKey:
    """The identity of a function, without its name and what it says about itself.

    Functions with equal tokens have bodies of the same text, parameters included, and differ in the
    `items` of which they are made, by position, and in the data of constants.
    """

    tokens: tuple[object, ...]
    items: tuple[Item, ...]


def structural_key(function: ir.PrimFunc) -> StructuralKey:
    """Return the structural key of a function."""
    writer = _Writer()
    write, number = writer.tokens.append, writer.number
    for param in function.params:
        number(param)
    write(function.exported)
    write(function.scratch is None)
    if function.scratch is not None:
        number(function.scratch)
    write(function.row_range is None)
    if function.row_range is not None:
        number(function.row_range.start)
        number(function.row_range.stop)
    for buffer, rows in function.rows.items():
        number(buffer)
        write(rows)
    for node in walk(function):
        write(type(node))
        writes = _TOKENS.get(type(node))
        if writes is not None:
            writes(writer, node)
    return StructuralKey(tuple(writer.tokens), tuple(writer.numbers))


def rebind(
    function: ir.PrimFunc, own: StructuralKey, other: StructuralKey, lowered: ir.PrimFunc
) -> ir.PrimFunc:
    """Return what passes make of a function, given what they make of another one that equals it.

    Args:
        function: before the passes.
        own: its key.
        other: that of the other function, with equal tokens.
        lowered: what became of the other function: its body is another one, and nothing else.
    """
    items: dict[Item, Replacement] = dict(zip(other.items, own.items, strict=True))
    for node in walk(lowered):
        # Passes copy loops: what they define so is defined once, here as well.
        if isinstance(node, ir.For | ir.Let) and node.var not in items:
            items[node.var] = build.fresh(node.var)
        elif isinstance(node, ir.Allocate) and node.buffer not in items:
            items[node.buffer] = replace(node.buffer)
    return replace(function, body=substitute(lowered.body, items))


class _Writer:
    """Writes down what nodes say beside their parts, in the order of the text."""

    def __init__(self) -> None:
        self.tokens: list[object] = []
        self.numbers: dict[Item, int] = {}
        self.bounds = Bounds()

    def number(self, item: Item) -> None:
        """Write an item by its number and, where it occurs first, all that is said of it."""
        known = self.numbers.get(item)
        if known is not None:
            self.tokens.append(known)
            return
        if isinstance(item, ir.Buffer):
            for extent in item.shape:
                if isinstance(extent, ir.Var):
                    self.number(extent)
        self.tokens.append(len(self.numbers))
        self.numbers[item] = len(self.numbers)
        if isinstance(item, ir.Var):
            self.tokens += (item.name, item.dtype, item.low, item.high)
            return
        shape = tuple(self.numbers[n] if isinstance(n, ir.Var) else n for n in item.shape)
        kinds = tuple(isinstance(n, ir.Var) for n in item.shape)
        data = None if item.data is None else (item.data.shape, item.data.dtype.name)
        self.tokens += (item.name, shape, kinds, item.dtype, item.scope, item.alignment, data)

    def load(self, node: ir.Load) -> None:
        """Write a load, which may be of any value of a constant."""
        buffer = node.buffer
        self.number(buffer)
        if buffer.scope is ir.Scope.CONSTANT and not buffer.dtype.is_float:
            self.tokens.append(self.bounds.buffer(buffer))

    def view(self, node: ir.BufferView) -> None:
        self.number(node.buffer)
        self.tokens += (node.shape, node.dtype, node.byte_offset)

    def kernel(self, node: ir.KernelCall) -> None:
        self.tokens += (node.meaning, node.contract, node.template, len(node.args))


def _loop(writer: _Writer, node: ir.For) -> None:
    writer.number(node.var)
    writer.tokens.append(node.kind)


# What is not here has nothing to say beside its type and its parts.  Operators come by what they
# are called: to hash a text takes a fraction of what hashing a member of an Enum takes.
_TOKENS: Mapping[type, Callable[[_Writer, Any], None]] = MappingProxyType({
    ir.Var: _Writer.number,
    ir.IntImm: lambda w, n: w.tokens.extend((n.value, n.dtype)),
    ir.FloatImm: lambda w, n: w.tokens.extend((n.value.hex(), n.dtype)),
    ir.Binary: lambda w, n: w.tokens.append(n.op.value),
    ir.Unary: lambda w, n: w.tokens.append(n.op.value),
    ir.Cast: lambda w, n: w.tokens.append(n.dtype),
    ir.Load: _Writer.load,
    ir.Call: lambda w, n: w.tokens.extend((n.intrinsic.value, len(n.args), n.dtype)),
    ir.BufferArgument: lambda w, n: w.number(n.buffer),
    ir.BufferView: _Writer.view,
    ir.Store: lambda w, n: w.number(n.buffer),
    ir.For: _loop,
    ir.If: lambda w, n: w.tokens.append(n.otherwise is None),
    ir.Seq: lambda w, n: w.tokens.append(len(n.statements)),
    ir.Let: lambda w, n: w.number(n.var),
    ir.Allocate: lambda w, n: w.number(n.buffer),
    ir.Invoke: lambda w, n: w.tokens.extend((n.function, len(n.args))),
    ir.KernelCall: _Writer.kernel,
    ir.ExternCall: lambda w, n: w.tokens.extend((n.function, len(n.args))),
})  # fmt: skip
