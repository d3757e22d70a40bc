"""Splits the text form of TIR into lines of tokens with their indentation."""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import Enum

from microtir.errors import TirError


class TokenKind(Enum):
    NAME = "name"
    QUOTED = "quoted name"  # `name`: never a keyword
    NUMBER = "number"
    STRING = "string"
    SYMBOL = "symbol"
    END = "end of line"


@dataclass(frozen=True, slots=True)
class Token:
    kind: TokenKind
    text: str
    line: int

    def __str__(self) -> str:
        return f"'{self.text}'" if self.text else self.kind.value


@dataclass(frozen=True, slots=True)
class SourceLine:
    """One logical line: brackets join physical lines."""

    number: int
    depth: int
    text: str
    tokens: tuple[Token, ...]

    @property
    def is_store(self) -> bool:
        """Return whether the line starts with a buffer and its index: that word is no keyword."""
        return len(self.tokens) > 1 and self.tokens[1].text == "["


_TOKEN = re.compile(
    r"(?P<space>\s+|\#.*)"
    r"|(?P<number>\d+(?:\.(?!\.)\d*)?(?:[eE][+-]?\d+)?)"
    r"|(?P<name>[A-Za-z_]\w*)"
    r"|`(?P<quoted>[^`]*)`"
    r'|(?P<string>"(?:[^"\\]|\\.)*")'
    r"|(?P<symbol><<|>>|<=|>=|==|!=|\+:|\.\.\.|\.\.|[-+*/&|^<>=()\[\]:,])"
)
_KINDS = {
    "number": TokenKind.NUMBER,
    "name": TokenKind.NAME,
    "quoted": TokenKind.QUOTED,
    "string": TokenKind.STRING,
    "symbol": TokenKind.SYMBOL,
}


def tokens_of(text: str, line: int) -> tuple[Token, ...]:
    """Return the tokens of a piece of text; TirError where a character starts none."""
    tokens: list[Token] = []
    position = 0
    while position < len(text):
        match = _TOKEN.match(text, position)
        if match is None:
            raise TirError(f"unexpected character {text[position]!r}", where=f"line {line}")
        group = match.lastgroup or ""
        if group in _KINDS:
            tokens.append(Token(_KINDS[group], match.group(group), line))
        position = match.end()
    return tuple(tokens)


def lines_of(text: str) -> tuple[SourceLine, ...]:
    """Return the logical lines that hold a token; two spaces are one level of indentation."""
    result: list[SourceLine] = []
    open_brackets = 0
    for number, raw in enumerate(text.splitlines(), start=1):
        tokens = tokens_of(raw, number)
        if not tokens:
            continue
        balance = sum(t.text in "([" for t in tokens if t.kind is TokenKind.SYMBOL) - sum(
            t.text in ")]" for t in tokens if t.kind is TokenKind.SYMBOL
        )
        if open_brackets:
            joined = result[-1]
            result[-1] = SourceLine(
                joined.number, joined.depth, f"{joined.text} {raw}", (*joined.tokens, *tokens)
            )
        else:
            indent = len(raw) - len(raw.lstrip(" "))
            if indent % 2:
                raise TirError("the indentation is an odd number of spaces", where=f"line {number}")
            result.append(SourceLine(number, indent // 2, raw.strip(), tokens))
        open_brackets += balance
    return tuple(result)
