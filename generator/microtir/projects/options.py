"""Defines what a caller may choose about a project."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType

from microtir.boards.board import Console
from microtir.boards.errors import ProjectError
from microtir.support.arrays import Array

# Printable ASCII without what some of make, CMake, a shell and SCons cannot be told as a value.
_DEFINITION = re.compile(r"[A-Za-z_][A-Za-z0-9_]*(=[!%&()*+,./0-9:<=>?@A-Z\[\]^_a-z{|}~-]*)?")

MINIMAL_STACK = 256  # bytes: the application's own calls


@dataclass(frozen=True, slots=True, eq=False)
class Samples:
    """Inputs that the application runs a model on, and what is expected.

    Args:
        inputs: arrays by the model's name of the input; the first axis counts samples, and the
            second one may count the steps of each, of a model that keeps something between them.
        outputs: expected outputs in the same form, or none: then they are only printed.
        rtol: allowed difference of floats, relative to a sample's largest expected magnitude.
    """

    inputs: Mapping[str, Array]
    outputs: Mapping[str, Array] = field(default_factory=lambda: MappingProxyType({}))
    rtol: float = 1e-5


@dataclass(frozen=True, slots=True, eq=False)
class ProjectOptions:
    """Options of a project; every one is honoured or refused.

    Args:
        samples: by module name; a model without any gets one of arbitrary values.
        together: sets of names of models that may run at the same time, and so share no memory;
            those that came with an archive need not be named again.
        console: where the program prints; None takes the board's usual place.
        stack: bytes for the stack; None takes the board's usual size.
        definitions: more macros for the compiler, `NAME` or `NAME=value`.
        optimization: the compiler's flag.
        server: instead of running samples the program answers a computer at the other end of its
            serial line (`Session`); bare-metal projects only.
        debug_checks: the program watches the bytes around workspaces and states, and tells of a
            fault what it was and where; bare-metal projects for Cortex-M that run samples.

    Raises:
        ProjectError: a value is not legal.
    """

    samples: Mapping[str, Samples] = field(default_factory=lambda: MappingProxyType({}))
    together: Sequence[Sequence[str]] = ()
    console: Console | None = None
    stack: int | None = None
    definitions: Sequence[str] = ()
    optimization: str = "-O2"
    server: bool = False
    debug_checks: bool = False

    def __post_init__(self) -> None:
        # A text is a sequence, too: it would become one macro for each of its letters.
        if isinstance(self.definitions, str):
            raise ProjectError(
                f"the value is the text '{self.definitions}'",
                where="options.definitions",
                legal="a list of NAME or NAME=value",
                fix=f"write ['{self.definitions}']",
            )
        for definition in self.definitions:
            if not _DEFINITION.fullmatch(str(definition)):
                raise ProjectError(
                    f"{definition!r} is not a definition",
                    where="options.definitions",
                    legal="NAME or NAME=value, without spaces and quotes",
                )
        if self.stack is not None and self.stack < MINIMAL_STACK:
            raise ProjectError(
                f"got {self.stack}", where="options.stack", legal=f"at least {MINIMAL_STACK} bytes"
            )
        if not re.fullmatch(r"-O([0-3sgz]|fast)", self.optimization):
            raise ProjectError(
                f"'{self.optimization}' is not an optimisation option of the compiler",
                where="options.optimization",
                legal="-O0, -O1, -O2, -O3, -Os, -Oz, -Og, -Ofast",
            )
        if self.server and self.samples:
            raise ProjectError("a server program cannot contain samples", where="options.samples")
