"""Base of all graph operators."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import ClassVar

_WORD_ENDS = re.compile(r"(?<=[a-z])(?=[A-Z]|\d[A-Z])|(?<=\d)(?=[A-Z][a-z])")


@dataclass(frozen=True, slots=True)
class Operator:
    """An operator with its attributes; the tensors it applies to belong to the node.

    Its name is that of the class in snake_case, where the class says no other.
    """

    name: ClassVar[str] = ""

    def __init_subclass__(cls) -> None:
        if "name" not in cls.__dict__:
            cls.name = _WORD_ENDS.sub("_", cls.__name__).lower()

    @property
    def label(self) -> str:
        """Return what names the layer's function in C."""
        return self.name
