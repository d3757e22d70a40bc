"""Parses the expressions of the text form: precedence climbing over one line of tokens."""

from __future__ import annotations

import json
from collections import ChainMap
from enum import Enum
from typing import TypeAlias, TypeVar

from microtir.dtype import DType
from microtir.errors import TirError
from microtir.tir import ir
from microtir.tir.arithmetic import round_float
from microtir.tir.intrinsics import SIGNATURES
from microtir.tir.lexer import SourceLine, Token, TokenKind
from microtir.tir.printer import FUNCTION_OPS, KEYWORDS, LEVELS

Symbols: TypeAlias = "ChainMap[str, ir.Var | ir.Buffer | ir.PrimFunc]"
MemberT = TypeVar("MemberT", bound=Enum)

_INFIX = {op.value: op for op in LEVELS}
_FUNCTIONS = {op.value: op for op in FUNCTION_OPS}
_INTRINSICS = {i.value: i for i in ir.Intrinsic}
_DTYPES = {d.value: d for d in DType}
_NUMBERS = {"inf": float("inf"), "nan": float("nan")}


class Cursor:
    """Reads the tokens of one line; every error names the line."""

    def __init__(self, line: SourceLine, symbols: Symbols) -> None:
        self.line = line
        self.symbols = symbols
        self.position = 0

    # --- tokens ---

    def peek(self) -> Token:
        if self.position < len(self.line.tokens):
            return self.line.tokens[self.position]
        return Token(TokenKind.END, "", self.line.number)

    def next(self) -> Token:
        token = self.peek()
        self.position += 1
        return token

    def at(self, text: str) -> bool:
        token = self.peek()
        return token.text == text and token.kind in (TokenKind.SYMBOL, TokenKind.NAME)

    def is_followed_by(self, text: str) -> bool:
        """Return whether the token after the next one has this text."""
        after = self.line.tokens[self.position + 1 : self.position + 2]
        return bool(after) and after[0].text == text

    def accept(self, text: str) -> bool:
        if self.at(text):
            self.position += 1
            return True
        return False

    def expect(self, text: str) -> None:
        if not self.accept(text):
            raise self.error(f"expected '{text}', found {self.peek()}")

    def end(self) -> None:
        if self.peek().kind is not TokenKind.END:
            raise self.error(f"unexpected {self.peek()}")

    def error(self, what: str) -> TirError:
        return TirError(what, where=f"line {self.peek().line}, `{self.line.text}`")

    def name(self) -> str:
        token = self.next()
        plain = token.kind is TokenKind.NAME and token.text not in KEYWORDS
        if not plain and token.kind is not TokenKind.QUOTED:
            raise self.error(f"expected a name, found {token}")
        return token.text

    def string(self) -> str:
        token = self.next()
        if token.kind is not TokenKind.STRING:
            raise self.error(f"expected a string, found {token}")
        return token.text

    def text(self) -> str:
        """Return what a string stands for."""
        value = self.json(self.string())
        assert isinstance(value, str), "every string of the text is a string in JSON"
        return value

    def json(self, text: str) -> object:
        try:
            return json.loads(text)
        except json.JSONDecodeError:
            raise self.error(f"{text} is not JSON") from None

    def member(self, kind: type[MemberT], text: str | None = None) -> MemberT:
        """Return the member of an Enum whose value is the next word, or `text`."""
        value = self.next().text if text is None else text
        for member in kind:
            if member.value == value:
                return member
        legal = ", ".join(str(member.value) for member in kind)
        raise self.error(f"expected one of {legal}, found '{value}'")

    def integer(self) -> int:
        sign = -1 if self.accept("-") else 1
        token = self.next()
        if not token.text.isdecimal():
            raise self.error(f"expected an integer, found {token}")
        return sign * int(token.text)

    def dtype(self) -> DType:
        token = self.next()
        if token.text not in _DTYPES:
            raise self.error(f"expected a type, found {token}")
        return _DTYPES[token.text]

    # --- names ---

    def variable(self) -> ir.Var:
        symbol = self._symbol()
        if not isinstance(symbol, ir.Var):
            raise self.error(f"'{symbol.name}' is not a variable")
        return symbol

    def buffer(self) -> ir.Buffer:
        symbol = self._symbol()
        if not isinstance(symbol, ir.Buffer):
            raise self.error(f"'{symbol.name}' is not a buffer")
        return symbol

    def kernel(self) -> ir.PrimFunc:
        symbol = self._symbol()
        if not isinstance(symbol, ir.PrimFunc):
            raise self.error(f"'{symbol.name}' is not a kernel")
        return symbol

    def _symbol(self) -> ir.Var | ir.Buffer | ir.PrimFunc:
        name = self.name()
        if name not in self.symbols:
            raise self.error(f"'{name}' is not defined")
        return self.symbols[name]

    # --- expressions ---

    def exprs(self, close: str) -> tuple[ir.Expr, ...]:
        """Return expressions separated by commas up to the closing bracket, which is consumed."""
        items: list[ir.Expr] = []
        while not self.accept(close):
            if items:
                self.expect(",")
            items.append(self.expr())
        return tuple(items)

    def expr(self, level: int = 0) -> ir.Expr:
        left = self.unary()
        while True:
            op = _INFIX.get(self.peek().text)
            if op is None or self.peek().kind not in (TokenKind.SYMBOL, TokenKind.NAME):
                return left
            if LEVELS[op] < level:
                return left
            self.next()
            left = ir.Binary(op, left, self.expr(LEVELS[op] + 1))

    def unary(self) -> ir.Expr:
        if self.accept("not"):
            return ir.Unary(ir.UnaryOp.NOT, self.unary())
        if self.accept("-"):
            token = self.peek()
            if token.kind is TokenKind.NUMBER or token.text in _NUMBERS:
                return self.number(-1)
            return ir.Unary(ir.UnaryOp.NEG, self.unary())
        return self.primary()

    def number(self, sign: int) -> ir.Expr:
        token = self.next()
        if token.text in _NUMBERS:
            return ir.FloatImm(sign * _NUMBERS[token.text])
        if token.text.isdecimal():
            return ir.IntImm(sign * int(token.text))
        return ir.FloatImm(round_float(sign * float(token.text), DType.FLOAT32))

    def primary(self) -> ir.Expr:
        token = self.peek()
        if token.kind is TokenKind.NUMBER:
            return self.number(1)
        if self.accept("("):
            inner = self.expr()
            self.expect(")")
            return inner
        if token.kind is TokenKind.NAME:
            if token.text in _NUMBERS:
                return self.number(1)
            if token.text in ("true", "false"):
                self.next()
                return ir.IntImm(int(token.text == "true"), DType.BOOL)
            known = self.application()
            if known is not None:
                return known
        symbol = self._symbol()
        if isinstance(symbol, ir.Var):
            return symbol
        if isinstance(symbol, ir.Buffer):
            self.expect("[")
            return ir.Load(symbol, self.exprs("]"))
        raise self.error(f"'{symbol.name}' is a kernel, not a value")

    def application(self) -> ir.Expr | None:
        """Return a literal with a type, cast, select, function operator or intrinsic; else None."""
        name = self.peek().text
        if not self.is_followed_by("("):
            return None
        if name in _DTYPES:
            return self.typed_literal()
        if name not in ("cast", "select") and name not in _FUNCTIONS and name not in _INTRINSICS:
            return None
        self.position += 2
        if name == "cast":
            dtype = self.dtype()
            self.expect(",")
            (value,) = self.arguments(name, 1)
            return ir.Cast(dtype, value)
        if name == "select":
            return ir.Select(*self.arguments(name, 3))
        if name in _FUNCTIONS:
            return ir.Binary(_FUNCTIONS[name], *self.arguments(name, 2))
        signature = SIGNATURES[_INTRINSICS[name]]
        args = self.arguments(name, len(signature.parameters))
        return ir.Call(_INTRINSICS[name], args, signature.result)

    def arguments(self, name: str, count: int) -> tuple[ir.Expr, ...]:
        args = self.exprs(")")
        if len(args) != count:
            raise self.error(f"'{name}' takes {count} expressions, not {len(args)}")
        return args

    def typed_literal(self) -> ir.Expr:
        dtype = self.dtype()
        self.expect("(")
        sign = -1 if self.accept("-") else 1
        token = self.next()
        self.expect(")")
        try:
            if dtype.is_float:
                return ir.FloatImm(sign * float(token.text), dtype)
            return ir.IntImm(sign * int(token.text), dtype)
        except ValueError:
            raise self.error(f"{token} is not a number") from None
