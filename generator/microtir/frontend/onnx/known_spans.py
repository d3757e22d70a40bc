"""Find between which numbers integers lie that a model picks from constants."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from microtir.dtype import DType
from microtir.graph.ir import Node, Tensor
from microtir.operators.conversion.definition import CastTo
from microtir.operators.selection.definition import Select
from microtir.rewrite.imports.movements import moves_elements

Span = tuple[int, int]
_WIDE = (DType.INT32, DType.INT64)


def known_span(tensor: Tensor, nodes: Sequence[Node]) -> Span | None:
    """Return the least and the greatest number that a tensor can hold; None if that is not known.

    Args:
        tensor: of integers.
        nodes: of the graph so far.
    """
    makers = {output: node for node in nodes for output in node.outputs}
    return _Spans(makers).of(tensor)


class _Spans:
    """Spans of what constants go into, each found once."""

    def __init__(self, makers: Mapping[Tensor, Node]) -> None:
        self._makers = makers
        self._found: dict[Tensor, Span | None] = {}

    def of(self, tensor: Tensor) -> Span | None:
        """Return the span of a tensor: of its maker's operands, which are made before it."""
        waiting = [tensor]
        while waiting:
            current = waiting[-1]
            sources = () if current in self._found else self._sources(current)
            missing = [source for source in sources if source not in self._found]
            if missing:
                waiting.extend(missing)
                continue
            waiting.pop()
            if current not in self._found:
                self._found[current] = self._joined(current, sources)
        return self._found[tensor]

    def _sources(self, tensor: Tensor) -> tuple[Tensor, ...]:
        """Return the operands of which each element of a tensor is one."""
        node = self._makers.get(tensor)
        if node is None or tensor.data is not None or tensor.dtype not in _WIDE:
            return ()
        if isinstance(node.op, Select):
            return node.inputs[1:]
        if isinstance(node.op, CastTo) and node.inputs[0].dtype in _WIDE:
            return node.inputs
        if not moves_elements(node.op):
            return ()
        return tuple(source for source in node.inputs if source.dtype is tensor.dtype)

    def _joined(self, tensor: Tensor, sources: Sequence[Tensor]) -> Span | None:
        if tensor.data is not None and tensor.data.size:
            return int(tensor.data.min()), int(tensor.data.max())
        spans = [self._found[source] for source in sources]
        known = [span for span in spans if span is not None]
        if not known or len(known) < len(spans):
            return None
        return min(low for low, _ in known), max(high for _, high in known)
