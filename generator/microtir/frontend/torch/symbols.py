"""Compute sizes that a program states as expressions over symbols, with a grammar of their own.

An archive writes them as text: "Symbol('s77', positive=True, integer=True)", "Add(Mul(Integer(2),
Symbol('s0', integer=True)), Integer(1))".  Nothing of this text is evaluated as code.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import reduce
from types import MappingProxyType

from microtir.errors import MicrotirError, ModelFileError, UnsupportedModelError
from microtir.support.shown import shown

_MOST_TEXT = 1 << 12
_MOST_DEPTH = 32
_MOST_VALUE = 1 << 62  # of what is computed on the way

_TOKEN = re.compile(r"\s*(?:([A-Za-z_]\w*)|(-?\d{1,19})|('[^'\\]*')|([(),=]))")

_AGAIN = "export the model again"


@dataclass(frozen=True, slots=True)
class Symbol:
    """A size that the program leaves open."""

    name: str


@dataclass(frozen=True, slots=True)
class Call:
    """A function of sizes."""

    function: str
    arguments: tuple[Expression, ...]


Expression = int | Symbol | Call
"""A size as the program states it."""


def _divided(a: int, b: int) -> int:
    return a // b if b else _MOST_VALUE


def _remainder(a: int, b: int) -> int:
    return a % b if b else _MOST_VALUE


def _power(base: int, exponent: int) -> int:
    fits = 0 <= exponent <= 64 and abs(base) ** exponent <= _MOST_VALUE
    return base**exponent if fits else _MOST_VALUE


_FUNCTIONS: Mapping[str, tuple[int, int, Callable[..., int]]] = MappingProxyType(
    {
        "Add": (1, 64, lambda *values: sum(values)),
        "Mul": (1, 64, lambda *values: math.prod(values)),
        "Max": (1, 64, max),
        "Min": (1, 64, min),
        "FloorDiv": (2, 2, _divided),
        "CleanDiv": (2, 2, _divided),
        "Mod": (2, 2, _remainder),
        "PythonMod": (2, 2, _remainder),
        "Pow": (2, 2, _power),
        "PowByNatural": (2, 2, _power),
    }
)
"""Functions by name: the fewest and most arguments, and what they compute."""


def parse(text: str, where: str) -> Expression:
    """Return the expression that a text states.

    Raises:
        ModelFileError: it is none, or too long.
        UnsupportedModelError: it calls a function that is not known.
    """
    if len(text) > _MOST_TEXT:
        raise _malformed(f"a size is a text of {len(text)} characters", where)
    return _Parser(tuple(_tokens(text, where)), where).all()


def value_of(expression: Expression, symbols: Mapping[str, int], where: str) -> int:
    """Return the number that an expression comes to.

    Raises:
        UnsupportedModelError: it has a symbol of which nobody says what it is.
        ModelFileError: it is too large, or divides by 0.
    """
    if isinstance(expression, int):
        return expression
    if isinstance(expression, Symbol):
        known = symbols.get(expression.name)
        if known is None:
            raise UnsupportedModelError(
                f"the size {expression.name} depends on data",
                where=where,
                legal="sizes that depend only on the shapes of inputs",
                fix="export the model without operators whose result has a size that depends on"
                " data, such as nonzero and item",
            )
        return known
    values = [value_of(argument, symbols, where) for argument in expression.arguments]
    result = _FUNCTIONS[expression.function][2](*values)
    if abs(result) >= _MOST_VALUE:
        raise _malformed(f"{expression.function} of {shown(str(values))} is not a size", where)
    return result


def symbols_of(expression: Expression) -> frozenset[str]:
    """Return the names of the symbols in an expression."""
    if isinstance(expression, Symbol):
        return frozenset((expression.name,))
    if isinstance(expression, int):
        return frozenset()
    return reduce(frozenset.union, map(symbols_of, expression.arguments), frozenset())


def _tokens(text: str, where: str) -> Iterator[str]:
    at = 0
    while text[at:].strip():
        match = _TOKEN.match(text, at)
        if match is None:
            raise _malformed(f"the size {shown(text)} is not an expression", where)
        yield match.group().strip()
        at = match.end()


class _Parser:
    """Reads tokens from the front; each rule leaves `_at` behind what it has read."""

    def __init__(self, tokens: tuple[str, ...], where: str) -> None:
        self._tokens = tokens
        self._where = where
        self._at = 0

    def all(self) -> Expression:
        """Return the one expression that all tokens are."""
        expression = self._expression(0)
        if self._at != len(self._tokens):
            raise self._wrong()
        return expression

    def _expression(self, depth: int) -> Expression:
        if depth > _MOST_DEPTH:
            raise _malformed(f"a size is nested more than {_MOST_DEPTH} deep", self._where)
        token = self._next()
        if re.fullmatch(r"-?\d+", token):
            return int(token)
        self._take("(")
        if token == "Integer":
            number = self._next()
            if not re.fullmatch(r"-?\d+", number):
                raise self._wrong()
            self._take(")")
            return int(number)
        if token == "Symbol":
            return self._symbol()
        if token not in _FUNCTIONS:
            raise UnsupportedModelError(
                f"a size is computed with {shown(token)}",
                where=self._where,
                legal=", ".join(_FUNCTIONS),
                fix="export the model with fixed sizes: without dynamic_shapes",
            )
        return self._call(token, depth)

    def _symbol(self) -> Symbol:
        """Return a symbol; what is assumed of it (positive=True) does not matter."""
        name = self._next()
        if not name.startswith("'"):
            raise self._wrong()
        while self._next() == ",":
            for _ in range(3):
                self._next()
        if self._tokens[self._at - 1] != ")":
            raise self._wrong()
        return Symbol(name[1:-1])

    def _call(self, function: str, depth: int) -> Call:
        arguments = [self._expression(depth + 1)]
        while self._next() == ",":
            arguments.append(self._expression(depth + 1))
        if self._tokens[self._at - 1] != ")":
            raise self._wrong()
        least, most, _ = _FUNCTIONS[function]
        if not least <= len(arguments) <= most:
            raise _malformed(f"a size has {function} of {len(arguments)} numbers", self._where)
        return Call(function, tuple(arguments))

    def _next(self) -> str:
        if self._at == len(self._tokens):
            raise self._wrong()
        self._at += 1
        return self._tokens[self._at - 1]

    def _take(self, token: str) -> None:
        if self._next() != token:
            raise self._wrong()

    def _wrong(self) -> MicrotirError:
        return _malformed(
            f"the size {shown(''.join(self._tokens))} is not an expression", self._where
        )


def _malformed(what: str, where: str) -> ModelFileError:
    return ModelFileError(what, where=where, fix=_AGAIN)
