"""Names of operators and passes, which follow from those of their classes."""

from __future__ import annotations

import re
from typing import ClassVar

_WORD_ENDS = re.compile(r"(?<=[a-z])(?=[A-Z]|\d[A-Z])|(?<=\d)(?=[A-Z][a-z])")


class NamedByClass:
    """Base of what is known by the name of its class in snake_case, or by another that it says."""

    __slots__ = ()
    name: ClassVar[str] = ""

    def __init_subclass__(cls) -> None:
        if "name" not in cls.__dict__:
            cls.name = _WORD_ENDS.sub("_", cls.__name__).lower()
