"""Says what the functions of a MicroPython module take: buffers, and which must lie apart."""

from __future__ import annotations

import keyword
from collections.abc import Sequence
from dataclasses import dataclass

from microtir.artifact import Artifact
from microtir.module.ir_module import PortKind
from microtir.projects.models import Models, ModelValues, PortValues
from microtir.projects.values import Values
from microtir.support.encoding import Encoded, c_code, c_string


@dataclass(frozen=True, slots=True)
class Argument:
    """A tensor that a function is given, by position."""

    number: int
    port: PortValues
    kind: str

    @property
    def access(self) -> str:
        """Return what the buffer is asked for."""
        return "MP_BUFFER_READ" if self.kind == PortKind.INPUT.value else "MP_BUFFER_WRITE"

    @property
    def python_name(self) -> str:
        """Return a variable for it, in the example of README.md."""
        return python_name(self.port.member)

    @property
    def rank(self) -> int:
        return len(self.port.shape)

    @property
    def count(self) -> int:
        """Return how many names its values are places in."""
        return len(self.port.names)

    @property
    def names(self) -> tuple[Encoded, ...]:
        """Return the names that values are places in, as literals of C."""
        return tuple(c_code(c_string(name)) for name in self.port.names)

    @property
    def place(self) -> str:
        """Return the member of C's structs that points to it."""
        return f"{self.kind}s.{self.port.member}"


@dataclass(frozen=True, slots=True)
class Pair:
    """Two tensors that must not overlap: one of them is written."""

    one: Argument
    other: Argument


@dataclass(frozen=True, slots=True)
class WrappedModel:
    """A model as a module of MicroPython."""

    model: ModelValues
    arguments: tuple[Argument, ...]
    python_name: str

    @property
    def count(self) -> int:
        return len(self.arguments)

    @property
    def separate(self) -> tuple[Pair, ...]:
        """Return each output with each tensor in front of it."""
        return tuple(
            Pair(one, other)
            for one in self.arguments
            if one.kind == PortKind.OUTPUT.value
            for other in self.arguments[: one.number]
        )


def module_values(models: Models, _artifacts: Sequence[Artifact]) -> Values:
    """Return what the templates of a module speak of besides the common values."""
    pairs = zip(models.models, python_names(models.names), strict=True)
    wrapped = [_wrapped(model, name) for model, name in pairs]
    has_names = any(argument.port.names for model in wrapped for argument in model.arguments)
    return {"wrapped_models": wrapped, "has_names": has_names}


def python_names(models: Sequence[str]) -> tuple[str, ...]:
    """Return what Python calls models: distinct, and none of them a word of the language."""
    taken, names = set(models), []
    for name in models:
        if keyword.iskeyword(name):
            name = python_name(name)
            name += "_" * (name in taken)
        taken.add(name)
        names.append(name)
    return tuple(names)


def python_name(name: str) -> str:
    """Return an identifier of C as one of Python."""
    return f"{name}_" if keyword.iskeyword(name) else name


def _wrapped(model: ModelValues, name: str) -> WrappedModel:
    kinds = [(group.kind, port) for group in model.groups for port in group.ports]
    arguments = tuple(Argument(number, port, kind) for number, (kind, port) in enumerate(kinds))
    return WrappedModel(model, arguments, name)
