"""Compares arguments of public functions with their annotations before anything is done."""

from __future__ import annotations

import collections.abc
import inspect
import types
import typing
from collections.abc import Callable, Mapping
from functools import wraps
from numbers import Integral, Real
from typing import Any, ParamSpec, TypeVar

from microtir.errors import Fix, UsageError

P = ParamSpec("P")
R = TypeVar("R")

# Numbers of numpy are numbers, too; a text is a sequence, but never one that is meant.
_NUMBERS: Mapping[object, type] = types.MappingProxyType({int: Integral, float: Real})
_CONTAINERS = (collections.abc.Sequence, collections.abc.Iterable, tuple, list)
_TEXTS = (str, bytes)
_SHOWN = 60


class ArgumentRule:
    """The values that an annotation allows: instances of classes, or any if it cannot be told.

    Of what a container holds only the container is looked at: what is in it is met, and refused,
    by whoever takes it out.
    """

    def __init__(self, annotation: object) -> None:
        self.anything = False
        self.kinds: tuple[type, ...] = ()
        self._add(annotation)

    def _add(self, annotation: object) -> None:
        origin = typing.get_origin(annotation)
        if origin in (typing.Union, types.UnionType):
            for part in typing.get_args(annotation):
                self._add(part)
        elif origin is not None:
            self._add(origin)
        elif annotation is None or annotation is type(None):
            self.kinds += (type(None),)
        elif annotation in _CONTAINERS:
            self.kinds += (typing.cast("type", annotation),)
        elif isinstance(annotation, type) and not _is_open(annotation):
            self.kinds += (_NUMBERS.get(annotation, annotation),)
        else:
            self.anything = True

    def allows(self, value: object) -> bool:
        """Return whether a value is legal, as far as classes tell it."""
        if self.anything:
            return True
        is_text = isinstance(value, _TEXTS)
        kinds = tuple(k for k in self.kinds if k not in _CONTAINERS) if is_text else self.kinds
        return isinstance(value, kinds)

    def legal(self) -> str:
        """Name the classes for a message."""
        return ", ".join(_name(kind) for kind in self.kinds)


def _is_open(annotation: type) -> bool:
    """Return whether a class says nothing of its instances, as a protocol does."""
    is_protocol = getattr(annotation, "_is_protocol", False)
    return annotation in (Any, object) or (
        is_protocol and not getattr(annotation, "_is_runtime_protocol", False)
    )


def _name(kind: type) -> str:
    plain = {value: key for key, value in _NUMBERS.items()}.get(kind, kind)
    return "None" if plain is type(None) else getattr(plain, "__name__", str(plain))


def checked_arguments(function: Callable[P, R]) -> Callable[P, R]:
    """Wrap a function so that it refuses arguments of other classes than annotated.

    Raises:
        UsageError: names the function, the argument, and what is legal.
    """
    named = function.__qualname__.removesuffix(".__init__")
    names = tuple(
        p.name
        for p in inspect.signature(function).parameters.values()
        if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)
    )
    rules: dict[str, ArgumentRule] = {}

    @wraps(function)
    def call(*args: P.args, **kwargs: P.kwargs) -> R:
        if not rules:  # annotations are texts that may name what is imported later
            annotated = function.__annotations__
            rules.update({name: ArgumentRule(resolved(function, name)) for name in annotated})
        for name, value in (*zip(names, args, strict=False), *kwargs.items()):
            rule = rules.get(name)
            if rule is not None and not rule.allows(value):
                raise _refusal(named, name, value, rule)
        return function(*args, **kwargs)

    return call


def resolved(function: Callable[..., object], name: str) -> object:
    """Resolve an annotation; Any if it names what is imported for type checkers alone."""
    holder = types.SimpleNamespace(__annotations__={name: function.__annotations__[name]})
    try:
        return typing.get_type_hints(holder, inspect.unwrap(function).__globals__)[name]
    except (NameError, TypeError):  # of an alias that is a text, too
        return Any


def _refusal(function: str, name: str, value: object, rule: ArgumentRule) -> UsageError:
    shown = repr(value)
    shown = shown if len(shown) <= _SHOWN else f"{shown[:_SHOWN]}…"
    is_target = isinstance(value, str) and any(kind.__name__ == "Target" for kind in rule.kinds)
    return UsageError(
        f"argument '{name}' got {shown}, of type {type(value).__name__}",
        where=f"{function}({name})",
        legal=rule.legal(),
        fix=Fix(f"write Target({value!r})", f"--target {value!r}") if is_target else None,
    )
