"""Reads JSON of others: bounded, and of the types that the program believes it has.

What a file must look like is written down once, as a dataclass that the program uses anyway.
`Annotated[str, rule]` in it says what a text may be (`config.texts`),
`Annotated[int, NumberRange(...)]` how large a number.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import MISSING, dataclass, fields, is_dataclass
from enum import Enum
from functools import lru_cache
from types import NoneType, UnionType
from typing import Annotated, Any, Union, get_args, get_origin, get_type_hints

from microtir.errors import MicrotirError
from microtir.support.shown import shown
from microtir.support.texts import Rule

MAX_DIGITS = 20  # of a whole number: more than 64 bits have


class WrongDataError(MicrotirError):
    """A value of a file is not what it must be; `where` is its place in the file."""


@dataclass(frozen=True, slots=True)
class NumberRange:
    """The range of a number."""

    low: int = 0
    high: int = 2**63 - 1


NATURAL = NumberRange()


def parse_json(text: str | bytes) -> Any:
    """Parse a JSON text within limits.

    Raises:
        WrongDataError: it is no JSON, nested too deep, or holds a number that is none.
    """
    try:
        return json.loads(text, parse_int=_integer, parse_float=_real, parse_constant=_no_constant)
    except MicrotirError:
        raise
    except RecursionError:
        raise WrongDataError("it is not JSON: it is nested too deep") from None
    except ValueError as error:
        raise WrongDataError(f"it is not JSON: {error}") from None


def _integer(text: str) -> int:
    if len(text) > MAX_DIGITS:
        raise WrongDataError(f"a number has {len(text)} digits", legal=f"at most {MAX_DIGITS}")
    return int(text)


def _real(text: str) -> float:
    number = float(text)
    if not math.isfinite(number):
        raise WrongDataError(f"a number is too large: {shown(text)}")
    return number


def _no_constant(text: str) -> float:
    raise WrongDataError(f"it is not JSON: {text} is not a number")


def check(value: object, kind: Any, place: str = "") -> Any:
    """Check a value against a type, and make it one of that type.

    Args:
        value: of a JSON text.
        kind: a dataclass, whose fields with a default may be left out; a list, tuple, dict or
            Mapping of them, an enum by its values, str, int, float, bool, None, a union; object
            for what somebody else checks.
        place: where the value is, for messages.

    Returns:
        The value; objects as dataclasses and lists as tuples where these are the type.

    Raises:
        WrongDataError: names the first part of the value that is something else.
    """
    if kind is object:
        return value
    if is_dataclass(kind):
        assert isinstance(kind, type), "a kind is not an instance"
        return kind(**_checked_fields(value, kind, place))
    if isinstance(kind, type) and issubclass(kind, Enum):
        return _member(value, kind, place)
    origin, arguments = get_origin(kind), get_args(kind)
    if origin is Annotated:
        _check_rules(check(value, arguments[0], place), arguments[1:], place)
        return value
    if origin in (Union, UnionType):
        return _one_of(value, arguments, place)
    if origin in (list, tuple):
        items = enumerate(_typed(value, list, place))
        return origin(check(item, arguments[0], f"{place}[{number}]") for number, item in items)
    if origin in (dict, Mapping):
        return {
            check(key, arguments[0], f"{place}: the key {shown(key)}"): check(
                item, arguments[1], _inside(place, key)
            )
            for key, item in _typed(value, dict, place).items()
        }
    return _typed(value, kind, place)


def _checked_fields(value: object, kind: Any, place: str) -> dict[str, Any]:
    """Return the checked values of the fields of a dataclass, but for those that are left out."""
    types = _hints(kind)
    table: Mapping[str, object] = _typed(value, dict, place)
    for field in fields(kind):
        if field.name not in table and field.default is MISSING:
            raise WrongDataError(f"'{_inside(place, field.name)}' is missing")
    for name in table:
        if name not in types:
            raise WrongDataError(f"{shown(name)} in '{place or 'the whole'}' is unknown")
    return {
        name: check(table[name], type_, _inside(place, name))
        for name, type_ in types.items()
        if name in table
    }


def _member(value: object, kind: type[Enum], place: str) -> Enum:
    members = {member.value: member for member in kind}
    if not isinstance(value, str) or value not in members:
        what = f"'{place}' is {shown(value)}"
        raise WrongDataError(what, legal=", ".join(map(str, members)))
    return members[value]


def _one_of(value: object, kinds: tuple[Any, ...], place: str) -> Any:
    """Check a value of one of several types; what is wrong is said for the first but null."""
    results = [_attempt(value, kind, place) for kind in kinds]
    fitting = [result for result in results if not isinstance(result, WrongDataError)]
    if fitting:
        return fitting[0]
    errors = [r for r, kind in zip(results, kinds, strict=True) if kind is not NoneType]
    raise WrongDataError(errors[0].what, legal=errors[0].legal)


def _attempt(value: object, kind: Any, place: str) -> Any:
    try:
        return check(value, kind, place)
    except WrongDataError as error:
        return error


def _check_rules(value: object, rules: tuple[object, ...], place: str) -> None:
    for rule in rules:
        if isinstance(rule, Rule) and isinstance(value, str):
            problem, legal = rule.problem(value), rule.meaning
        else:
            assert isinstance(rule, NumberRange) and isinstance(value, int), (
                "no other type has rules"
            )
            problem = "" if rule.low <= value <= rule.high else "is out of range"
            legal = f"{rule.low} to {rule.high}"
        if problem:
            raise WrongDataError(f"'{place}' is {shown(value)}, which {problem}", legal=legal)


def _typed(value: object, kind: Any, place: str) -> Any:
    """Return the value if it is of this very type: True is no number, and 3.0 no integer."""
    is_number = kind is float and type(value) in (int, float)
    if type(value) is not kind and not is_number:
        name = "null" if kind is NoneType else kind.__name__
        raise WrongDataError(f"'{place or 'the whole'}' is {shown(value)}", legal=name)
    return value


@lru_cache(maxsize=64)
def _hints(kind: type) -> Mapping[str, Any]:
    return get_type_hints(kind, include_extras=True)


def _inside(place: str, name: object) -> str:
    return f"{place}.{name}" if place else str(name)
