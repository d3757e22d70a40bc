"""Base of all graph operators."""

from __future__ import annotations

from dataclasses import dataclass

from microtir.graph.class_names import NamedByClass


@dataclass(frozen=True, slots=True)
class Operator(NamedByClass):
    """An operator with its attributes; the tensors it applies to belong to the node.

    Its name is that of the class in snake_case, where the class says no other.
    """

    @property
    def label(self) -> str:
        """Return what names the layer's function in C."""
        return self.name
