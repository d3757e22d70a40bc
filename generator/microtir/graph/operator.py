"""Base of all graph operators."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar


@dataclass(frozen=True, slots=True)
class Operator:
    """An operator with its attributes; the tensors it applies to belong to the node."""

    name: ClassVar[str] = ""  # snake_case

    @property
    def label(self) -> str:
        """Return what names the layer's function in C."""
        return self.name
