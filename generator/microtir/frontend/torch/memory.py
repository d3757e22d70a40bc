"""Follow what a program writes in place: values of names change with the memory that they share.

The graph knows no memory.  A write gives the tensor whose memory it is a new value, in which a part
is another one; what shares that memory is read again from it before it is used the next time.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np

from microtir.errors import UnsupportedModelError
from microtir.frontend.torch.program import FileGraph, FileNode, Named, names_in
from microtir.frontend.torch.readers import READERS
from microtir.graph.ir import Array, Tensor
from microtir.graph.names import brief
from microtir.operators.common.torch_operands import Alias, TorchNode, TorchReader, TorchValue


@dataclass(frozen=True, slots=True)
class Unread:
    """The value of a name that could not be read, which is a problem of another node."""


@dataclass(frozen=True, slots=True)
class View:
    """A name whose memory is part of another one's; `node` is None where it is all of it."""

    parent: str
    node: FileNode | None
    position: int = 0  # among the results of the node


@dataclass(slots=True)
class Memory:
    """The memory that names of a graph share."""

    views: dict[str, View] = field(default_factory=dict)
    copies: dict[str, str] = field(default_factory=dict)  # that may be views, and of what
    writes: dict[str, int] = field(default_factory=dict)  # how often each memory was written to
    seen: dict[str, int] = field(default_factory=dict)  # how many writes a view's value has
    doubtful: set[str] = field(default_factory=set)  # memory that may have been written to

    def chain(self, name: str) -> Iterator[str]:
        """Yield a name, what it is part of, what that is part of, to the memory itself."""
        yield name
        while name in self.views:
            name = self.views[name].parent
            yield name

    def owner(self, name: str) -> str:
        """Return the name whose memory another one is part of."""
        return list(self.chain(name))[-1]

    def note(self, node: FileNode, reader: TorchReader, graph: FileGraph, *, writes: bool) -> None:
        """Note what the results of a node share with its first argument."""
        source = first_name(node)
        if source is None:
            return
        names = [name for result in node.results for name in names_in(result)]
        results = [name for name in names if name not in self.views and name != self.owner(source)]
        alias = reader.alias if writes else _settled(reader.alias, source, results, graph)
        if alias is Alias.MAYBE and not writes:
            self.copies.update(dict.fromkeys(results, source))
        elif writes or alias is Alias.VIEW:
            is_same = writes and alias is not Alias.VIEW
            for position, name in enumerate(results):
                self.views[name] = View(source, None if is_same else node, position)
                self.seen[name] = self.writes.get(self.owner(name), 0)

    def is_stale(self, name: str) -> bool:
        """Return whether the memory of a view was written to since its value was read."""
        return name in self.views and self.seen[name] != self.writes.get(self.owner(name), 0)

    def write(self, name: str) -> None:
        """Note a write to the memory of a name; all names on the way to it are up to date."""
        owner = self.owner(name)
        self.writes[owner] = self.writes.get(owner, 0) + 1
        self.seen.update(
            (link, self.writes[owner]) for link in self.chain(name) if link in self.views
        )
        for copy, source in self.copies.items():
            pair = copy, self.owner(source)
            if owner in pair:
                self.doubtful.update(set(pair) - {owner})

    def check(self, name: str, where: str) -> None:
        """Refuse a value that a write may have changed.

        Raises:
            UnsupportedModelError: strides decide whether it was.
        """
        if self.owner(name) in self.doubtful:
            raise UnsupportedModelError(
                f"{brief(name)!r} may share memory with a tensor that was changed in place",
                where=where,
                legal="writes to tensors, and to views of them: select, slice, view, transpose",
                fix="write .clone() before the tensor is changed, or compute a new one",
            )


def _settled(alias: Alias, source: str, results: Sequence[str], graph: FileGraph) -> Alias:
    """Return what a result shares with its source, where types and strides say it."""
    pair = [graph.tensors.get(name) for name in (source, *results[:1])]
    if alias is not Alias.MAYBE or len(pair) < 2 or pair[0] is None or pair[1] is None:
        return alias
    if pair[0].dtype != pair[1].dtype:
        return Alias.NONE
    return Alias.VIEW if pair[0].is_dense else Alias.MAYBE


