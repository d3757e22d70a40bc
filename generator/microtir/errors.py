"""Defines the one family of errors: what is wrong, where, what was expected, what to do.

Every error that a user can cause is a `MicrotirError`.  The command line prints it as one
diagnostic and exits with its `exit_code`; a traceback is a defect of microtir itself.
"""

from __future__ import annotations

import copy
import copyreg
import difflib
import re
from collections.abc import Iterable
from enum import Enum, IntEnum
from typing import Any, ClassVar


class ExitCode(IntEnum):
    """Exit statuses of the command line, a public contract."""

    DONE = 0
    ANSWER_IS_NO = 1
    USAGE = 2
    ENVIRONMENT = 3


class Fix(str):
    """Advice on what to do next, where Python and the command line say it in different words.

    As text it is Python's: names of arguments and of methods; `command` names flags and verbs, and
    is what the command line prints.
    """

    __slots__ = ("command",)
    command: str

    def __new__(cls, python: str, command: str) -> Fix:
        fix = super().__new__(cls, python)
        fix.command = command
        return fix

    @classmethod
    def of(cls, *parts: str) -> Fix:
        """Return the parts as one text; each of them may have two forms itself."""
        command = "".join(part.command if isinstance(part, Fix) else part for part in parts)
        return cls("".join(parts), command)

    def __reduce__(self) -> tuple[Any, ...]:  # a diagnostic may come from another process
        return Fix, (str(self), self.command)


class MicrotirError(Exception):
    """The base of all diagnostics.

    Args:
        what: one sentence that says what is wrong.
        where: file, node, tensor, field or option that the sentence is about.
        legal: what would have been accepted.
        fix: what to do next.

    Attributes:
        exit_code: of a command that ends with it.
        more: which command says more, where one does.
    """

    exit_code: ClassVar[ExitCode] = ExitCode.ENVIRONMENT
    more: ClassVar[str] = ""

    def __init__(
        self,
        what: str,
        *,
        where: str | None = None,
        legal: str | None = None,
        fix: str | None = None,
    ) -> None:
        self.what = what
        self.where = where
        self.legal = legal
        self.fix = fix
        super().__init__(what, where, legal, fix)

    def __reduce__(self) -> tuple[Any, ...]:
        # Python would make it again from `args`, by position, and `tune` gets the diagnostics of
        # other processes pickled.
        return copyreg.__newobj__, (type(self), *self.args), self.__dict__  # type: ignore[attr-defined]

    def for_command_line(self) -> MicrotirError:
        """Return the same diagnostic with a fix that can be typed."""
        error = copy.copy(self)
        error.fix = self.fix.command if isinstance(self.fix, Fix) else self.fix
        return error

    def __str__(self) -> str:
        lines = [f"{self.where}: {self.what}" if self.where else self.what]
        if self.legal:
            lines.append(f"  expected: {self.legal}")
        if self.fix:
            lines.append(f"  fix:      {self.fix}")
        return "\n".join(lines)


class ConfigError(MicrotirError):
    """An option of the configuration is wrong; `where` names the field."""

    exit_code = ExitCode.USAGE


class ConfigFileError(ConfigError):
    """A file of options is missing or unreadable."""

    exit_code = ExitCode.ENVIRONMENT


class UsageError(MicrotirError):
    """An argument of a function or of the command line is wrong."""

    exit_code = ExitCode.USAGE


class TemplateFileError(MicrotirError):
    """A template of a project or a package is broken, or reaches outside its folder."""


class ModelFileError(MicrotirError):
    """A model file is missing, unreadable, truncated or malformed."""

    exit_code = ExitCode.ENVIRONMENT


class DataFileError(MicrotirError):
    """A file of inputs or expected outputs is missing, unreadable, or lacks a tensor."""


class ExportProblem(Enum):
    """A problem of a model that comes from how it was exported: exporters have options about it."""

    OLD_OPERATOR_SET = "old operator set"
    OPEN_EXTENT = "open extent"
    COMPUTED_SHAPE = "computed shape"  # or other values that are asked for while compiling
    TRAINING_MODE = "training mode"
    OTHER_FLOATS = "other floats"  # that are narrower than float16
    OWN_DOMAIN = "own domain"  # an operator that is not ONNX's
    FUSED_OPERATOR = "fused operator"  # by onnxruntime
    DYNAMIC_QUANTISATION = "dynamic quantisation"
    FEW_BITS = "few bits"
    STRINGS = "strings"
    MAPS = "maps"
    TREES_OF_DOUBLES = "trees of doubles"


class UnsupportedModelError(MicrotirError):
    """The model is well formed but asks for something microtir does not do.

    `problems` holds every diagnostic found, so that one run reports them all. `export` says what
    about the export it comes from, and `export_value` what an option about that is given.
    """

    exit_code = ExitCode.ANSWER_IS_NO

    def __init__(
        self,
        what: str,
        *,
        where: str | None = None,
        legal: str | None = None,
        fix: str | None = None,
        problems: Iterable[MicrotirError] = (),
        export: ExportProblem | None = None,
        export_value: str = "",
    ) -> None:
        super().__init__(what, where=where, legal=legal, fix=fix)
        self.problems: tuple[MicrotirError, ...] = tuple(problems)
        self.export = export
        self.export_value = export_value

    def for_command_line(self) -> MicrotirError:
        error = super().for_command_line()
        assert isinstance(error, UnsupportedModelError)
        error.problems = tuple(problem.for_command_line() for problem in self.problems)
        return error

    def __str__(self) -> str:
        return "\n".join([super().__str__(), *(f"- {p}" for p in self.problems)])


