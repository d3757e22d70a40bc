"""Defines the types of what `metadata.json` holds, by which a reader checks it."""

from __future__ import annotations

from typing import Annotated, TypeAlias

from microtir.dtype import DType
from microtir.support import texts
from microtir.support.reading import NATURAL, NumberRange

# Far more than any microcontroller has: what is larger only makes a reader slow.
MAX_SIZE = 2**40
MAX_EXTENT = 2**31 - 1


def _element_problem(name: str) -> str:
    return "" if name in {dtype.value for dtype in DType} else "is not a type of elements"


_ELEMENT = texts.Rule(", ".join(dtype.value for dtype in DType), _element_problem)

Alignment: TypeAlias = Annotated[int, NumberRange(1, 2**16)]
ElementType: TypeAlias = Annotated[str, _ELEMENT]
Extent: TypeAlias = Annotated[int, NumberRange(0, MAX_EXTENT)]
FileName: TypeAlias = Annotated[str, texts.FILE_NAME]
FilePath: TypeAlias = Annotated[str, texts.PATH]
Hexadecimal: TypeAlias = Annotated[str, texts.HEXADECIMAL]
Identifier: TypeAlias = Annotated[str, texts.IDENTIFIER]
ModuleName: TypeAlias = Annotated[str, texts.MODULE_NAME]
Natural: TypeAlias = Annotated[int, NATURAL]
PoolName: TypeAlias = Annotated[str, texts.POOL_NAME]
SectionName: TypeAlias = Annotated[str, texts.SECTION]
Size: TypeAlias = Annotated[int, NumberRange(0, MAX_SIZE)]
Text: TypeAlias = Annotated[str, texts.TEXT]