def first_name(node: FileNode) -> str | None:
    """Return the name of the first argument, which is what a node writes to or takes a view of."""
    first = next(iter(node.arguments.values()), None)
    return first.name if isinstance(first, Named) else None


def reader_of(target: str) -> tuple[TorchReader | None, bool]:
    """Return the reader of an operator, and whether the operator writes to its first argument.

    "aten.add_.Tensor" is read as "aten.add.Tensor" is.
    """
    reader = READERS.get(target)
    domain, _, rest = target.partition(".")
    name, _, overload = rest.partition(".")
    if reader is not None or not name.endswith("_") or name.endswith("__"):
        return reader, False
    return READERS.get(f"{domain}.{name[:-1]}.{overload}"), True


def written_names(graph: FileGraph) -> frozenset[str]:
    """Return the names whose memory nodes of a graph write to."""
    memory, written = Memory(), set()
    for node in graph.nodes:
        reader, writes = reader_of(node.target)
        source = first_name(node)
        if reader is None or source is None:
            continue
        if writes and reader.alias is not Alias.VIEW:
            written.add(memory.owner(source))
        memory.note(node, reader, graph, writes=writes)
    return frozenset(written)


def with_part(node: TorchNode, whole: Tensor, places: Array, part: Tensor) -> Tensor:
    """Return a tensor with other elements at some places.

    Args:
        node: that writes them.
        whole: the tensor.
        places: of the elements, counted through all of it, in the shape of the part.
        part: what they become.

    Raises:
        UnsupportedModelError: two elements of the part have one place.
    """
    flat = places.reshape(-1)
    if len(np.unique(flat)) < flat.size:
        raise node.unsupported(
            "it writes in place to a tensor whose elements share memory",
            "a tensor with separate memory for each element",
            "write .clone() after expand() before the tensor is changed",
        )
    if flat.size == whole.type.elements:
        if (flat == np.arange(flat.size)).all():
            return node.reshaped(part, whole.shape)
        elements = node.reshaped(part, (flat.size,))
        moved = node.onnx("Gather", elements, node.constant(np.argsort(flat)), axis=0)
        return node.reshaped(moved, whole.shape)
    slab = _slab(flat, whole.shape)
    if slab is not None:
        return _with_slab(node, whole, part, *slab)
    elements = node.reshaped(whole, (whole.type.elements,))
    indices = node.constant(flat.astype(np.int64))
    values = node.reshaped(part, (flat.size,))
    return node.reshaped(
        node.onnx("ScatterElements", elements, indices, values, axis=0), whole.shape
    )


def _slab(flat: Array, shape: Sequence[int]) -> tuple[int, int, int] | None:
    """Return the axis, begin and end of places that are a range of one axis; None if not."""
    if not flat.size or (np.diff(flat) < 0).any():
        return None
    used = [np.unique(axis) for axis in np.unravel_index(flat, tuple(shape))]
    cut = [axis for axis, values in enumerate(used) if len(values) < shape[axis]]
    if len(cut) != 1 or int(np.prod([len(values) for values in used])) != flat.size:
        return None
    values = used[cut[0]]
    begin, end = int(values[0]), int(values[-1]) + 1
    return (cut[0], begin, end) if end - begin == len(values) else None


def _with_slab(
    node: TorchNode, whole: Tensor, part: Tensor, axis: int, begin: int, end: int
) -> Tensor:
    """Return a tensor with a range of one axis replaced."""
    shape = list(whole.shape)
    shape[axis] = end - begin
    ranges = ((0, begin), (end, whole.shape[axis]))
    ends = [
        node.onnx("Slice", whole, *(node.ints(number) for number in (first, last, axis)))
        if first < last
        else None
        for first, last in ranges
    ]
    parts = (ends[0], node.reshaped(part, shape), ends[1])
    return node.onnx("Concat", *(x for x in parts if x is not None), axis=axis)


def places_of(value: TorchValue, view: View, node: TorchNode) -> Array:
    """Return the places of a view's elements, as its reader gives them for counted elements."""
    result = value[view.position] if isinstance(value, tuple) else value
    if not isinstance(result, Tensor) or result.data is None:
        raise node.unsupported(
            "it writes in place to elements whose positions are computed",
            "views whose indices are constants",
            "compute a new tensor instead",
        )
    return result.data