class GraphError(MicrotirError):
    """The graph IR breaks a rule of its verifier; a defect of a frontend or of a pass."""


class TirError(MicrotirError):
    """A TIR function breaks a rule of its verifier, or a bound could not be proven."""


class InterpreterError(TirError):
    """The TIR interpreter met an undefined operation: overflow, out of bounds, uninitialised."""


class ScheduleError(MicrotirError):
    """A schedule primitive was asked for an illegal rewrite; the message gives the reason."""

    exit_code = ExitCode.USAGE


class MemoryPlanError(MicrotirError):
    """A placement is invalid, or does not fit; a defect of the planner or a limit of the board."""

    exit_code = ExitCode.ANSWER_IS_NO


class LossError(MicrotirError):
    """No quantised form of a model keeps to limits on its loss and its size."""

    exit_code = ExitCode.ANSWER_IS_NO


class Resource(Enum):
    """A resource that a program takes some of, and that may be limited."""

    WORKSPACE = "workspace"
    POOL = "pool"  # a workspace pool
    FLASH = "flash"
    STACK = "stack"


class LimitError(MemoryPlanError):
    """A program takes more than a limit allows.

    Args:
        what: one sentence that says what is wrong.
        where: the option that limits.
        legal: what would have been accepted.
        fix: what to do next.
        resource: what is limited.
        taken: bytes of it that the program takes.
        allowed: bytes that it may take.
        least: bytes that would be taken by any placement of what there is.
        pool: the number of the pool, if it is one of several.
        tried: what other options came to, a line for each.
    """

    def __init__(
        self,
        what: str,
        *,
        where: str | None = None,
        legal: str | None = None,
        fix: str | None = None,
        resource: Resource = Resource.WORKSPACE,
        taken: int = 0,
        allowed: int = 0,
        least: int = 0,
        pool: int = 0,
        tried: Iterable[str] = (),
    ) -> None:
        super().__init__(what, where=where, legal=legal, fix=fix)
        self.resource = resource
        self.taken = taken
        self.allowed = allowed
        self.least = least
        self.pool = pool
        self.tried: tuple[str, ...] = tuple(tried)

    def with_tried(self, tried: Iterable[str]) -> LimitError:
        """Return the same refusal, and what other options came to."""
        error = copy.copy(self)
        error.tried = tuple(tried)
        return error

    def __str__(self) -> str:
        heads = ("  tried:    ", *[" " * 12] * len(self.tried))
        lines = [head + line for head, line in zip(heads, self.tried, strict=False)]
        return "\n".join([super().__str__(), *lines])


class ToolError(MicrotirError):
    """An external tool (compiler, emulator) is missing or failed."""


class RunError(MicrotirError):
    """Compiled code returned an error status, or its inputs did not fit its interface."""

    exit_code = ExitCode.USAGE


class OutputError(MicrotirError):
    """The output folder or file cannot be written."""


def instead_of_replacing(noun: str) -> Fix:
    """Return what to do where an output would replace what its user may want to keep.

    Args:
        noun: what the user chooses another one of, such as "folder".
    """
    choose, lost = f"choose another {noun}, or", "this deletes the existing files"
    return Fix(f"{choose} pass force=True: {lost}", f"{choose} add --force: {lost}")


_MOST_BEGUN = 6  # names that a hint has
_WORD = 3  # letters; fewer are part of a number
_LEAST_SIMILARITY = 0.6  # of two names, the share of letters that are the same in the same order


def nearest(name: str, choices: Iterable[str]) -> str:
    """Return a hint ``did you mean 'x'?`` for a misspelt name, or an empty string.

    A name that shares some letters with another one is not misspelt: it is alike, or begins it.
    """
    names = sorted(choices)
    match = difflib.get_close_matches(name, names, n=1, cutoff=_LEAST_SIMILARITY)
    begun = [choice for choice in names if len(name) > 2 and choice.startswith(name)]
    return f"did you mean '{(match or begun)[0]}'?" if match or begun else ""


def nearest_part(name: str, choices: Iterable[str]) -> str:
    """Return a hint as `nearest` does, for names of CPUs and boards, which have families.

    An ESP32-H4 is no ESP32-P4, and a Cortex-M34 no Cortex-M33: what has other digits, or other
    letters between them, is another part and not proposed. What a name begins is, all of it if
    that is little, and what a name has a letter more than: many write Cortex-M4F.
    """
    names = sorted(choices)
    begun = [choice for choice in names if len(name) > 2 and choice.startswith(name)]
    if 1 < len(begun) <= _MOST_BEGUN:
        return f"did you mean one of {', '.join(map(repr, begun))}?"
    if not begun:
        begun = [name[:-1]] if name[-1:].isalpha() and name[:-1] in names else []
    if len(begun) == 1:
        return f"did you mean '{begun[0]}'?"
    return nearest(name, [choice for choice in names if _marks(choice) == _marks(name)])


def _marks(name: str) -> tuple[list[str], list[str]]:
    """Return what tells a part from others: its digits in any order, and letters between them."""
    plain = "".join(filter(str.isalnum, name.lower()))
    letters = re.findall(r"[^\W\d]+", plain)
    return sorted(filter(str.isdigit, plain)), [run for run in letters if len(run) < _WORD]
