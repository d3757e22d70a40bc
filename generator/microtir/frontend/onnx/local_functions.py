"""Count what the functions of a model come to when each call is written out."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeAlias

from microtir.errors import ModelFileError, UnsupportedModelError
from microtir.frontend.onnx.inner_graphs import graphs_in
from microtir.graph.names import brief

if TYPE_CHECKING:
    import onnx

MOST_WRITTEN_NODES = 1 << 16
"""Most nodes of a model once its calls are written out."""

MOST_WRITTEN_BYTES = 1 << 30
"""Most bytes of these nodes: a constant of a function is there once for each call."""

MOST_CALLS_DEEP = 64

_Key: TypeAlias = tuple[str, str, str]


@dataclass(frozen=True, slots=True)
class _Size:
    nodes: int = 0
    bytes: int = 0

    def __add__(self, other: _Size) -> _Size:
        return _Size(self.nodes + other.nodes, self.bytes + other.bytes)


@dataclass(slots=True)
class _Sizes:
    """Sizes of functions, each counted once however often it is called."""

    functions: Mapping[_Key, onnx.FunctionProto]
    file: str
    known: dict[_Key, _Size] = field(default_factory=dict)
    within: list[_Key] = field(default_factory=list)

    def of_nodes(self, nodes: Iterable[onnx.NodeProto]) -> _Size:
        """Return the size of nodes with all that they call."""
        size = _Size()
        for node in nodes:
            key = (node.domain, node.op_type, getattr(node, "overload", ""))
            own = self.of_function(key) if key in self.functions else _Size(1, node.ByteSize())
            size += own
            for graph in graphs_in(node):
                size += self.of_nodes(graph.node)
        return size

    def of_function(self, key: _Key) -> _Size:
        """Return the size of a function with all that it calls.

        Raises:
            ModelFileError: it calls itself, or calls are too deep.
        """
        if key in self.known:
            return self.known[key]
        if key in self.within or len(self.within) >= MOST_CALLS_DEEP:
            raise ModelFileError(
                f"its function {brief(key[1])!r} "
                + ("calls itself" if key in self.within else "is called too deep inside of others"),
                where=self.file,
                legal=f"calls of functions that are nested at most {MOST_CALLS_DEEP} deep",
                fix="export the model again, without functions",
            )
        self.within.append(key)
        self.known[key] = self.of_nodes(self.functions[key].node)
        self.within.pop()
        return self.known[key]


def check_functions(model: onnx.ModelProto, file: str) -> None:
    """Refuse a model that a few functions make large, if each calls the next one twice, say.

    Raises:
        ModelFileError: a function calls itself.
        UnsupportedModelError: there are too many nodes when all calls are written out.
    """
    if not model.functions:
        return
    functions = {(f.domain, f.name, getattr(f, "overload", "")): f for f in model.functions}
    size = _Sizes(functions, file).of_nodes(model.graph.node)
    if size.nodes > MOST_WRITTEN_NODES or size.bytes > MOST_WRITTEN_BYTES:
        raise UnsupportedModelError(
            "its functions are too large when each call is inlined",
            where=file,
            legal=f"at most {MOST_WRITTEN_NODES} nodes of {MOST_WRITTEN_BYTES} bytes",
            fix="export the model without functions, or a smaller one",
        )
