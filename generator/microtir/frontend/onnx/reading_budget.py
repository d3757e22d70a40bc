"""Bound what is made while a file is read: a few of its numbers can ask for any size."""

from __future__ import annotations

from dataclasses import dataclass

from microtir.errors import MicrotirError, UnsupportedModelError
from microtir.graph.ir import Node
from microtir.rewrite.facts.macs import terms

MOST_KNOWN_BYTES = 1 << 28
"""Limit of the bytes that one node computes from constants alone, which become a constant."""

_NODES = 1 << 14
_NODES_EACH = 16  # more for each node of the file
_KNOWN_BYTES = 1 << 28
_KNOWN_BYTES_EACH = 16  # more for each byte that the file stores
_SUMMANDS = 1 << 28

_FIX = "export the model again, simplified (onnxsim, or onnxruntime's basic graph optimisations)"


@dataclass(slots=True)
class ReadingBudget:
    """The nodes and bytes that may still be made of a file; tries taken back count, too."""

    nodes: int = _NODES
    known_bytes: int = _KNOWN_BYTES
    summands: int = _SUMMANDS  # of sums over constants

    def allow_for_node(self) -> None:
        """Allow for what a node of the file becomes."""
        self.nodes += _NODES_EACH

    def allow_for_bytes(self, count: int) -> None:
        """Allow for what is computed from values that the file stores."""
        self.known_bytes += _KNOWN_BYTES_EACH * count

    def spend_node(self, where: str) -> None:
        """Count a node of the graph.

        Raises:
            UnsupportedModelError: there are too many.
        """
        self.nodes -= 1
        if self.nodes < 0:
            raise _too_much("it becomes too many operators", f"some {_NODES} for one node", where)

    def spend_bytes(self, count: int, where: str) -> None:
        """Count a constant that is computed.

        Raises:
            UnsupportedModelError: with it there are too many bytes.
        """
        self.known_bytes -= count
        if self.known_bytes < 0:
            raise _too_much(
                f"with it, constants of more than {_KNOWN_BYTES} bytes are computed",
                f"at most {_KNOWN_BYTES}, and {_KNOWN_BYTES_EACH} times what the file stores",
                where,
            )

    def spend_sums(self, node: Node, where: str) -> None:
        """Count what is added up to compute a constant.

        Raises:
            UnsupportedModelError: it is too much.
        """
        each = terms(node)
        if each > 1:
            self.summands -= each * sum(tensor.type.elements for tensor in node.outputs)
        if self.summands < 0:
            raise _too_much(
                f"with it, constants are sums of more than {_SUMMANDS} products",
                f"at most {_SUMMANDS}",
                where,
            )


def _too_much(what: str, legal: str, where: str) -> MicrotirError:
    return UnsupportedModelError(what, where=where, legal=legal, fix=_FIX)
