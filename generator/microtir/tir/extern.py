"""C functions outside the program: their C files, and the accelerators that they use."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import Enum

from microtir.tir.storage import Buffer, Param


class SourceKind(Enum):
    """The part of a C file that the text of an ExternSource is."""

    FILE = "file"  # all of it
    DEFINITION = "definition"  # of the function; its prototype is printed before
    BODY = "body"  # of the function; the signature has the names of its parameters


@dataclass(frozen=True, slots=True)
class CTemplate:
    """C that codegen prints: a template, and the values that it speaks of.

    `template` is a path below the folder of templates. A value may be a CTemplate: that stands
    for what it prints.
    """

    template: str
    values: Mapping[str, object]

    def __hash__(self) -> int:
        return hash(self.template)  # equal ones have equal values, which need no hash


@dataclass(frozen=True, slots=True)
class ExternSource:
    """A C file that a program with an ExternFunction is compiled with.

    `path` is relative to the generated sources. Parts that are not whole files share a file if
    they have the same path; `includes` are the headers that they need, in the quotes of C or, with
    angle brackets around them, those of the compiler.
    """

    path: str
    text: str | CTemplate
    kind: SourceKind = SourceKind.FILE
    includes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Device:
    """An accelerator whose driver and state are the application's.

    `name` is a C identifier. The others are C functions ``int32_t f(void *context)``, 0 for
    success: the entry function of a model activates the device before a run and deactivates it
    after; what is called on it opens and closes it.
    """

    name: str
    activate: str
    open: str
    close: str
    deactivate: str


@dataclass(frozen=True, slots=True, eq=False)
class ExternFunction:
    """A C function outside the program, and what analysis takes for granted about it.

    It may read all of the buffers `reads` and writes all of the buffers `writes`, any write before
    any read; both are parameters. With `returns_status` it returns an int32_t, 0 for success, and
    who calls it fails as it does. `meaning` is what the interpreter runs: it is given an array for
    each buffer and an int for each Var, in their order, and stores into the arrays. With a `device`
    its last parameter in C is the application's state of it, and its status reaches the
    application.
    """

    name: str  # its C identifier
    params: tuple[Param, ...]
    reads: tuple[Buffer, ...]
    writes: tuple[Buffer, ...]
    meaning: Callable[..., None] | None = None
    returns_status: bool = False
    stack_bytes: int = 0  # of its variables and of what it calls, beyond what any call takes
    sources: tuple[ExternSource, ...] = ()
    device: Device | None = None
