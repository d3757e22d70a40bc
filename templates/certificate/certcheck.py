#!/usr/bin/env python3
"""Checks a certificate of microtir against the generated C: standard Python and nothing else.

    python certcheck.py CERTIFICATE [FOLDER] [--run CC]

It reads the C with a parser of its own and executes the run function over intervals.  It proves
that every access lies in its array, that what is read was written and is still there, that loops end and
that integers stay in their types.  Status 0: proven; 1: something is not; 2: bad input.
"""

from __future__ import annotations

import ast
import hashlib
import json
import operator
import re
import struct
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

INTS = {"int8_t": (8, 1), "uint8_t": (8, 0), "char": (8, 1), "int16_t": (16, 1), "int": (32, 1),
        "uint16_t": (16, 0), "int32_t": (32, 1), "uint32_t": (32, 0), "int64_t": (64, 1),
        "uint64_t": (64, 0), "size_t": (64, 0), "uintptr_t": (64, 0), "bool": (8, 0)}  # fmt: skip
SIZES = {**{name: bits // 8 for name, (bits, _) in INTS.items()}, "float": 4, "double": 8}
RANGES = {n: (-(s << b - 1), (1 << b - s) - 1) for n, (b, s) in INTS.items()}
DTYPES = {"float32": "float", "float64": "double", "bool": "uint8_t"}
LIMITS = {"NULL": ("int", 0, 0), "INFINITY": ("float", float("inf"), float("inf"))}
for _name, _ends in RANGES.items():
    LIMITS[f"{_name[:-2].upper()}_MIN"], LIMITS[f"{_name[:-2].upper()}_MAX"] = (
        (_name, _ends[0], _ends[0]), (_name, _ends[1], _ends[1]))  # fmt: skip
SKIPPED = {"const", "restrict", "static", "inline", "extern", "volatile", "__restrict"}
LARGEST, DEEPEST, MOST_TURNS = 1 << 27, 100, 5_000_000  # bytes, nested expressions, turns of loops
NEVER_IN_C = re.compile(
    r": #(if|ifdef) *(defined\(__cplusplus\)( && __cplusplus >= \d+L)?|__cplusplus)$"
)
COMMENT = re.compile(r'"(?:\\.|[^"\\\n])*"|/\*.*?\*/|//[^\n]*', re.S)
TOKEN = re.compile(
    r"[A-Za-z_]\w*|0[xX][\w.]+(?:(?<=[pP])[+-]\d+)?\w*|(?:\d[\d.]*|\.\d+)(?:[eE][+-]?\d+)?\w*"
    r"|\"(?:\\.|[^\"\\])*\"|'(?:\\.|[^'\\])*'"
    r"|\.\.\.|<<=|>>=|->|\+\+|--|<<|>>|[-+*/%&|^<>=!]=|&&|\|\||##|\S"
)
LEVELS = {op: n for n, ops in enumerate(("", "||", "&&", "|", "^", "&", "== !=", "< > <= >=",
          "<< >>", "+ -", "* / %")) for op in ops.split()}  # fmt: skip
ASSIGNS = {"=", "+=", "-=", "*=", "/=", "%=", "<<=", ">>=", "&=", "|=", "^="}


class Refusal(Exception):
    """Something is not proven: the part of the checker that noticed, the place and a sentence."""

    def __init__(self, part: str, where: str, text: str) -> None:
        super().__init__(f"{where}: {text}")
        self.part = part


class BadInput(Exception):
    """The certificate or a file is not what it has to be."""


class NeedsTurns(Exception):
    """A loop has to be executed turn by turn, since its variable decides what happens."""


class Token(NamedTuple):
    text: str
    where: str  # FILE:LINE


class Function(NamedTuple):
    result: Any
    params: list[tuple[Any, str]]
    body: Any
    where: str


class Preprocessor:
    """Gives the tokens that a compiler without extensions sees: the portable twins of assembly."""

    def __init__(self, folder: Path, macros: dict[str, Any]) -> None:
        self.folder, self.macros, self.included = folder, macros, set[str]()
        self.tokens: list[Token] = []
        self.skipped: list[str] = []
        self.names: set[str] = set()
        self.assembly: set[str] = set()  # functions that other compilers see as assembly

    def read(self, name: str) -> None:
        if name in self.included:
            return
        self.included.add(name)
        text = read_file(self.folder, name).decode("utf-8", "replace")
        text = COMMENT.sub(
            lambda m: m[0] if m[0][0] == '"' else " " + "\n" * m[0].count("\n"),
            text.replace("\\\n", "\f"),
        )
        active, at = [(True, True)], 1  # whether lines count, whether a branch was taken
        skips = ""  # the directive of the part that is skipped
        for line in text.split("\n"):
            where = f"{name}:{at}"
            directive = line.replace("\f", " ").strip()
            if re.match("# *(if|el|end)", directive):
                self.directive(directive[1:].strip(), active, where)
                skips = f"{where}: {directive}"
            elif not active[-1][0]:
                is_of_other_language = NEVER_IN_C.search(skips)
                is_code = directive and not directive.startswith("#error")
                self.assembly.update(re.findall(r"^\w+_ASSEMBLY void (\w+)\(", line))
                if is_code and skips and not is_of_other_language and skips not in self.skipped:
                    self.skipped.append(skips)
            elif directive.startswith("#"):
                self.directive(directive[1:].strip(), active, where)
            else:
                self.tokens += [
                    Token(m[0], f"{where}:{m.start() + 1}") for m in TOKEN.finditer(line)
                ]
                self.names.update(re.findall(r"[A-Za-z_]\w*", line))
            at += 1 + line.count("\f")
        if len(active) > 1:
            raise Refusal("access", name, "an #if has no #endif")

    def directive(self, line: str, active: list[tuple[bool, bool]], where: str) -> None:
        word, _, rest = line.partition(" ")
        on = active[-1][0]
        if word in ("if", "ifdef", "ifndef"):
            test = rest if word == "if" else f"{'!' * (word == 'ifndef')}defined({rest})"
            value = on and self.truth(test, where)
            active.append((value, value or not on))
        elif word in ("elif", "else") and len(active) > 1:
            value = not active[-1][1] and (word == "else" or self.truth(rest, where))
            active[-1] = (value, active[-1][1] or value)
        elif word == "endif" and len(active) > 1:
            active.pop()
        elif on and word == "define":
            match = re.match(r"(\w+)(\(([^)]*)\))?\s*(.*)", rest)
            if match and match[1] in self.names:
                raise Refusal("access", where, f"'{match[1]}' is defined after it was used")
            if match:
                names = match[3].replace(" ", "").split(",") if match[2] else None
                self.macros.setdefault(match[1], (names, TOKEN.findall(match[4])))
        elif on and word == "include":
            if rest.startswith('"'):
                self.read(rest.strip('"'))
        elif on and word != "pragma":
            raise Refusal("digest", where, f"#{word} {rest}")

    def truth(self, text: str, where: str) -> bool:
        text = re.sub(r"defined\s*\(?\s*(\w+)\s*\)?", lambda m: str(int(m[1] in self.macros)), text)
        tokens = self.expand([Token(t, where) for t in TOKEN.findall(text)])
        names = [Token("0", where) if re.match(r"[A-Za-z_]", t.text) else t for t in tokens]
        return bool(Parser(names).constant())

    def expand(self, tokens: list[Token], depth: int = 0) -> list[Token]:
        """Replace macros; C's rules for `#` and `##` are not needed."""
        if not any(t.text in self.macros for t in tokens):
            return tokens
        if depth > 20:
            raise Refusal("access", tokens[0].where, "macros are nested too deeply")
        result: list[Token] = []
        rest = iter(tokens)
        for token in rest:
            names, body = self.macros.get(token.text, (None, [token.text]))
            values: dict[str, list[Token]] = {}
            if names is not None:
                level, parts = 0, [list[Token]()]
                for part in rest:
                    level += (part.text == "(") - (part.text == ")")
                    if part.text == "," and level == 1:
                        parts.append([])
                    elif level and (level, part.text) != (1, "("):
                        parts[-1].append(part)
                    elif not level:
                        break
                values = dict(zip(names, parts, strict=False))
            new = [v for t in body for v in values.get(t, [Token(t, token.where)])]
            result += self.expand(new, depth + 1) if token.text in self.macros else new
        return result


class Parser:
    """Reads the subset of C that microtir prints, as tuples (kind, where, ...)."""

    def __init__(self, tokens: list[Token]) -> None:
        self.tokens, self.at, self.depth = [*tokens, Token("", "the end")], 0, 0
        self.structs: dict[str, dict[str, Any]] = {}
        self.spans: dict[str, tuple[int, int]] = {}  # tokens of parameters and bodies of functions
        self.functions: dict[str, Function] = {}
        self.declared: dict[str, int] = {}  # the token of the first declaration of a function
        self.arrays: dict[str, tuple[str, int, list[Any] | None]] = {}

    @property
    def text(self) -> str:
        return self.tokens[self.at].text

    @property
    def where(self) -> str:
        return self.tokens[self.at].where

    def fail(self, what: str) -> Refusal:
        near = " ".join(t.text for t in self.tokens[max(0, self.at - 3) : self.at + 4])
        return Refusal("access", self.where, f"{what} near '{near[:80]}'")

    def take(self, text: str | None = None) -> str:
        token = self.text
        if not token or (text is not None and token != text):
            raise self.fail(f"'{text or 'more'}' is missing")
        self.at += 1
        return token

    def accept(self, text: str) -> bool:
        is_there = self.text == text
        self.at += is_there
        return is_there

    def balanced(self, opening: str, closing: str) -> None:
        self.take(opening)
        level = 1
        while level:
            text = self.take()
            level += (text == opening) - (text == closing)

    def several(self, closing: str, read: Any) -> list[Any]:
        """Read what stands between commas up to a bracket."""
        items = []
        while not self.accept(closing):
            items.append(read())
            if self.text != closing:
                self.take(",")
        return items

    def is_type(self) -> bool:
        return self.text in SIZES or self.text in SKIPPED or self.text in (
            "void", "struct", "union", "unsigned", "long", "__attribute__")  # fmt: skip

    def qualifiers(self) -> None:
        while self.text in SKIPPED or self.text == "__attribute__":
            if self.take() == "__attribute__":
                self.balanced("(", ")")

    def type(self) -> Any:
        self.qualifiers()
        kind: Any = self.take()
        if kind in ("struct", "union"):
            tag = self.where if self.text == "{" else self.take()
            kind = f"{kind} {tag}"
            if self.accept("{"):
                members = self.structs.setdefault(kind, {})
                while not self.accept("}"):
                    member = self.type()
                    member, name = self.declarator(member)
                    members[name] = member
                    self.take(";")
        elif kind in ("unsigned", "long"):
            word = self.take() if self.text in ("char", "int", "long") else "int"
            kind = {"char": "uint8_t", "int": "uint32_t", "long": "uint64_t"}[word]
        elif kind not in SIZES and kind != "void":
            raise self.fail("a type is missing")
        self.qualifiers()
        while self.accept("*"):
            kind = ("*", kind)
            self.qualifiers()
        return kind

    def declarator(self, kind: Any) -> tuple[Any, str]:
        name = self.take()
        if self.accept("["):
            kind = ("[]", kind, self.constant())
            self.take("]")
        return kind, name

    def program(self) -> None:
        while self.text:
            if self.text in ("typedef", "_Static_assert"):
                while self.take() != ";":
                    pass
                continue
            where, kind = self.where, self.type()
            if self.accept(";"):
                continue
            kind, name = self.declarator(kind)
            if self.text == "(":
                self.function(kind, name, where)
            elif kind[0] == "[]" and isinstance(kind[2], int) and 0 < kind[2] < LARGEST:
                values = self.values() if self.accept("=") else None
                self.take(";")
                element, size, old = self.arrays.get(name, (*kind[1:], None))
                if (element, size) != kind[1:] or (values is not None and len(values) > size):
                    raise Refusal("access", where, f"'{name}' has several sizes")
                self.arrays[name] = (element, size, old if values is None else values)
            else:
                raise self.fail("a global that is no array")

    def values(self) -> list[Any]:
        """Read an initialiser; plain numbers without trees, since there are many."""
        self.take("{")
        values: list[Any] = []
        while not self.accept("}"):
            sign = self.text == "-"
            digits, after = self.tokens[self.at + sign].text, self.tokens[self.at + sign + 1].text
            if digits[0].isdigit() and after in (",", "}"):
                value = (
                    int(digits)
                    if digits.isdigit() and len(digits) < 21
                    else literal(digits, self.where)[1]
                )
                values.append(-value if sign else value)
                self.at += 1 + sign
            else:
                values.append(self.constant())
            if self.text != "}":
                self.take(",")
        return values

    def function(self, result: Any, name: str, where: str) -> None:
        """Read a function; its body only once it is called."""
        begin = self.at
        self.take("(")
        params = self.several(")", self.parameter)
        self.declared.setdefault(name, self.at)
        if not self.accept(";"):
            if name in self.functions:
                raise Refusal("access", where, f"'{name}' is defined twice")
            self.functions[name] = Function(result, params, self.at, where)
            self.balanced("{", "}")
            self.spans[name] = begin, self.at

    def parameter(self) -> tuple[Any, str]:
        kind = self.type()
        return (kind, "") if self.text in (",", ")") else self.declarator(kind)

    def body(self, name: str) -> Function:
        function = self.functions[name]
        if isinstance(function.body, int):
            self.at = function.body
            function = self.functions[name] = function._replace(body=self.statement())
        return function

    def text_of(self, name: str) -> str:
        """Return the tokens of a function's parameters and body, with spaces between."""
        return " ".join(token.text for token in self.tokens[slice(*self.spans[name])])

    def nested(self, read: Any) -> Any:
        self.depth += 1
        if self.depth > DEEPEST:
            raise self.fail("nested too deeply")
        tree = read()
        self.depth -= 1
        return tree

    def statement(self) -> Any:
        return self.nested(self.plain_statement)

    def plain_statement(self) -> Any:
        where = self.where
        if self.accept("{"):
            body = []
            while not self.accept("}"):
                body.append(self.statement())
            return ("block", where, body)
        if self.accept("if"):
            test = self.enclosed()
            then = self.statement()
            return ("if", where, test, then, self.statement() if self.accept("else") else None)
        if self.accept("for"):
            self.take("(")
            first, test = self.statement(), self.expression()
            self.take(";")
            step = self.expression()
            self.take(")")
            return ("for", where, first, test, step, self.statement())
        if self.accept("return"):
            value = None if self.text == ";" else self.expression()
        elif self.is_type():
            kind = self.type()
            parts = [self.variable(kind)]
            while self.accept(","):
                parts.append(self.variable(kind))
            self.take(";")
            return ("decl", where, parts)
        else:
            value = None if self.text == ";" else self.expression()
            self.take(";")
            return ("expr", where, value)
        self.take(";")
        return ("return", where, value)

    def variable(self, kind: Any) -> tuple[Any, str, Any]:
        kind, name = self.declarator(kind)
        return kind, name, self.assignment() if self.accept("=") else None

    def enclosed(self) -> Any:
        self.take("(")
        tree = self.expression()
        self.take(")")
        return tree

    def constant(self) -> Any:
        """Read an expression of numbers, and give its value."""
        where, value = self.where, Machine.of_numbers().value(self.assignment(), {})
        if not isinstance(value, Value) or value.low != value.high:
            raise Refusal("access", where, "not a constant")
        return value.low

    def expression(self) -> Any:
        return self.assignment()

    def assignment(self) -> Any:
        return self.nested(self.plain_assignment)

    def plain_assignment(self) -> Any:
        left = self.binary(1)
        where = self.where
        if self.accept("?"):
            then = self.assignment()
            self.take(":")
            return ("cond", where, left, then, self.assignment())
        if self.text in ASSIGNS:
            return ("assign", where, self.take(), left, self.assignment())
        return left

    def binary(self, least: int) -> Any:
        left, count = self.unary(), 0
        while LEVELS.get(self.text, 0) >= least:
            where, op = self.where, self.take()
            left = ("bin", where, op, left, self.binary(LEVELS[op] + 1))
            count += 1
            if count > DEEPEST:
                raise self.fail("an expression is too long")
        return left

    def unary(self) -> Any:
        return self.nested(self.plain_unary)

    def plain_unary(self) -> Any:
        where, text = self.where, self.take()
        if text in ("-", "+", "!", "~", "*", "&"):
            return ("un", where, text, self.unary())
        if text == "(" and self.is_type():
            kind = self.type()
            self.take(")")
            return ("cast", where, kind, self.unary())
        if text == "(":
            tree = self.expression()
            self.take(")")
        elif text == "sizeof":
            self.take("(")
            tree = ("num", where, "size_t", SIZES.get(str(self.type()), 4))
            self.take(")")
        elif text[0].isdigit() or (text[0] == "." and len(text) > 1):
            tree = ("num", where, *literal(text, where))
        elif text[0].isalpha() or text[0] == "_":
            tree = ("name", where, text)
        else:
            self.at -= 1
            raise self.fail("an expression is missing")
        return self.postfix(tree)

    def postfix(self, tree: Any) -> Any:
        while True:
            where = self.where
            if self.accept("["):
                tree = ("index", where, tree, self.expression())
                self.take("]")
            elif self.accept("("):
                if self.declared.get(str(tree[-1]), 0) > self.at:
                    raise Refusal("order", where, f"'{tree[-1]}' is called before it is declared")
                tree = ("call", where, tree[-1], self.several(")", self.assignment))
            elif self.text in (".", "->"):
                tree = ("member", where, tree, self.take() and self.take())
            elif self.text in ("++", "--"):
                tree = ("assign", where, self.take()[0] + "=", tree, ("num", where, "int", 1))
            else:
                return tree


def rounded(x: Any) -> float:
    """Return the nearest number of 32 bits, as C makes it of a sum or of a double."""
    try:
        return float(struct.unpack("f", struct.pack("f", x))[0])
    except OverflowError:
        return INFINITY if x > 0 else -INFINITY


def literal(text: str, where: str) -> tuple[str, Any]:
    """Return type and value of a number."""
    match = re.fullmatch(r"(0[xX][0-9a-fA-F]{1,16}|\d{1,20})([uUlL]*)", text)
    if match is None:
        try:
            digits = text.rstrip("fFlL") if text[:2].lower() != "0x" else text.rstrip("lL")
            number = float.fromhex(digits) if text[:2].lower() == "0x" else float(digits)
            return ("float", rounded(number)) if text[-1] in "fF" else ("double", number)
        except (ValueError, OverflowError):
            raise Refusal("access", where, f"'{text[:30]}' is no number") from None
    value = int(match[1], 16 if match[1][:2].lower() == "0x" else 10)
    kinds = ["uint32_t", "uint64_t"] if "u" in match[2].lower() else ["int32_t", "int64_t"]
    for kind in [*kinds, "uint64_t"]:
        if value <= RANGES[kind][1] and ("l" not in match[2].lower() or "64" in kind):
            return kind, value
    raise Refusal("range", where, f"{text[:30]} has no type")


class Value(NamedTuple):
    """A number: the sum of multiples of loop variables and something in [low, high].

    `pure` are the loops that it depends on, None if it depends on data of a run.
    """

    type: str
    low: Any
    high: Any
    terms: dict[str, int] = {}  # noqa: RUF012 - never changed in place
    pure: frozenset[str] | None = frozenset()


class Memory:
    """An object of C: `size` in bytes if it is known, `values` of constants, `seen` of stores."""

    def __init__(self, name: str, size: int | None, element: str = "", values: Any = None) -> None:
        self.name, self.size, self.element, self.values = name, size, element, values
        self.has_nan = any(v != v for v in values or ())
        self.seen: tuple[Any, Any] | None = None
        self.parts: dict[Any, Memory] = {}  # by pointer, where those of several types meet
        self.is_written = False
        self.hulls: dict[Any, tuple[Any, Any]] = {}

    def widen(self, kind: str, low: int, high: int) -> None:
        self.is_written = True
        if self.element not in ("", kind):
            kind, low, high = "?", 0, 0
        old = self.seen or (low, high)
        self.element, self.seen = kind, (min(old[0], low), max(old[1], high))


class Pointer(NamedTuple):
    memory: Memory
    offset: Value  # in bytes
    element: Any
    view: Any = None  # who reads and writes through it


INFINITY = float("inf")
START = Value("int64_t", 0, 0)
FLOAT = Value("float", -INFINITY, INFINITY, {}, None)


def spread(mask: int, step: int, turns: int) -> int:
    """Return the union of a mask shifted by 0, step, ..., step * (turns - 1)."""
    done = 1
    while step and done < turns:
        more = min(done, turns - done)
        mask |= mask << step * more
        done += more
    return mask


class Machine:
    """Executes functions over intervals: loops once for all turns where that is exact."""

    def __init__(self, program: Parser, memories: dict[str, Memory]) -> None:
        self.program, self.memories = program, memories
        self.range: dict[str, tuple[int, int]] = {}
        self.active: list[str] = []
        self.frames: list[dict[tuple[Memory, Any], dict[str, dict[Any, int]]]] = [{}]
        self.memo: dict[Any, Any] = {}
        self.assigned: dict[int, frozenset[str]] = {}
        self.one_by_one: set[Any] = set()
        self.notes: dict[str, str] = {}  # what integers may leave their types, by place
        self.trusted: dict[str, set[str]] = {}
        self.loops: dict[tuple[str, str, str], tuple[int, int]] = {}
        self.code: dict[tuple[Any, ...], bool] = {}  # whether loops and branches were ever executed
        self.numbers: dict[str, tuple[int, int]] = {}  # least and greatest that functions are told
        self.passing = False  # whether what a function reached is noted for its caller
        self.bases: dict[Any, int] = {}  # where pointers of the function pointed when it began
        self.alike: dict[Any, Any] = {}  # parameters by others that point into the same buffer
        self.extent: dict[Any, tuple[int, int]] = {}  # bytes that the function reaches, from there
        self.written: set[tuple[str, str]] = set()  # functions and places that only write
        self.given: dict[Memory, set[tuple[str, int]]] = {}  # parameters that point to constants
        self.locals: dict[tuple[str, str], Local] = {}  # local arrays by function and name
        self.sites: dict[tuple[str, Any, str, str], tuple[int, int]] = {}
        self.reached: set[tuple[str, Any, str]] = set()  # parameters that are read or written
        self.quiet = self.turns = self.depth = self.count = 0
        self.result: list[Any] = []
        self.function = ""
        self.exempt: set[str] = set()
        self.trusting = ""  # the function of which arithmetic is not proven
        self.entry: Any = None
        self.mine: list[Memory] = []
        self.sizes: dict[tuple[str, int], int] = {}

    @staticmethod
    def of_numbers() -> Machine:
        return Machine(Parser([]), {})

    # --- numbers ---

    def bounds(self, v: Value) -> tuple[Any, Any]:
        if not v.terms:
            return v.low, v.high
        ends = [(c * self.range[s][0], c * self.range[s][1]) for s, c in v.terms.items()]
        return v.low + sum(map(min, ends)), v.high + sum(map(max, ends))

    def plain(self, v: Value) -> Value:
        return v._replace(low=self.bounds(v)[0], high=self.bounds(v)[1], terms={})

    def split(self, pure: frozenset[str] | None, refusal: Refusal) -> Exception:
        """Return how to go on where something is not proven: turn by turn, or not at all."""
        symbols = [s for s in self.active if pure and s in pure]
        return NeedsTurns(symbols[0]) if symbols else refusal

    def fit(self, kind: str, v: Value, where: str, is_wrapped: bool = False) -> Value:
        """Return a value in a type of integers, where it must fit unless C says how it wraps."""
        same = v if v.type == kind else Value(kind, *v[1:])
        if self.quiet and any(s[0] == "#" for s in v.terms):
            return same
        low, high = self.bounds(v)
        least, most = RANGES[kind]
        if least <= low and high <= most:
            return same
        if least == 0 or is_wrapped:
            size = most - least + 1
            if (low - least) // size == (high - least) // size:
                shift = (low - least) // size * size
                return v._replace(type=kind, low=v.low - shift, high=v.high - shift)
            return Value(kind, least, most, {}, v.pure)
        if not self.quiet:
            if self.trusting:
                self.trusted.setdefault(self.trusting, set()).add(where)
            else:
                self.notes.setdefault(where, f"[{low}, {high}] may not fit in {kind}")
        return Value(kind, max(low, least), min(high, most), {}, v.pure)

    def cast(self, kind: Any, v: Any, where: str) -> Any:
        if isinstance(v, dict):
            return v if isinstance(kind, tuple) else Value(kind, 0, 0)  # an aligned address
        if isinstance(v, Pointer):
            if isinstance(kind, tuple):
                return v._replace(element=v.element if kind[1] == "void" else kind[1])
            return self.fit("uint64_t", v.offset, where)  # objects begin at aligned addresses
        if kind in ("float", "double"):
            if v.type in INTS and (v.terms or max(abs(v.low), abs(v.high)) >> 53):
                return FLOAT._replace(type=kind)
            ends = (v.low, v.high) if kind == "double" else (rounded(v.low), rounded(v.high))
            return Value(kind, *ends, {}, v.pure)
        if kind == "void" or isinstance(kind, tuple):
            return v
        if v.type not in INTS:
            if not (v.low > -INFINITY and v.high < INFINITY):
                return self.fit(kind, Value("", -(1 << 70), 1 << 70, {}, None), where)
            v = v._replace(low=int(v.low), high=int(v.high))
        if kind == "bool":
            return self.test(v)
        return self.fit(kind, v, where)

    def test(self, v: Any) -> Value:
        """Return whether a value is not zero: [0, 0], [1, 1] or [0, 1]."""
        if not isinstance(v, Value):
            return Value("int", 1, 1)
        low, high = self.bounds(v)
        return Value("int", int(low > 0 or high < 0), int(low != 0 or high != 0), {}, v.pure)

    def common(self, a: Value, b: Value, where: str) -> tuple[Value, Value, str]:
        if a.type == b.type == "int32_t":
            return a, b, a.type
        if a.type not in INTS or b.type not in INTS:
            kind = "double" if "double" in (a.type, b.type) else "float"
            return self.cast(kind, a, where), self.cast(kind, b, where), kind
        widest = max(a.type, b.type, "int32_t", key=lambda t: (INTS[t][0], -INTS[t][1]))
        kind = widest if INTS[widest][0] > 32 or not INTS[widest][1] else "int32_t"
        return self.fit(kind, a, where), self.fit(kind, b, where), kind

    def arithmetic(self, op: str, a: Any, b: Any, where: str) -> Any:
        if isinstance(a, dict) or isinstance(b, dict):
            return Value("int", int(op != "=="), int(op != "=="))
        if isinstance(b, Pointer) and op == "+":
            a, b = b, a
        if isinstance(a, Pointer):
            if isinstance(b, Pointer) or op not in "+-":
                return Value("int", 0, 0) if op == "==" else Value("int", 1, 1)
            size = Value("int64_t", SIZES.get(str(a.element), 1), SIZES.get(str(a.element), 1))
            step = self.arithmetic("*", self.cast("int64_t", b, where), size, where)
            return a._replace(offset=self.arithmetic(op, a.offset, step, where))
        if op in ("<<", ">>"):
            a, kind = self.common(a, a, where)[0::2]
            b = self.cast("int32_t", b, where)
        else:
            a, b, kind = self.common(a, b, where)
        pure = a.pure | b.pure if a.pure is not None and b.pure is not None else None
        if op in ("+", "-") and kind in INTS:
            sign = 1 if op == "+" else -1
            terms = dict(a.terms)
            for s, c in b.terms.items():
                terms[s] = terms.get(s, 0) + sign * c
            ends = (b.low, b.high) if sign == 1 else (-b.high, -b.low)
            terms = {s: c for s, c in terms.items() if c}
            return self.fit(
                kind, Value(kind, a.low + ends[0], a.high + ends[1], terms, pure), where
            )
        if op in ("<", ">", "<=", ">=", "==", "!="):
            return self.compared(op, a, b, kind, pure)
        if kind not in INTS:
            if op == "-" and (a.low, a.high) == (0, 0):
                return Value(kind, -b.high, -b.low, {}, b.pure)
            if op not in "+-" or kind == "double" or INFINITY in map(abs, (*a[1:3], *b[1:3])):
                return FLOAT._replace(type=kind)
            ends = (b.low, b.high) if op == "+" else (-b.high, -b.low)
            return Value(kind, rounded(a.low + ends[0]), rounded(a.high + ends[1]), {}, pure)
        if op == "*" and ((a.low == a.high and not a.terms) or (b.low == b.high and not b.terms)):
            v, by = (b, a.low) if a.low == a.high and not a.terms else (a, b.low)
            ends = sorted((v.low * by, v.high * by))
            terms = {s: c * by for s, c in v.terms.items() if by}
            return self.fit(kind, Value(kind, ends[0], ends[1], terms, pure), where)
        (al, ah), (bl, bh) = self.bounds(a), self.bounds(b)
        if op in "/%":
            return self.divided(op, a, b, Value(kind, 0, 0, {}, pure), where)
        if op in ("<<", ">>") and not 0 <= bl <= bh < INTS[kind][0]:
            self.fit("int32_t", Value("", -(1 << 70), 1 << 70, {}, pure), where)
            return Value(kind, *RANGES[kind], {}, pure)
        if op == ">>":
            ends = sorted(x >> y for x in (al, ah) for y in (bl, bh))
        elif op in ("*", "<<"):
            ends = sorted(x * y if op == "*" else x << y for x in (al, ah) for y in (bl, bh))
        elif al == ah and bl == bh:
            ends = [al & bl if op == "&" else al | bl if op == "|" else al ^ bl]
        elif op == "&" and (bl >= 0 or al >= 0):
            ends = [0, min(h for low, h in ((al, ah), (bl, bh)) if low >= 0)]
        else:
            bits = max((x if x >= 0 else ~x).bit_length() for x in (al, ah, bl, bh))
            ends = [0 if min(al, bl) >= 0 else -(1 << bits), (1 << bits) - 1]
        return self.fit(kind, Value(kind, ends[0], ends[-1], {}, pure), where)

    def divided(self, op: str, a: Value, b: Value, v: Value, where: str) -> Value:
        (al, ah), (bl, bh) = self.bounds(a), self.bounds(b)
        if bl <= 0 <= bh:
            raise self.split(v.pure, Refusal("range", where, "a divisor may be 0"))
        if op == "%":
            most = max(abs(bl), abs(bh)) - 1
            if bl == bh and al >= 0 and ah <= most:
                return a._replace(type=v.type, pure=v.pure)
            if bl == bh and al >= 0 and al // bl == ah // bl:
                return a._replace(type=v.type, low=a.low - al // bl * bl, pure=v.pure,
                                  high=a.high - al // bl * bl)  # fmt: skip
            return v._replace(low=max(al, -most) if al < 0 else 0, high=min(max(ah, 0), most))
        if (
            bl == bh > 0
            and al >= 0
            and a.low == a.high
            and all(c % bl == 0 for c in a.terms.values())
        ):
            return v._replace(low=a.low // bl, high=a.low // bl,
                              terms={s: c // bl for s, c in a.terms.items()})  # fmt: skip
        ends = [abs(x) // abs(y) * (1 if (x < 0) == (y < 0) else -1)
                for x in (al, ah) for y in (bl, bh)]  # fmt: skip
        if al < 0 < ah:
            ends.append(0)
        return self.fit(v.type, v._replace(low=min(ends), high=max(ends)), where)

    def compared(self, op: str, a: Value, b: Value, kind: str, pure: Any) -> Value:
        if kind not in INTS:
            (al, ah), (bl, bh) = (a.low, a.high), (b.low, b.high)
            low, high = al - bh, ah - bl
            if low != low or high != high or low == -INFINITY or high == INFINITY:
                return Value("int", 0, 1, {}, None)
        else:
            terms = {s: a.terms.get(s, 0) - b.terms.get(s, 0) for s in {*a.terms, *b.terms}}
            low, high = self.bounds(Value("", a.low - b.high, a.high - b.low, terms))
        always, never = {
            "<": (high < 0, low >= 0), ">": (low > 0, high <= 0), "<=": (high <= 0, low > 0),
            ">=": (low >= 0, high < 0), "==": (low == high == 0, low > 0 or high < 0),
            "!=": (low > 0 or high < 0, low == high == 0),
        }[op]  # fmt: skip
        return Value("int", int(always), int(not never), {}, pure)

    def join(self, a: Any, b: Any) -> Any:
        if a is None or b is None or a == b:
            return a if a == b else None
        if isinstance(a, Pointer) or isinstance(b, Pointer):
            return None
        pure = a.pure | b.pure if a.pure is not None and b.pure is not None else None
        if a.terms != b.terms:
            a, b = self.plain(a), self.plain(b)
        return Value(a.type, min(a.low, b.low), max(a.high, b.high), a.terms, pure)

    # --- expressions ---

    def value(self, tree: Any, env: dict[Any, Any]) -> Any:
        kind, where = tree[0], tree[1]
        if kind == "num":
            return Value(tree[2], tree[3], tree[3])
        if kind == "name":
            if env.get(tree[2]) is not None:
                return env[tree[2]]
            if tree[2] in self.memories:
                memory = self.memories[tree[2]]
                return Pointer(memory, Value("int64_t", 0, 0), memory.element)
            if tree[2] in LIMITS:
                return Value(*LIMITS[tree[2]])
            raise Refusal("order", where, f"'{tree[2]}' may have no value")
        if kind == "bin" and tree[2] in ("&&", "||"):
            left = self.test(self.value(tree[3], env))
            if left.low == left.high:
                is_decided = bool(left.low) == (tree[2] == "||")
                return left if is_decided else self.test(self.value(tree[4], env))
            self.guarded(tree[4], left, where)
            right = self.test(self.value(tree[4], self.assume(tree[3], tree[2] == "&&", env)))
            pure = None if left.pure is None or right.pure is None else left.pure | right.pure
            ends = (0, right.high) if tree[2] == "&&" else (right.low, 1)
            return Value("int", *ends, {}, pure)
        if kind == "bin":
            if tree[2] == "&" and tree[3][0] == "index" and tree[4][0] == "num":
                masked = self.masked(self.place(tree[3], env), tree[4], env, where)
                if masked is not None:
                    return masked
            return self.arithmetic(
                tree[2], self.value(tree[3], env), self.value(tree[4], env), where
            )
        if kind == "un":
            return self.unary(tree, env)
        if kind == "cast":
            return self.cast(tree[2], self.value(tree[3], env), where)
        if kind == "cond":
            test = self.test(self.value(tree[2], env))
            if test.low == test.high:
                return self.value(tree[3 if test.low else 4], env)
            if is_choice(tree) and self.value(("bin", where, f"{tree[2][2]}=", *tree[3:]), env).low:
                return self.value(tree[3], env)  # the minimum of equal numbers is the first, too
            self.guarded(tree[3:], test, where)
            then = self.value(tree[3], self.assume(tree[2], True, env))
            other = self.value(tree[4], self.assume(tree[2], False, env))
            if not isinstance(then, Pointer) and then.type != other.type:
                then, other, _ = self.common(then, other, where)
            both = self.join(then, other)
            return both._replace(pure=both.pure | test.pure if both.pure is not None
                                 and test.pure is not None else None)  # fmt: skip
        if kind == "assign":
            return self.assign(tree, env)
        if kind == "call":
            return self.called(tree, env)
        if kind == "index" or kind == "member":
            return self.load(*self.place(tree, env), env, where)
        raise Refusal("access", where, f"'{kind}' is not read")

    def masked(self, place: Any, mask: Any, env: Any, where: str) -> Value | None:
        """Return the bits that a mask takes of constants: more exact than bits of their range."""
        memory, offset, kind, _ = place
        if not isinstance(memory, Memory) or memory.values is None or kind not in INTS:
            return None
        v = self.load(*place, env, where)
        if kind != memory.element or v.pure is None:
            return None
        ends = self.hull(memory, offset, SIZES[kind], mask[3])
        return Value(self.common(v, Value(mask[2], 0, 0), where)[2], *ends, {}, v.pure)

    def guarded(self, trees: Any, test: Value, where: str) -> None:
        """Go turn by turn where a loop variable decides whether memory is accessed."""
        if test.pure and re.search(r"'(index|assign)'", repr(trees)):
            raise self.split(test.pure, Refusal("access", where, "a condition is not decided"))

    def unary(self, tree: Any, env: dict[Any, Any]) -> Any:
        _, where, op, inner = tree
        if op == "&":
            memory, offset, element, view = self.place(inner, env)
            return Pointer(memory, offset, element, view)
        if op == "*":
            return self.load(*self.place(("index", where, inner, ("num", where, "int", 0)), env),
                             env, where)  # fmt: skip
        v = self.value(inner, env)
        if op == "!":
            test = self.test(v)
            return test._replace(low=1 - test.high, high=1 - test.low)
        if op == "~":
            v = self.common(v, v, where)[0]
            return self.fit(
                v.type, self.arithmetic("-", Value("int", -1, -1), v, where), where, True
            )
        return v if op == "+" else self.arithmetic("-", Value("int", 0, 0), v, where)

    def assume(self, test: Any, truth: bool, env: dict[Any, Any]) -> dict[Any, Any]:
        """Return what is known of variables where a condition holds or not."""
        if test[0] == "un" and test[2] == "!":
            return self.assume(test[3], not truth, env)
        if test[0] != "bin":
            return env
        _, _where, op, left, right = test
        if op in ("&&", "||"):
            if (op == "&&") == truth:
                return self.assume(right, truth, self.assume(left, truth, env))
            return env
        flipped = {"<": ">", ">": "<", "<=": ">=", ">=": "<=", "==": "==", "!=": "!="}
        opposite = {"<": ">=", ">": "<=", "<=": ">", ">=": "<", "==": "!=", "!=": "=="}
        if op not in flipped:
            return env
        env = dict(env)
        is_equal = op == ("==" if truth else "!=")
        if is_equal and left[0] == right[0] == "name" and left[2] == right[2]:
            env["number", left[2]] = True  # what equals itself is not NaN
        for one, other, how in ((left, right, op), (right, left, flipped[op])):
            while one[0] == "cast":
                one = one[3]
            v = env.get(one[2]) if one[0] == "name" else None
            if not isinstance(v, Value) or v.terms or re.search("'(assign|call)'", repr(other)):
                continue
            limit = self.value(other, env)
            if isinstance(limit, Pointer):
                continue
            low, high = self.bounds(limit)
            how = how if truth else opposite[how]
            if v.type not in INTS:
                # The next number of 32 bits nearer to 0 is not nearer than this.
                nearer = 1 - 2.0**-24 if v.type == limit.type == "float" else 1
                if not truth and not env.get(("number", one[2])):
                    continue
                if how in ("<", "<=") and high < INFINITY:
                    high *= nearer if how == "<" and high > 0 else 1
                    env[one[2]] = v._replace(high=min(v.high, high))
                elif how in (">", ">=") and low > -INFINITY:
                    low *= nearer if how == ">" and low < 0 else 1
                    env[one[2]] = v._replace(low=max(v.low, low))
                continue
            ends = {"<": (v.low, high - 1), "<=": (v.low, high), ">": (low + 1, v.high),
                    ">=": (low, v.high), "==": (low, high)}.get(how, (v.low, v.high))  # fmt: skip
            if how == "!=" and low == high:
                ends = (v.low + (v.low == low), v.high - (v.high == low))
            if max(v.low, ends[0]) <= min(v.high, ends[1]):
                env[one[2]] = v._replace(low=max(v.low, ends[0]), high=min(v.high, ends[1]))
        return env

    # --- memory ---

    def place(self, tree: Any, env: dict[Any, Any]) -> tuple[Any, Value, Any, Any]:
        """Return memory, offset in bytes, type and view of what an expression names."""
        kind, where = tree[0], tree[1]
        if kind == "index":
            base, index = self.value(tree[2], env), self.value(tree[3], env)
            if not isinstance(base, Pointer):
                raise Refusal("access", where, "what is indexed is no pointer")
            at = self.arithmetic("+", base, index, where)
            return at.memory, at.offset, at.element, at.view
        if kind == "member":
            base = self.value(tree[2], env)
            if isinstance(base, dict) and tree[3] in base:
                return base, Value("int", 0, 0), tree[3], None
        raise Refusal("access", where, "an expression has no address that is understood")

    def load(self, memory: Any, offset: Value, kind: Any, view: Any, env: Any, where: str) -> Any:
        if isinstance(memory, dict):
            return memory[kind]
        size = SIZES.get(str(kind), 0)
        if not size:
            raise Refusal("access", where, "the type of an element is not understood")
        if isinstance(memory, Local):
            return memory.load(self, offset, env, where)
        self.touch("read", memory, view, offset, (1 << size) - 1, where)
        is_known = memory.values is not None and kind == memory.element and not memory.has_nan
        if is_known:
            return Value(kind, *self.hull(memory, offset, size), {}, offset.pure)
        if kind in ("float", "double"):
            return FLOAT._replace(type=kind)
        memory = memory.parts.get(view, memory)
        seen = memory.seen if memory.element == kind and size > 1 else None
        return Value(kind, *(seen or RANGES[kind]), {}, None)

    def hull(self, memory: Memory, offset: Value, size: int, mask: int = -1) -> tuple[Any, Any]:
        """Return the least and the greatest constant at places that an offset names."""
        low, high = self.bounds(offset)
        steps = [(c // size, self.range[s][1] + 1) for s, c in offset.terms.items()]
        key = (low, high, mask, *sorted(steps))
        if key not in memory.hulls:
            chosen = memory.values[max(low // size, 0) : high // size + 1]
            if low < 0 or high // size >= len(memory.values):
                chosen = memory.values  # what accesses it is refused, or a guess
            elif offset.low == offset.high:
                bits = 1
                for step, turns in steps:
                    bits = spread(bits, abs(step), turns)
                named = bin(bits)[:1:-1]
                chosen = [memory.values[low // size + i] for i, b in enumerate(named) if b == "1"]
            chosen = chosen if mask == -1 else [value & mask for value in chosen]
            memory.hulls[key] = min(chosen, default=0), max(chosen, default=0)
        return memory.hulls[key]

    def touch(
        self, what: str, memory: Memory, view: Any, offset: Value, mask: int, where: str
    ) -> None:
        """Note that bytes are read, or may or must be written; those of a mask from an offset on."""
        low, high = self.bounds(offset)
        is_exact = offset.low == offset.high
        if not is_exact:
            if offset.pure:
                raise self.split(
                    offset.pure, Refusal("access", where, "an index is not understood")
                )
            mask = spread(mask, 1, offset.high - offset.low + 1)
            offset = offset._replace(high=offset.low)
            low, high = self.bounds(offset)
        end = high + mask.bit_length()
        if self.quiet and not (low >= 0 and end <= (memory.size or LARGEST)):
            return
        if low < 0 or end > (LARGEST if memory.size is None else memory.size):
            raise self.split(offset.pure, Refusal("access", where,
                f"bytes {low} to {end - 1} of '{memory.name}', which has {memory.size}"))  # fmt: skip
        if self.quiet:
            return
        if self.entry is not None and len(self.frames) == 1 and self.depth == 1:
            if is_exact or what != "must":
                self.entry.touch(what, memory, view, mask << low, where)
            return
        if not self.passing and what != "may":
            base = self.bases.get(view, 0)
            buffer = memory.name if view is None else view
            self.note(buffer, what, where, low - base, end - base, what == "must")
        if what == "must" and not is_exact:
            return
        coefficients = tuple(sorted((s, abs(c)) for s, c in offset.terms.items()))
        view = self.alike.get(view, view)
        self.add(what, memory, view, coefficients, mask << low, where)

    def note(
        self, buffer: Any, what: str, where: str, low: int, end: int, is_write: bool = False
    ) -> None:
        """Remember the bytes that an expression reaches, and those of the whole function."""
        if is_write:
            self.written.add((self.function, where))
        site = self.function, buffer, what, where
        for notes, key in ((self.sites, site), (self.extent, buffer)):
            old = notes.get(key, (low, end))
            notes[key] = min(low, old[0]), max(end, old[1])

    def add(self, what: str, memory: Memory, view: Any, key: Any, mask: int, where: str) -> None:
        """Note an access in the loop or function that is executed; `key` are steps by loop."""
        frame = self.frames[-1]
        log = frame.setdefault((memory, view), {"read": {}, "may": {}, "must": {}})
        if what == "read":
            mask &= ~log["must"].get(key, 0)
            for (other, by), writes in frame.items():  # since the function began
                if other is memory and by != view and writes["may"].get(key, 0) & mask:
                    text = f"'{memory.name}' is read after it was overwritten"
                    raise Refusal("placement", where, text)
        log[what][key] = log[what].get(key, 0) | mask

    def store(self, place: Any, v: Any, env: Any, where: str) -> None:
        memory, offset, kind, view = place
        if isinstance(memory, dict):
            memory[kind] = v
            return
        if isinstance(memory, Local):
            memory.store(self, offset, v, env, where)
            return
        size = SIZES.get(str(kind), 0)
        if not size or memory.values is not None:
            raise Refusal(
                "access", where, f"'{memory.name}' is constant, or its type not understood"
            )
        for what in ("must", "may"):
            self.touch(what, memory, view, offset, (1 << size) - 1, where)
        if kind in INTS:
            memory.parts.get(view, memory).widen(kind, *self.bounds(v))

    def assign(self, tree: Any, env: dict[Any, Any]) -> Any:
        _, where, op, left, right = tree
        v = self.value(right, env)
        if op != "=":
            v = self.arithmetic(op[:-1], self.value(left, env), v, where)
        if left[0] == "name":
            kind = env.get(("type", left[2]))
            if kind is None:
                raise Refusal("access", where, f"'{left[2]}' is assigned and no variable")
            v = env[left[2]] = self.cast(kind, v, where)
            env.pop(("number", left[2]), None)
            return v
        place = self.place(left, env)
        kind = place[2] if not isinstance(place[0], dict) else None
        v = self.cast(kind, v, where) if kind else v
        self.store(place, v, env, where)
        return v

    # --- statements ---

    def run(self, tree: Any, env: dict[Any, Any]) -> bool:
        """Execute a statement in place; return whether nothing follows it."""
        kind, where = tree[0], tree[1]
        if kind == "block":
            outer = {key: env.get(key) for key in env}
            for statement in tree[2]:
                if self.run(statement, env):
                    return True
            for name in self.declared(tree):
                memory = getattr(env.get(name), "memory", None)
                elements = ((memory, i) for i in range(getattr(memory, "count", 0)))
                for key in (name, ("type", name), *elements):
                    env[key] = outer.get(key)
        elif kind == "decl":
            for variable, name, value in tree[2]:
                self.declare(variable, name, value, env, where)
        elif kind == "expr":
            if tree[2] is not None:
                self.value(tree[2], env)
        elif kind == "return":
            v = None if tree[2] is None else self.value(tree[2], env)
            self.result.append(v)
            return True
        elif kind == "if":
            return self.branch(tree, env)
        else:
            self.loop(tree, env)
        return False

    def declared(self, tree: Any) -> list[str]:
        return [name for s in tree[2] if s[0] == "decl" for _, name, _ in s[2]]

    def declare(self, kind: Any, name: str, value: Any, env: dict[Any, Any], where: str) -> None:
        env["type", name] = kind
        if kind[0] == "[]":
            local = Local(name, kind[1], kind[2])
            old = self.locals.setdefault((self.function, name), local)
            of_other = (old.element, old.count) != kind[1:] or name in self.memories
            params = self.program.functions[self.function].params if self.function else []
            of_other = of_other or name in [other for _, other in params]
            if not 0 < kind[2] <= 1 << 16 or value is not None or of_other:
                raise Refusal("access", where, f"the local array '{name}' is not understood")
            env[name] = Pointer(local, Value("int64_t", 0, 0), kind[1])
            return
        if isinstance(kind, str) and kind.startswith(("union", "struct")):
            members = self.program.structs.get(kind, {}).items()
            env[name] = {
                m: Value(t, *RANGES[t], {}, None) if t in RANGES else FLOAT for m, t in members
            }
            return
        v = None if value is None else self.cast(kind, self.value(value, env), where)
        if isinstance(v, Pointer) and self.entry is not None and self.depth == 1 and v.view is None:
            v = v._replace(view=name)
        env[name] = v

    def branch(self, tree: Any, env: dict[Any, Any]) -> bool:
        _, where, condition, then, otherwise = tree
        test = self.test(self.value(condition, env))
        if self.entry_level() and test.low != test.high:
            raise Refusal("order", where, "whether a layer is called depends on data")
        for truth in (0, 1):
            key = (self.function, where, truth)
            self.code[key] = self.code.get(key, False) or test.low <= truth <= test.high
        if test.low != test.high:
            self.guarded((then, otherwise), test, where)
            return self.branches(tree, test, env)
        chosen = then if test.low else otherwise
        return chosen is not None and self.run(chosen, env)

    def branches(self, tree: Any, test: Value, env: dict[Any, Any]) -> bool:
        """Execute both branches, and join what they leave."""
        _, _where, condition, then, otherwise = tree
        ends, results = [], []
        for statement, truth in ((then, True), (otherwise, False)):
            inner = dict(self.assume(condition, truth, env))
            before = self.frames[-1]
            self.frames[-1] = {
                key: {w: dict(m) for w, m in log.items()} for key, log in before.items()
            }
            ends.append(statement is not None and self.run(statement, inner))
            results.append((inner, self.frames[-1]))
            self.frames[-1] = before
        self.frames[-1] = joined_logs(*(frame for _, frame in results))
        open_ends = [inner for (inner, _), end in zip(results, ends, strict=True) if not end]
        for key, unchanged in list(env.items()):
            values = [inner.get(key) for inner in open_ends] or [unchanged]
            same = all(v is values[0] for v in values)
            mixed = values[0] if same else self.join(values[0], values[1])
            if not same and isinstance(mixed, Value):
                pure = (
                    mixed.pure | test.pure
                    if mixed.pure is not None and test.pure is not None
                    else None
                )
                mixed = mixed._replace(pure=pure)
            env[key] = mixed
        return all(ends)

    # --- loops ---

    def names_assigned(self, tree: Any) -> frozenset[str]:
        """Return the variables that a tree assigns, itself or an element of them."""
        if id(tree) not in self.assigned:
            names: set[str] = set()
            pending = [tree]
            while pending:
                one = pending.pop()
                if isinstance(one, tuple) and one and one[0] == "assign":
                    target = one[3]
                    while target[0] in ("index", "member"):
                        target = target[2]
                    names.add(str(target[2]))
                if isinstance(one, (tuple, list)):
                    pending += one
            self.assigned[id(tree)] = frozenset(names)
        return self.assigned[id(tree)]

    def loop(self, tree: Any, env: dict[Any, Any]) -> None:
        _, where, first, test, step, body = tree
        self.run(first, env)
        name = first[2][0][1] if first[0] == "decl" else ""
        changed = self.names_assigned(body)
        limits = self.limits(test, step, name, env) if name and name not in changed else None
        is_counted = limits is not None and not changed & set(
            re.findall(r"'name', '[^']*', '(\w+)'", repr(test))
        )
        if not (is_counted and self.counted(name, limits, where, body, env)):
            self.turn_by_turn(test, step, body, env, where)
        if name:
            env[name] = None

    def counted(self, name: str, limits: Any, where: str, body: Any, env: dict[Any, Any]) -> bool:
        """Execute a loop with a known number of turns at once, if that is exact."""
        start, by, turns = limits
        low, high = sorted((start, start + by * (turns - 1)))
        old = self.loops.get((self.function, name, where), (low, high))
        self.loops[self.function, name, where] = min(low, old[0]), max(high, old[1])
        if self.entry_level():
            self.entry.limits[name] = low, high + 1
        key = (where, self.function)
        self.code[self.function, where] = True
        if turns > 3 and not self.entry_level() and key not in self.one_by_one:
            try:
                self.at_once(f"{name}@{where}", name, (start, by, turns), body, env)
                return True
            except NeedsTurns as error:
                if error.args[0] != f"{name}@{where}":
                    raise
                self.one_by_one.add(key)
        return False

    def turn_by_turn(self, test: Any, step: Any, body: Any, env: Any, where: str) -> None:
        while True:
            self.turns += 1
            if self.turns > MOST_TURNS:
                raise Refusal("loops", where, "too many turns to go through")
            again = self.test(self.value(test, env))
            ran = self.code.get((self.function, where), False)
            self.code[self.function, where] = ran or again.low == 1
            if again.low != again.high:
                raise self.split(again.pure, Refusal("loops", where, "a loop may not end"))
            if not again.low:
                break
            if self.run(body, env):
                raise Refusal("loops", where, "a loop returns")
            self.value(step, env)

    def entry_level(self) -> bool:
        return self.entry is not None and self.depth == 1

    def limits(
        self, test: Any, step: Any, name: str, env: dict[Any, Any]
    ) -> tuple[int, int, int] | None:
        """Return start, step and number of turns of a loop that counts."""
        if test[0] != "bin" or test[3][0] != "name" or test[3][2] != name or step[0] != "assign":
            return None
        start, stop, by = env[name], self.value(test[4], env), self.value(step[4], env)
        if step[3][2] != name or step[2] not in ("+=", "-="):
            return None
        for v in (start, stop, by):
            if not isinstance(v, Value) or v.type not in INTS:
                return None
            if v.terms or v.low != v.high:
                raise self.split(
                    v.pure, Refusal("loops", test[1], "the number of turns is not known")
                )
        count = by.low if step[2] == "+=" else -by.low
        distance = stop.low - start.low + {"<=": 1, ">=": -1}.get(test[2], 0)
        if (
            test[2] not in ("<", "<=", ">", ">=", "!=")
            or count == 0
            or ((count > 0) != (test[2] in ("<", "<=")) if test[2] != "!=" else distance % count)
        ):
            raise Refusal("loops", test[1], "a loop may not end")
        turns = max(0, -(-distance // count))
        return (start.low, count, turns) if turns else None

    def at_once(
        self, symbol: str, name: str, counts: tuple[int, int, int], body: Any, env: dict[Any, Any]
    ) -> None:
        """Execute all turns of a loop at once, where what a turn leaves to the next is a range."""
        start, by, turns = counts
        before, seen = dict(env), {memory: memory.seen for memory in self.mine}
        self.range[symbol] = (0, turns - 1)
        self.active.append(symbol)
        self.frames.append({})
        try:
            env[name] = Value(env[name].type, start, start, {symbol: by}, frozenset((symbol,)))
            steps = self.carried(symbol, name, counts, body, env)
            for memory, old in seen.items():
                memory.seen = old
            if self.run(body, env):
                raise Refusal("loops", body[1], "a loop returns")
            done = self.all_turns(self.frames[-1], symbol, turns)
        except NeedsTurns:
            env.clear()
            env.update(before)
            for memory, old in seen.items():
                memory.seen = old
            raise
        finally:
            self.active.pop()
            self.frames.pop()
        for key, (low, high) in steps.items():
            env[key] = self.moved(before[key], turns * low, turns * high, {})
            if isinstance(env[key], Value) and RANGES.get(env[key].type, (1, 0))[0] == 0:
                env[key] = Value(env[key].type, *RANGES[env[key].type], {}, None)
        for key, v in list(env.items()):
            if key not in steps and isinstance(v, Value) and symbol in v.terms:
                env[key] = self.plain(v)
        for (memory, view), what, coefficients, mask in done:
            self.add(what, memory, view, coefficients, mask, body[1])

    def moved(self, v: Any, low: int, high: int, terms: dict[str, int]) -> Any:
        """Return a value or pointer that loops have moved."""
        number = v.offset if isinstance(v, Pointer) else v
        pure = None if number.pure is None or low != high else number.pure | set(terms)
        number = Value(
            number.type, number.low + low, number.high + high, {**number.terms, **terms}, pure
        )
        return v._replace(offset=number) if isinstance(v, Pointer) else number

    def carried(
        self, symbol: str, name: str, counts: tuple[int, int, int], body: Any, env: dict[Any, Any]
    ) -> dict[Any, tuple[int, int]]:
        """Give variables that turns change a range for all turns; return what a turn adds, if it does."""
        start, by, turns = counts
        keys: list[Any] = []
        arrays = {v.memory: None for v in env.values() if is_local(v)}  # calls may change them
        keys += [(array, i) for array in arrays for i in range(array.count)]
        keys += [one for one in sorted(self.names_assigned(body)) if not is_local(env.get(one))]
        keys = [key for key in keys if isinstance(env.get(key), (Value, Pointer))]
        first, steps = {key: env[key] for key in keys}, dict[Any, tuple[int, int]]()
        if not keys:
            return steps
        for key, v in first.items():
            self.count += 1
            mark = f"#{self.count}"
            kind = v.offset.type if isinstance(v, Pointer) else v.type
            self.range[mark] = RANGES.get(kind, (0, 0))
            number = Value(kind, 0, 0, {mark: 1}, None) if kind in INTS else FLOAT
            env[key] = v._replace(offset=number) if isinstance(v, Pointer) else number
        marked = {key: env[key] for key in keys}
        steps = self.added(marked, body, dict(env))
        if turns <= 256 and any(
            max(-low, high) * turns > RANGES[marked[key].type][1] >> 3
            for key, (low, high) in steps.items()
            if isinstance(marked[key], Value)
        ):  # the weights of each turn bound a sum better than those of all turns
            every = []
            for turn in range(turns):
                value = Value(env[name].type, start + by * turn, start + by * turn)
                every.append(self.added(marked, body, {**env, name: value}))
            for key in [key for key, ends in steps.items() if ends[0] != ends[1]]:
                lows, highs = zip(*(one.get(key, steps[key]) for one in every), strict=True)
                least, most = (sum(min(0, x) for x in lows), sum(max(0, x) for x in highs))
                steps[key] = least // (turns - 1), -(-most // (turns - 1))
        for key, v in first.items():
            low, high = steps.get(key, (0, 0))
            kind = v.type if isinstance(v, Value) else ""
            if RANGES.get(kind, (1, 0))[0] == 0 and (low, high) != (0, 0):
                steps[key] = (0, 0)  # what is unsigned may wrap
                env[key] = Value(kind, *RANGES[kind], {}, None)
                first[key] = env[key]
            elif low == high:
                env[key] = self.moved(v, 0, 0, {symbol: low} if low else {})
            else:
                env[key] = self.moved(v, min(0, (turns - 1) * low), max(0, (turns - 1) * high), {})
        others = [key for key in keys if key not in steps]
        for _ in range(4 if others else 0):
            inner = dict(env)
            self.quietly(body, inner)
            grown = {key: self.join(env[key], inner[key]) for key in others}
            grown = {k: self.plain(v) if isinstance(v, Value) else v for k, v in grown.items()}
            if all(grown[key] == env[key] for key in others):
                return steps
            env.update(grown)
        for key in others:
            kind = first[key].type if isinstance(first[key], Value) else ""
            env[key] = (
                Value(kind, *RANGES[kind], {}, None) if kind in RANGES else FLOAT if kind else None
            )
        return steps

    def added(self, marked: Any, body: Any, env: dict[Any, Any]) -> dict[Any, tuple[int, int]]:
        """Return what one turn adds to marked variables that it only adds to."""
        steps: dict[Any, tuple[int, int]] = {}
        self.quietly(body, env)
        for key, old in marked.items():
            new = env.get(key)
            if isinstance(new, Pointer) and isinstance(old, Pointer):
                old, new = old.offset, new.offset
            if (
                isinstance(new, Value)
                and old.terms
                and all(new.terms.get(s) == 1 for s in old.terms)
            ):
                rest = {s: c for s, c in new.terms.items() if s not in old.terms}
                if not any(s.startswith("#") for s in rest):
                    steps[key] = self.bounds(new._replace(terms=rest))
        return steps

    def quietly(self, body: Any, env: dict[Any, Any]) -> None:
        self.quiet += 1
        try:
            self.run(body, env)
        finally:
            self.quiet -= 1

    def all_turns(self, frame: Any, symbol: str, turns: int) -> list[Any]:
        """Return the accesses of all turns, where none reads what another writes."""
        whole = []
        for (memory, view), log in frame.items():
            for what, masks in log.items():
                for key, mask in masks.items():
                    rest = tuple(pair for pair in key if pair[0] != symbol)
                    done = spread(mask, dict(key).get(symbol, 0), turns)
                    whole.append(((memory, view), what, rest, done))
                    if what == "read" and mask:
                        self.check_turns(frame, memory, key, rest, mask, done, symbol, turns)
        return sorted(whole, key=lambda one: "read may must".index(one[1]))

    def check_turns(self, frame: Any, memory: Any, key: Any, rest: Any, mask: int, done: int,
                    symbol: str, turns: int) -> None:  # fmt: skip
        for (other, _), log in frame.items():
            for by, written in log["may"].items() if other is memory else ():
                step, both = dict(key).get(symbol, 0), mask | written
                span = both.bit_length() - (both & -both).bit_length() + 1
                of_others = tuple(pair for pair in by if pair[0] != symbol)
                if key == by and 0 < span <= step:
                    continue
                if of_others == rest and not done & spread(written, dict(by).get(symbol, 0), turns):
                    continue
                raise NeedsTurns(symbol)

    # --- calls ---

    def called(self, tree: Any, env: dict[Any, Any]) -> Any:
        _, where, name, trees = tree
        values = [self.value(one, env) for one in trees]
        if re.fullmatch(MATH, name):
            return FLOAT
        if re.fullmatch(r"U?INT\d+_C", name):
            return self.fit(f"{name[:-2].lower()}_t", values[0], where)
        if name.startswith("is_misaligned"):
            return Value("int", 0, 0)
        if name not in self.program.functions or self.depth > 20:
            raise Refusal("order", where, f"the function '{name}' is not in the C, or calls itself")
        function = self.program.body(name)
        if len(function.params) != len(values):
            raise Refusal("order", where, f"'{name}' takes {len(function.params)} arguments")
        args = [v if isinstance(v, dict) else self.cast(kind, v, where)
                for v, (kind, _) in zip(values, function.params, strict=True)]  # fmt: skip
        pointers, exact = [i for i, v in enumerate(args) if isinstance(v, Pointer)], [*args]
        if self.quiet and pointers and function.result == "void":
            for local in {v.memory for v in args if is_local(v)}:
                local.widen(env, range(local.count), None)
            return None
        pure: Any = frozenset()
        for i, v in enumerate(args):
            if isinstance(v, Value):
                if pointers and v.pure and self.bounds(v)[0] != self.bounds(v)[1]:
                    raise self.split(v.pure, Refusal("access", where, "an argument is not decided"))
                pure = None if pure is None or v.pure is None else pure | v.pure
                if not self.quiet:
                    low, high = self.bounds(v)
                    old = self.numbers.get(name, (low, high))
                    self.numbers[name] = min(low, old[0]), max(high, old[1])
                args[i] = self.plain(v)._replace(pure=None if v.pure is None else frozenset())
        body, kinds = function.body[2][0], {function.result, *(kind for kind, _ in function.params)}
        if body[0] == "return" and is_choice(body[2]) and kinds <= set(INTS) and len(kinds) == 1:
            params = (param for _, param in function.params)
            return self.value(body[2], dict(zip(params, exact, strict=True)))
        if self.entry_level():
            if self.program.text_of(name) in CANARIES:
                return self.entry.canaries(self.program.text_of(name), args, where)
            args = self.entry.arguments(name, args, where, env)
        groups, key = self.groups(name, args, where)
        if key not in self.memo:
            self.memo[key] = self.executed(name, function, args, groups)
        result, effects, stored, extent = self.memo[key]
        self.note_pointers(name, args, extent, where)
        self.passing = True
        try:
            self.apply(args, groups, effects, env, where)
        finally:
            self.passing = False
        for g, (memory, _, _, members) in enumerate(groups):
            if isinstance(memory, Local):
                continue
            for i, (kind, seen) in zip(members, stored[g], strict=True):
                if seen is not None and memory.values is None and SIZES.get(kind, 2) > 1:
                    self.seen_by(args[i]).widen(kind, *seen)
        if isinstance(result, Pointer) and pointers:
            return args[pointers[0]]._replace(element=result.element)
        if isinstance(result, Value):
            result = result._replace(pure=pure if result.pure is not None else None)
        return result

    def note_pointers(self, name: str, args: list[Any], extent: Any, where: str) -> None:
        """Remember which elements a call hands to a function: those that its parameter has.

        Those that the function reaches, where it takes any number of elements.
        """
        for i, v in enumerate(args):
            if not isinstance(v, Pointer) or self.quiet or self.entry_level():
                continue
            span = (0, self.sizes[name, i]) if (name, i) in self.sizes else extent.get(i)
            if span is not None:
                low, high = (end - self.bases.get(v.view, 0) for end in self.bounds(v.offset))
                end = min(high + span[1], self.sizes.get((self.function, v.view), LARGEST))
                buffer, place = v.memory.name if v.view is None else v.view, f"{where} {i}"
                is_write = (name, i, "read") not in self.reached
                self.note(buffer, "pass", place, low + span[0], end, is_write)
                if v.memory.values is not None:
                    self.given.setdefault(v.memory, set()).add((name, i))

    def apply(self, args: list[Any], groups: list[Any], effects: Any,
              env: dict[Any, Any], where: str) -> None:  # fmt: skip
        """Note what a function read and wrote as accesses of its caller: reads first."""
        for what in ("read", "may", "must"):
            for g, view, of_what, mask in effects:
                if of_what == what and mask:
                    memory, base = (g, START) if isinstance(g, Memory) else groups[g][:2]
                    if isinstance(memory, Local):
                        memory.passed(what, mask << base.low, groups[g][2].seen, env, where)
                        continue
                    by = None if view is None else args[view].view
                    self.touch(what, memory, by, base, mask, where)

    def seen_by(self, pointer: Pointer) -> Any:
        if self.entry_level():
            return self.entry.stores(pointer)
        return pointer.memory.parts.get(pointer.view, pointer.memory)

    def groups(self, name: str, args: list[Any], where: str) -> tuple[list[Any], Any]:
        """Return the memories behind pointers as a function sees them, and a key for its results."""
        groups: list[Any] = []
        key: list[Any] = [name, self.quiet > 0, self.trusting]
        for i, v in enumerate(args):
            if not isinstance(v, Pointer):
                key.append(id(v) if isinstance(v, dict) else v)
                if isinstance(v, Value):
                    key[-1] = (v.type, v.low, v.high, v.pure)
                continue
            is_exact = v.offset.low == v.offset.high and not v.offset.terms
            if isinstance(v.memory, Local) and not (is_exact and v.offset.low >= 0):
                raise Refusal("access", where, "a part of a local array is passed on")
            if v.memory.values is not None and is_exact:
                key.append((v.memory.name, v.offset.low, v.element))
                continue
            same = [g for g in groups if g[0] is v.memory and self.may_meet(args[g[3][0]], v)]
            seen = self.seen_by(v)
            inner = Memory(f"{name}: {self.program.functions[name].params[i][1]}",
                           self.sizes.get((name, i)), str(v.element))  # fmt: skip
            known = seen.seen if v.memory.values is None else self.hull(
                v.memory, Value("int64_t", 0, v.memory.size - 1), SIZES[v.memory.element])  # fmt: skip
            inner.seen = known if seen.element in ("", inner.element) else RANGES.get(inner.element)
            of_key = (v.element, inner.seen if SIZES.get(inner.element, 1) > 1 else None)
            if not same:
                groups.append([v.memory, v.offset, inner, [i]])
                key.append((len(groups), *of_key))
                continue
            group = same[0]
            if v.offset.terms != group[1].terms or v.offset.low != v.offset.high:
                raise self.split(v.offset.pure, Refusal("access", where, "pointers into one array"))
            if v.offset.low < group[1].low:
                group[1] = v.offset
            group[2].size = None
            if group[2].element != v.element:
                first = group[2]
                parts = first.parts or dict.fromkeys(group[3], first)
                group[2] = Memory(first.name, None, "?")
                group[2].parts = {**parts, i: inner}
            group[3].append(i)
            key.append((groups.index(group), v.offset.low - args[group[3][0]].offset.low, *of_key))
        return groups, tuple(key)

    def may_meet(self, a: Pointer, b: Pointer) -> bool:
        return not self.entry_level() or self.entry.meet(a, b)

    def executed(self, name: str, function: Function, args: list[Any], groups: list[Any]) -> Any:
        env: dict[Any, Any] = {}
        for (kind, param), v in zip(function.params, args, strict=True):
            env[param], env["type", param] = v, kind
        alike: dict[Any, Any] = {}
        bases = {i: v.offset.low for i, v in enumerate(args) if isinstance(v, Pointer)}
        for i in set(bases) - {i for group in groups for i in group[3]}:
            env[function.params[i][1]] = args[i]._replace(view=i)
        for _, base, inner, members in groups:
            for i in members:
                bases[i] -= base.low
                low = args[i].offset.low - base.low
                views = [self.alike.get(args[j].view, args[j].view) for j in (*members, i)]
                alike[i] = i if self.entry_level() else members[views.index(views[-1])]
                offset = Value("int64_t", low, low)
                env[function.params[i][1]] = Pointer(inner, offset, args[i].element, i)
        state = self.frames, self.active, self.result, self.function, self.mine, self.trusting
        outer = self.bases, self.alike, self.extent
        self.bases, self.alike, self.extent = bases, alike, {}
        self.trusting = self.trusting or (name if name in self.exempt else "")
        self.frames, self.active, self.result, self.function = [{}], [], [], name
        self.mine = [one for _, _, inner, _ in groups for one in (inner, *inner.parts.values())]
        self.depth += 1
        try:
            self.run(function.body, env)
            effects = []
            for (memory, view), log in self.frames[0].items():
                g = next((n for n, group in enumerate(groups) if group[2] is memory), memory)
                effects += [(g, view, what, log[what].get((), 0)) for what in log]
            result = self.result[0] if self.result else None
            for other in self.result[1:]:
                result = self.join(result, other)
            if isinstance(result, Value):
                result = self.plain(self.cast(function.result, result, function.where))
            extent = self.extent
        finally:
            self.frames, self.active, self.result, self.function, self.mine, self.trusting = state
            self.depth -= 1
            self.bases, self.alike, self.extent = outer
        self.reached |= {
            (name, view, "read" if what == "read" else "write")
            for _, view, what, mask in effects
            if mask
        }
        if isinstance(result, Pointer) and result.offset.low:
            raise Refusal("access", function.where, "a pointer that is returned is not understood")
        stored = [stored_in(inner, members) for _, _, inner, members in groups]
        return result, effects, stored, extent


def stored_in(memory: Memory, members: list[int]) -> list[Any]:
    """Return types and ranges of what a function stored through its pointers into an array."""
    if sum(part.is_written for part in {*memory.parts.values()}) > 1:
        return [("?", (0, 0))] * len(members)
    parts = [memory.parts.get(i, memory) for i in members]
    return [(part.element, part.seen) for part in parts]


def is_choice(tree: Any) -> bool:
    """Return whether an expression is the minimum or maximum of two variables, as `a < b ? a : b`."""
    if not tree or tree[0] != "cond" or tree[2][::2][:2] not in (("bin", "<"), ("bin", ">")):
        return False
    names = [one[::2] for one in tree[3:]]
    return names == [one[::2] for one in tree[2][3:]] and {kind for kind, _ in names} == {"name"}


def is_local(v: Any) -> bool:
    """Return whether a value points to an array of a function."""
    return isinstance(v, Pointer) and isinstance(v.memory, Local)


class Local:
    """A small array of a function: each element is a variable, (array, index)."""

    def __init__(self, name: str, element: str, count: int) -> None:
        self.name, self.element, self.count = name, element, count
        self.size, self.values, self.seen = count * SIZES[element], None, RANGES.get(element)
        self.parts: dict[Any, Memory] = {}

    def elements(self, machine: Machine, what: str, offset: Value, where: str) -> range:
        """Return the elements that an offset may name, and note them for the function's claims."""
        low, high = machine.bounds(offset)
        size = SIZES[self.element]
        if low != high and offset.pure:
            raise machine.split(offset.pure, Refusal("access", where, "an index is not understood"))
        if low < 0 or high // size >= self.count:
            raise machine.split(offset.pure, Refusal(
                "access", where, f"elements {low // size} to {high // size} of '{self.name}'"))  # fmt: skip
        if not machine.quiet:
            machine.note(self.name, what, where, low, high + size)
        return range(low // size, high // size + 1)

    def load(self, machine: Machine, offset: Value, env: dict[Any, Any], where: str) -> Any:
        values = [env.get((self, i)) for i in self.elements(machine, "read", offset, where)]
        if None in values:
            raise Refusal("order", where, f"an element of '{self.name}' may have no value")
        mixed = values[0]
        for v in values[1:]:
            mixed = machine.join(mixed, v)
        return mixed if len(values) == 1 else mixed._replace(pure=None)

    def store(
        self, machine: Machine, offset: Value, v: Any, env: dict[Any, Any], where: str
    ) -> None:
        places = self.elements(machine, "must", offset, where)
        for i in places:
            old = env.get((self, i))
            env[self, i] = v if len(places) == 1 or old is None else machine.join(old, v)

    def widen(self, env: dict[Any, Any], elements: Any, ends: Any) -> None:
        """Give elements any value between two, or any at all."""
        ends = ends or RANGES.get(self.element, (-INFINITY, INFINITY))
        for i in elements:
            env[self, i] = Value(self.element, *ends, {}, None)

    def passed(self, what: str, mask: int, seen: Any, env: dict[Any, Any], where: str) -> None:
        """Note what a function does with bytes: its writes leave all values that it stores."""
        size = SIZES[self.element]
        if mask.bit_length() > self.size:
            raise Refusal("access", where, f"bytes behind the end of '{self.name}'")
        elements = [i for i in range(self.count) if mask >> i * size & (1 << size) - 1]
        if what == "read" and any(env.get((self, i)) is None for i in elements):
            raise Refusal("order", where, f"an element of '{self.name}' may have no value")
        if what == "may":
            elements = [i for i in elements if env.get((self, i)) is not None]
        if what != "read":
            self.widen(env, elements, seen)


MATH = (
    "expf|logf|sqrtf|tanhf|sinf|cosf|floorf|ceilf|roundf|rintf|fabsf|powf|atan2f|fmodf|"
    "fmaf|floor|fmaxf|fminf|exp"
)


# --- indices as sums, where numbers do not say all of an access ----------------------------------

Form = dict[tuple[Any, ...], int]  # a sum: factors by products of names and of operations
SUMS = {("bin", "+"), ("bin", "-"), ("bin", "*"), ("un", "+"), ("un", "-")}
SAME_OPERATIONS = {"floordiv": "/", "floor_div": "/", "floormod": "%", "floor_mod": "%",
                   "select": "cond"}  # fmt: skip


def form_of(tree: Any, names: dict[str, Form]) -> Form:
    """Return an expression as a sum, so that equal sums in other words are equal."""
    kind = tree[0]
    if kind == "num":
        return {(): tree[3]} if tree[3] else {}
    if kind == "name":
        return names.get(tree[2], {(tree[2],): 1})
    if kind == "cast" or (kind == "call" and re.fullmatch(r"cast|int\d+|INT\d+_C", tree[2])):
        to = tree[2] if kind == "cast" else tree[3][0][-1] if tree[2] == "cast" else "int32"
        inner = form_of(tree[3] if kind == "cast" else tree[3][-1], names)
        is_wide = to in ("int32", "int32_t", "int64", "int64_t")
        return inner if is_wide else {(("cast", str(to).removesuffix("_t"), frozen(inner)),): 1}
    if tree[::2][:2] in SUMS:
        parts = [form_of(one, names) for one in tree[3:]]
        first, second = parts if kind == "bin" else ({}, parts[0])
        result: Form = {} if tree[2] == "*" else dict(first)
        for key, factor in second.items():
            signs: Form = first if tree[2] == "*" else {(): 1 if tree[2] == "+" else -1}
            for by, times in signs.items():
                product = tuple(sorted(key + by, key=repr))
                result[product] = result.get(product, 0) + factor * times
        return {key: factor for key, factor in result.items() if factor}
    if kind not in ("call", "bin", "un", "cond", "index"):
        return {(("", tree[1]),): 1}  # what equals nothing else
    op = kind if kind in ("cond", "index") else re.sub(r"_[iu]\d+$", "", str(tree[2]))
    inner = tree[3] if kind == "call" else tree[2:] if op == kind else tree[3:]
    forms = [form_of(one, names) for one in inner]
    op = SAME_OPERATIONS.get(op, op)
    if op == "%" and [*forms[1]] == [()]:  # C adds a multiple to what may be negative
        forms[0] = {**forms[0], (): forms[0].get((), 0) % forms[1][()]}
    return {((op, *map(frozen, forms)),): 1}


def frozen(form: Form) -> Any:
    """Return a sum as a part of a product."""
    return tuple(sorted(((k, v) for k, v in form.items() if v), key=repr))


def changed(tree: Any) -> Iterator[str]:
    """Yield the names of numbers that a statement assigns."""
    if isinstance(tree, (tuple, list)) and tree:
        if tree[0] == "assign" and tree[3][0] == "name":
            yield tree[3][2]
        for part in tree:
            yield from changed(part)


class Indices:
    """Lists the elements of arrays that a function names: (array, kind, index, loops around)."""

    def __init__(self, function: Function, machine: Machine) -> None:
        self.sites: dict[tuple[str, str], Any] = {}  # by kind and place
        self.arrays = {name for kind, name in function.params if isinstance(kind, tuple)}
        self.arrays |= machine.memories.keys()
        self.mutable = {*changed(function.body)}
        if self.mutable & {name for _, name in function.params}:
            raise Refusal("access", function.where, "a parameter is assigned")
        self.statement(function.body, {}, ())

    def statement(self, tree: Any, names: dict[str, Form], within: Any) -> None:
        kind, where = tree[0], tree[1]
        if kind == "block":
            names = dict(names)
            for one in tree[2]:
                self.statement(one, names, within)
        elif kind == "decl":
            for of, name, value in tree[2]:
                self.arrays |= {name} if of[0] == "[]" else set()
                self.expression(value, names, within)
                is_fixed = value is not None and isinstance(of, str) and name not in self.mutable
                names[name] = form_of(value if is_fixed else ("", where), names)
        elif kind == "for":
            start, test, step, name = tree[2], tree[3], tree[4], tree[3][3][-1]
            is_up = start[0] == "decl" and start[2][0][1] == name and test[2] == "<"
            is_up = is_up and (step[2], step[3][-1], step[4][-1]) == ("+=", name, 1)
            if not is_up or len(start[2]) > 1 or name in names or name in changed(tree[5]):
                raise Refusal("access", where, "a loop is not understood")
            ends = start[2][0][2], test[4]
            self.expression(ends, names, within)
            inner = {**names, name: {(name,): 1}}
            around = name, *(frozen(form_of(one, names)) for one in ends)
            self.statement(tree[5], inner, (*within, around))
        elif kind == "if":
            self.expression(tree[2], names, within)
            for branch, truth in ((tree[3], tree[2]), (tree[4], ("un", where, "!", tree[2]))):
                if branch is not None:
                    self.statement(branch, names, (*within, frozen(form_of(truth, names))))
        else:
            self.expression(tree[2], names, within)

    def expression(
        self, tree: Any, names: Any, within: Any, kind: str = "read", at: str = ""
    ) -> None:
        """Note the elements that an expression names; `at` is the place of a write or a pass."""
        if not isinstance(tree, (tuple, list)) or not tree or tree[::2][:2] == ("cast", "void"):
            return
        if tree[0] == "index" and tree[2][0] == "name":
            of, index = tree[2][2], frozen(form_of(tree[3], names))
            if of in self.arrays:
                self.sites[kind, at or tree[1]] = (of, kind, index, within)
            self.expression(tree[3], names, within)
        elif tree[0] == "assign" and tree[3][0] == "index":
            if tree[2] != "=":
                self.expression(tree[3], names, within)
            self.expression(tree[3], names, within, "write", tree[1])
            self.expression(tree[4], names, within)
        elif tree[0] == "call":
            for i, one in enumerate(tree[3]):
                is_pointer = one[0] == "un" and one[2] == "&" and one[3][0] == "index"
                is_array = one[0] == "name" and one[2] in self.arrays
                one = ("index", "", one, ("num", "", "int", 0)) if is_array else one
                one = one[3] if is_pointer else one
                is_passed = is_pointer or is_array
                self.expression(one, names, within, *(("pass", f"{tree[1]} {i}") * is_passed))
        elif tree[0] == "name" and tree[2] in self.arrays:
            raise Refusal("access", tree[1], f"the pointer '{tree[2]}' is not understood")
        else:
            for one in tree:
                self.expression(one, names, within)


def claimed_index(claim: dict[str, Any]) -> Any:
    """Return what the certificate says of an index, in the form of `Indices`."""

    def parser(text: str) -> Parser:
        words = {"and": "&&", "or": "||", "not": "!"}
        tokens = TOKEN.findall(text.replace("`", ""))
        return Parser([Token(words.get(t, t), text) for t in tokens])

    within = []
    for text in claim["within"]:
        name, is_loop, ends = text.partition(" in [")
        if is_loop:
            reader = parser(ends)
            parts = reader.several(")", reader.assignment)
            within.append((name.strip("`"), *(frozen(form_of(one, {})) for one in parts)))
        else:
            within.append(frozen(form_of(parser(text).expression(), {})))
    index = frozen(form_of(parser(claim["index"]).expression(), {}))
    return claim["buffer"], claim["kind"], index, tuple(within)


# --- the run function against the certificate ----------------------------------------------------


CANARIES = (
    """
( void * memory , uint32_t words , uint32_t at_each_end ) {
volatile uint32_t * const first = ( volatile uint32_t * ) memory ;
volatile uint32_t * const last = & first [ words - at_each_end ] ;
for ( uint32_t i = 0 ; i < at_each_end ; i ++ ) {
first [ i ] = UINT32_C ( 0xc0deface ) + i ;
last [ i ] = UINT32_C ( 0x3f210531 ) - i ; } }

( const void * memory , uint32_t words , uint32_t at_each_end ) {
const volatile uint32_t * const first = ( const volatile uint32_t * ) memory ;
const volatile uint32_t * const last = & first [ words - at_each_end ] ;
uint32_t changed = 0 ;
for ( uint32_t i = 0 ; i < at_each_end ; i ++ ) {
changed |= first [ i ] ^ ( UINT32_C ( 0xc0deface ) + i ) ;
changed |= last [ i ] ^ ( UINT32_C ( 0x3f210531 ) - i ) ; }
return changed ; }
""".strip()
    .replace("\n", " ")
    .split("  ")
)
"""What sets the words at the ends of a workspace, and what compares them: 0 if nothing changed."""


class Buffer(NamedTuple):
    name: str
    memory: Memory
    low: int
    high: int  # behind its last byte


class Entry:
    """Follows what each byte of the workspace holds from call to call."""

    def __init__(self, facts: dict[str, Any], program: Parser, sizes: dict[str, int]) -> None:
        self.calls = facts["calls"]
        self.program = program
        self.buffers: dict[str, Buffer] = {}
        self.valid: dict[tuple[Memory, Any], int] = {}
        self.ends: Any = None  # words of each canary
        self.compared = 0  # how often canaries are
        self.seen: dict[Any, Memory] = {}
        self.read: dict[Memory, int] = {}
        self.uses: dict[str, list[int]] = {}
        self.loops: list[tuple[int, int]] = []
        self.order: dict[str, int] = {}  # number of a call by its place
        self.made: set[int] = set()
        self.names: list[str] = []
        self.around: list[tuple[str, ...]] = []  # variables of the loops around each call
        self.limits: dict[str, tuple[int, int]] = {}  # of loops as they began last
        self.states = {state["member"] for state in facts["states"]}

    def number(self, tree: Any, around: tuple[str, ...] = ()) -> None:
        """Give numbers to calls of layers, in the order of the text."""
        first = len(self.order)
        if isinstance(tree, tuple) and tree and tree[0] == "call" and tree[2] in self.layers:
            self.order[tree[1]] = first
            self.names.append(tree[2])
            self.around.append(around)
        if isinstance(tree, (tuple, list)):
            is_loop = bool(tree) and tree[0] == "for"
            inner = (*around, tree[2][2][0][1]) if is_loop and tree[2][0] == "decl" else around
            for part in tree:
                self.number(part, inner)
            if is_loop and not around and len(self.order) > first:
                self.loops.append((first, len(self.order) - 1))

    def arguments(self, name: str, args: list[Any], where: str, env: dict[Any, Any]) -> list[Any]:
        """Give pointers of a layer's call the names that the certificate has for them."""
        if name not in self.layers:
            return args
        index = self.order[where]
        self.made.add(index)
        claimed, loops = self.calls[index]["arguments"], self.calls[index]["loops"]
        seen = [(one, *self.limits.get(one, (0, 0))) for one in self.around[index]]
        if seen != [(one[: one.find(" in [")], *ends_of(one, env)) for one in loops]:
            text = f"the loops around {name} are not '{', '.join(loops)}', as the certificate says"
            raise Refusal("loops", where, text)
        if len(claimed) != len(args):
            raise Refusal("order", where, f"the certificate has {len(claimed)} arguments")
        named = []
        for v, claim in zip(args, claimed, strict=True):
            if isinstance(v, Pointer) != (claim["buffer"] is not None):
                raise Refusal(
                    "order", where, f"argument '{claim['parameter']}' is another in the certificate"
                )
            if isinstance(v, Pointer):
                buffer = self.buffers.get(claim["buffer"])
                if buffer is None and v.view in self.states and claim["buffer"]:
                    # What a run leaves in a state has a name of its own, in the same memory.
                    buffer = Buffer(claim["buffer"], v.memory, 0, v.memory.size)
                    self.buffers[claim["buffer"]] = buffer
                place = None if buffer is None else (buffer.memory, buffer.low + claim["offset"])
                if place != (v.memory, v.offset.low):
                    raise Refusal(
                        "placement",
                        where,
                        f"argument '{claim['parameter']}' is not '{claim['buffer']}'"
                        f" at {claim['offset']}",
                    )
                if v.offset.low % SIZES.get(str(v.element), 1):
                    raise Refusal("placement", where, f"'{claim['buffer']}' is not aligned")
                self.uses.setdefault(claim["buffer"], []).append(index)
                v = v._replace(view=claim["buffer"])
            elif (v.low, v.high) != (stated(claim["value"], env),) * 2:
                text = f"argument '{claim['parameter']}' is {v.low}, not {claim['value']}"
                raise Refusal("order", where, text)
            named.append(v)
        return named

    def canaries(self, body: str, args: list[Any], where: str) -> Any:
        """Set or compare the words at both ends of the workspace: no buffer has them."""
        words, ends = args[1].low, args[2].low
        masks = [(1 << b.high) - (1 << b.low) for b in self.buffers.values()
                 if b.memory is args[0].memory]  # fmt: skip
        if 4 * words != args[0].memory.size or not 0 < 2 * ends <= words:
            raise Refusal("placement", where, "canaries are not at the ends of the workspace")
        mask = (1 << 4 * ends) - 1
        if any(one & (mask | mask << 4 * (words - ends)) for one in masks):
            raise Refusal("placement", where, "a buffer has words of a canary")
        is_first = body == CANARIES[0]
        if (
            is_first != (self.ends is None)
            or (is_first and self.made)
            or self.ends not in (None, ends)
        ):
            raise Refusal(
                "order", where, "canaries are set once, before all layers, and then compared"
            )
        self.ends, self.compared = ends, self.compared + (not is_first)
        return None if is_first else Value("uint32_t", 0, 0)

    def meet(self, a: Pointer, b: Pointer) -> bool:
        if a.view not in self.buffers or b.view not in self.buffers:
            return True
        one, other = self.buffers[a.view], self.buffers[b.view]
        return one.low < other.high and other.low < one.high

    def stores(self, pointer: Pointer) -> Memory:
        """Return what is known of the values of a buffer, as a memory of its own."""
        if pointer.view is None:
            return pointer.memory
        return self.seen.setdefault(pointer.view, Memory(str(pointer.view), None))

    def touch(self, what: str, memory: Memory, view: Any, mask: int, where: str) -> None:
        if memory.values is not None:
            self.read[memory] = self.read.get(memory, 0) | mask
            return
        buffer = self.buffers.get(view)
        if (
            buffer is None
            or (mask & -mask).bit_length() - 1 < buffer.low
            or mask.bit_length() > buffer.high
        ):
            of = "every buffer" if view is None else f"'{view}'"
            raise Refusal("access", where, f"bytes outside of {of}")
        if what == "read":
            self.read[memory, view] = self.read.get((memory, view), 0) | mask
            missing = mask & ~self.valid.get((memory, view), 0)
            if missing:
                at = (missing & -missing).bit_length() - 1 - buffer.low
                raise Refusal(
                    "placement",
                    where,
                    f"byte {at} of '{view}' is read: it was never written, or it was overwritten",
                )
        elif what == "may":
            for key in self.valid:
                if key[0] is memory and key[1] != view:
                    self.valid[key] &= ~mask
        else:
            self.valid[memory, view] = self.valid.get((memory, view), 0) | mask


OPERATORS = {ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul,
             ast.Eq: operator.eq, ast.NotEq: operator.ne, ast.Lt: operator.lt,
             ast.LtE: operator.le, ast.Gt: operator.gt, ast.GtE: operator.ge}  # fmt: skip
FUNCTIONS = {"min": min, "max": max, "floordiv": operator.floordiv, "floormod": operator.mod}


def stated(text: Any, env: dict[Any, Any]) -> Any:
    """Return the number that a text of the certificate stands for, None if it is not understood."""
    try:
        return number_of(ast.parse(text[:1000], mode="eval").body, env)
    except (ArithmeticError, AttributeError, LookupError, SyntaxError, TypeError, ValueError):
        return None


def ends_of(text: str, env: dict[Any, Any]) -> Any:
    """Return the ends of a loop `variable in [start, stop)`."""
    ends = stated(f"{text[text.find(' in [') + 4 : -1]}]", env)
    return ends if isinstance(ends, list) else [None]


def number_of(tree: Any, env: dict[Any, Any]) -> Any:
    """Return the number that an expression of the certificate has."""
    if isinstance(tree, ast.Constant):
        return tree.value
    if isinstance(tree, ast.List):
        return [number_of(one, env) for one in tree.elts]
    if isinstance(tree, ast.Name):
        return env[tree.id].low
    if isinstance(tree, ast.BinOp):
        return OPERATORS[type(tree.op)](number_of(tree.left, env), number_of(tree.right, env))
    if isinstance(tree, ast.Compare):
        left, right = number_of(tree.left, env), number_of(tree.comparators[0], env)
        return OPERATORS[type(tree.ops[0])](left, right)
    name = tree.func.id
    if name == "cast" or f"{name}_t" in INTS:
        return number_of(tree.args[-1], env)
    numbers = [number_of(one, env) for one in tree.args]
    return numbers[1 if numbers[0] else 2] if name == "select" else FUNCTIONS[name](*numbers)


def joined_logs(a: Any, b: Any) -> Any:
    """Return what either of two branches may do, and what both must."""
    result: dict[Any, Any] = {}
    for key in {**a, **b}:
        empty: dict[str, dict[Any, int]] = {"read": {}, "may": {}, "must": {}}
        one, other = a.get(key, empty), b.get(key, empty)
        log = result[key] = {}
        for what in ("read", "may", "must"):
            keys = {**one[what], **other[what]}
            mixed = {k: (one[what].get(k, 0), other[what].get(k, 0)) for k in keys}
            log[what] = {k: x & y if what == "must" else x | y for k, (x, y) in mixed.items()}
    return result


def read_file(folder: Path, name: str) -> bytes:
    """Return a file of a folder; BadInput if it is outside, or too large."""
    try:
        path = (folder / name).resolve()
        if not path.is_relative_to(folder.resolve()) or path.stat().st_size > 1 << 28:
            raise OSError("outside of the folder, or too large")
        return path.read_bytes()
    except (OSError, ValueError) as error:
        raise BadInput(f"{name[:80]} cannot be read: {error}") from None


# What a certificate has to have: dictionaries by field, lists by what is in them, and types.
SIZE, MAYBE_SIZE, MAYBE_TEXT = (0, 1 << 31), (None, 1 << 31), (str, None)
NUMBER = (-(1 << 63), 1 << 63)
SHAPE = {
    "format_version": (1, 1),
    "generator": str,
    "module_name": str,
    "model": {"path": str, "bytes": SIZE, "sha256": str},
    "configuration_sha256": str,
    "files": [{"path": str, "bytes": SIZE, "sha256": str}],
    "pools": [{"name": str, "bytes": SIZE, "alignment": SIZE}],
    "ports": [{"kind": str, "member": str, "dtype": str, "bytes": SIZE, "offset": MAYBE_SIZE}],
    "states": [{"member": str, "dtype": str, "bytes": SIZE}],
    "buffers": [
        {"name": str, "pool": str}
        | dict.fromkeys(("offset", "bytes", "first_call", "last_call"), SIZE)
    ],
    "constants": [{"name": str, "dtype": str, "elements": SIZE, "alignment": SIZE}],
    "calls": [
        {
            "function": str,
            "loops": [str],
            "arguments": [
                {
                    "parameter": str,
                    "buffer": MAYBE_TEXT,
                    "offset": SIZE,
                    "reads": bool,
                    "writes": bool,
                    "value": MAYBE_TEXT,
                }
            ],
        }
    ],
    "functions": [
        {
            "name": str,
            "parameters": [
                {"name": str, "dtype": str} | dict.fromkeys(("elements", "low", "high"), MAYBE_SIZE)
            ],
            "loops": [
                {"variable": str, "low": (-(1 << 31), 1 << 31), "stop": (-(1 << 31), 1 << 31)}
            ],
            "accesses": [
                {"buffer": str, "kind": str, "facts": [str]}
                | dict.fromkeys(("least", "greatest", "times"), SIZE)
            ],
            "indices": [{"buffer": str, "kind": str, "index": str, "within": [str], "times": SIZE}],
            "accumulator": (None, {"bits": (8, 64), "low": NUMBER, "high": NUMBER}),
        }
    ],
    "trusted_arithmetic": [str],
    "stack": {"bytes": SIZE, "bytes_in_c": SIZE, "bytes_unoptimised": SIZE},
    "vectors": [{"seed": SIZE, "outputs": {}}],
    "timing": [{"function": str, "time": str, "causes": [str]}],
    "instructions": (
        None,
        {"board": str, "compiler": str, "flags": [str], "instructions": SIZE, "by_function": {}},
    ),
}


def checked(value: Any, shape: Any, place: str) -> None:
    """Refuse a certificate that lacks a field or has another type there."""
    if isinstance(shape, dict) and isinstance(value, dict):
        for name, inner in shape.items():
            if name not in value:
                raise BadInput(f"the certificate has no {place}{name}")
            checked(value[name], inner, f"{place}{name}.")
    elif isinstance(shape, list) and isinstance(value, list) and len(value) < 1_000_000:
        for i, one in enumerate(value):
            checked(one, shape[0], f"{place}{i}.")
    elif isinstance(shape, tuple) and isinstance(shape[1], dict):
        if value is not None:
            checked(value, shape[1], place)
    elif shape is bool and isinstance(value, bool):
        pass
    elif isinstance(shape, tuple) and shape[1] is not None:
        is_size = type(value) is int and (shape[0] or 0) <= value <= shape[1]
        if not is_size and not (value is None and shape[0] is None):
            raise BadInput(f"{place[:-1]} of the certificate is no size")
    elif not (isinstance(shape, tuple) and value is None) and not (
        isinstance(value, str)
        and (shape is str or isinstance(shape, tuple))
        and len(value) < 100_000
    ):
        raise BadInput(f"{place[:-1]} of the certificate has another type")


def matched(ranges: list[Any], claims: list[Any]) -> dict[int, int]:
    """Return of each range a claim of its own that holds it, for as many ranges as can have one.

    The others move by the shortest chain of changes (Berge's augmenting paths).
    """
    claim_of: dict[int, int] = {}
    range_of: dict[int, int] = {}
    for first in range(len(ranges)):
        reached: dict[int, int] = {}
        queue = [first]
        for one in queue:
            low, high = ranges[one]
            for place, claim in enumerate(claims):
                if place not in reached and claim[0] <= low and high <= claim[1]:
                    reached[place] = one
                    if place in range_of:
                        queue.append(range_of[place])
                        continue
                    end: int | None = place
                    while end is not None:
                        moved = reached[end]
                        before = claim_of.get(moved)
                        claim_of[moved], range_of[end] = end, moved
                        end = before
                    queue.clear()
                    break
    return claim_of


def is_one_of_each(mask: int) -> bool:
    """Return whether bytes are a column of a table: one word in each of four rows that follow."""
    words = [i for i in range(0, mask.bit_length(), 4) if mask >> i & 15 == 15]
    rows = [i == words[n - n % 4] + n % 4 * TABLE_ROW for n, i in enumerate(words)]
    return len(words) % 4 == 0 and len(words) * 4 == bin(mask).count("1") and all(rows)


WORD = 4  # bytes that Arm's instructions for several registers need to be aligned
TABLE_ROW = 16  # bytes of a row of a table: four numbers of 32 bits


NOTHING: dict[str, list[Any]] = {"parameters": []}


class Check:
    """One certificate and its folder: what holds, and what does not."""

    def __init__(self, path: Path, folder: Path) -> None:
        try:
            self.facts = json.loads(read_file(path.parent, path.name))
        except (ValueError, RecursionError) as error:
            raise BadInput(f"{path.name} is no JSON: {str(error)[:100]}") from None
        checked(self.facts, SHAPE, "")
        self.path, self.folder = path, folder
        self.functions = {function["name"]: function for function in self.facts["functions"]}
        self.name = self.facts["module_name"]
        self.refused: list[tuple[str, str]] = []
        self.exact: set[tuple[str, str, str]] = set()  # function, buffer and kind of equal claims
        self.holds: list[str] = []
        self.trust: list[str] = []
        self.skipped: list[str] = []

    def refuse(self, part: str, text: str) -> None:
        self.refused.append((part, text))

    def all(self, compiler: str | None) -> None:
        try:
            self.digests()
            self.program()
        except Refusal as refusal:
            self.refuse(refusal.part, str(refusal))
        except NeedsTurns as error:
            self.refuse("loops", f"{error}: a loop is not understood")
        except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
            self.refuse("access", f"the C is not understood: {error!r}"[:200])
        if compiler is not None and not self.refused:
            self.vectors(compiler)

    def digests(self) -> None:
        for file in self.facts["files"]:
            content = read_file(self.folder, file["path"])
            if (len(content), hashlib.sha256(content).hexdigest()) != (
                file["bytes"],
                file["sha256"],
            ):
                self.refuse("digest", f"{file['path']} has other bytes than the certificate says")
        self.holds.append(f"{len(self.facts['files'])} files have the digests of the certificate")
        for name in (f"{self.name}.h", f"{self.name}.c"):
            if name not in [file["path"] for file in self.facts["files"]]:
                self.refuse("digest", f"the certificate has no digest of {name}")

    def program(self) -> None:
        facts, name = self.facts, self.name
        macro = re.sub(r"\W", "_", name).upper()
        reader = Preprocessor(
            self.folder,
            {
                f"{macro}_ALIGNED": (["bytes"], []),
                f"{macro}_LAYER": (None, ["static"]),
                "__STDC_VERSION__": (None, ["199901L"]),
            },
        )
        for extra in facts["files"]:
            if extra["path"].endswith(".c"):
                reader.read(extra["path"])
        self.skipped, self.assembly = reader.skipped, reader.assembly
        parser = Parser(reader.expand(reader.tokens))
        parser.program()
        memories = self.constants(parser)
        machine = Machine(parser, memories)
        machine.exempt = set(facts["trusted_arithmetic"])
        for function in facts["functions"]:
            for i, p in enumerate(function["parameters"]):
                kind = DTYPES.get(p["dtype"], f"{p['dtype']}_t")
                if p["elements"] is not None and kind in SIZES:
                    machine.sizes[function["name"], i] = p["elements"] * SIZES[kind]
        entry = self.entry(machine, parser, macro, reader)
        machine.entry = entry
        self.execute(machine, entry)

    def constants(self, parser: Parser) -> dict[str, Memory]:
        claimed = {
            c["name"]: (DTYPES.get(c["dtype"], f"{c['dtype']}_t"), c["elements"])
            for c in self.facts["constants"]
        }
        memories = {}
        for name, (element, count, values) in parser.arrays.items():
            if claimed.get(name) != (element, count):
                raise Refusal("access", name, "the array is another in the certificate")
            if values is None:
                raise Refusal("access", name, "the array has no values")
            values = [*values, *[0] * (count - len(values))]
            if (
                element in RANGES
                and not RANGES[element][0] <= min(values) <= max(values) <= RANGES[element][1]
            ):
                raise Refusal("range", name, "a constant does not fit its type")
            memories[name] = Memory(name, count * SIZES[element], element, values)
        if set(claimed) != set(memories):
            raise Refusal("access", self.name, "the certificate has other arrays than the C")
        return memories

    def entry(self, machine: Machine, parser: Parser, macro: str, reader: Preprocessor) -> Entry:
        facts = self.facts
        entry = Entry(facts, parser, {})
        entry.layers = {f["name"] for f in facts["functions"]} & {
            c["function"] for c in facts["calls"]
        }
        if len(facts["pools"]) != 1:
            raise Refusal("placement", self.name, "several pools are not checked yet")
        pool = facts["pools"][0]
        if self.macro(reader, f"{macro}_WORKSPACE_SIZE") != pool["bytes"]:
            raise Refusal("placement", self.name, "the workspace has another size in the header")
        self.workspace = Memory("workspace", pool["bytes"], "uint8_t")
        for b in facts["buffers"]:
            if self.assembly and b["offset"] % WORD:
                text = "the buffer begins inside a word, and assembly accesses words"
                raise Refusal("placement", b["name"], text)
            if b["offset"] + b["bytes"] > pool["bytes"] or b["name"] in entry.buffers:
                raise Refusal(
                    "placement", b["name"], "the buffer is not inside the workspace, or there twice"
                )
            entry.buffers[b["name"]] = Buffer(
                b["name"], self.workspace, b["offset"], b["offset"] + b["bytes"]
            )
        self.ports: dict[str, dict[str, Any]] = {"inputs": {}, "outputs": {}}
        for port in facts["ports"]:
            kind = DTYPES.get(port["dtype"], f"{port['dtype']}_t")
            member = port["member"]
            if (
                self.macro(reader, f"{macro}_{member.upper()}_SIZE") != port["bytes"]
                or kind not in SIZES
            ):
                raise Refusal("access", member, "the header has another size than the certificate")
            if port["offset"] is not None:
                raise Refusal("placement", member, "ports in the workspace are not checked yet")
            memory = Memory(member, port["bytes"], kind)
            entry.buffers[member] = Buffer(member, memory, 0, port["bytes"])
            side = "inputs" if port["kind"] == "input" else "outputs"
            if side == "inputs":
                entry.valid[memory, member] = (1 << port["bytes"]) - 1
                seen = entry.seen[member] = Memory(member, None, kind)
                seen.seen = RANGES.get(kind)
            self.ports[side][member] = Pointer(memory, Value("int64_t", 0, 0), kind, member)
        self.states(entry, parser)
        return entry

    def states(self, entry: Entry, parser: Parser) -> None:
        """Add the members of the state, which have values of any size when a run begins."""
        self.state: dict[str, Any] = {}
        members = parser.structs.get(f"struct {self.name}_state", {})
        text = " ".join(token.text for token in parser.tokens)
        match = re.search(r"state -> identity = UINT32_C \( (0x[0-9a-f]+) \)", text)
        if match:
            number = int(match[1], 16)
            self.state["identity"] = Value("uint32_t", number, number)
            self.trust.append(f"the caller passes a state that {self.name}_state_init made")
        for state in self.facts["states"]:
            member, kind = state["member"], DTYPES.get(state["dtype"], f"{state['dtype']}_t")
            size = state["bytes"] // SIZES.get(kind, 1)
            if members.get(member) != ("[]", kind, size) or member in entry.buffers:
                raise Refusal("placement", member, "the state is another in the C, or no array")
            memory = Memory(member, state["bytes"], kind)
            entry.buffers[member] = Buffer(member, memory, 0, state["bytes"])
            entry.valid[memory, member] = (1 << state["bytes"]) - 1
            seen = entry.seen[member] = Memory(member, None, kind)
            seen.seen = RANGES.get(kind)
            self.state[member] = Pointer(memory, START, kind, member)

    def macro(self, reader: Preprocessor, name: str) -> Any:
        body = reader.macros.get(name, (None, ["0"]))[1]
        return Parser(reader.expand([Token(t, name) for t in body])).constant()

    def execute(self, machine: Machine, entry: Entry) -> None:
        name, facts = f"{self.name}_run", self.facts
        if name not in machine.program.functions:
            raise Refusal("order", self.name, f"there is no function {name}")
        function = machine.program.body(name)
        entry.number(function.body)
        if entry.names != [c["function"] for c in facts["calls"]]:
            raise Refusal(
                "order", function.where, "the calls are others than those of the certificate"
            )
        env: dict[Any, Any] = {}
        workspace = Pointer(self.workspace, Value("int64_t", 0, 0), "void")
        for kind, param in function.params:
            value = {**self.ports, "workspace": workspace, "state": self.state}.get(param)
            if value is None:
                raise Refusal(
                    "order", function.where, f"the parameter '{param}' is not checked yet"
                )
            env[param], env["type", param] = value, kind
        machine.depth, machine.function = 1, name
        machine.run(function.body, env)
        self.after(machine, entry)

    def after(self, machine: Machine, entry: Entry) -> None:
        facts = self.facts
        for text in machine.notes.items():
            self.refuse("range", f"{text[0]}: {text[1]}")
        missing = set(entry.order.values()) - entry.made
        if missing:
            self.refuse(
                "order",
                f"{len(missing)} calls are never made, the first is {entry.names[min(missing)]}",
            )
        for member, pointer in self.ports["outputs"].items():
            full = (1 << pointer.memory.size) - 1
            if entry.valid.get((pointer.memory, member), 0) != full:
                self.refuse("order", f"not every byte of the output '{member}' is written")
        for state in entry.states:
            memory = self.state[state].memory
            full = (1 << memory.size) - 1
            if full not in [mask for (of, _), mask in entry.valid.items() if of is memory]:
                self.refuse("order", f"a run leaves the state '{state}' in part")
        for b in facts["buffers"]:
            uses = entry.uses.get(b["name"], [])
            uses = [
                end
                for use in uses
                for loop in [next((lp for lp in entry.loops if lp[0] <= use <= lp[1]), (use, use))]
                for end in loop
            ]
            if not uses or (min(uses), max(uses)) != (b["first_call"], b["last_call"]):
                self.refuse(
                    "placement",
                    f"'{b['name']}' does not live from call {b['first_call']} to {b['last_call']}",
                )
        self.sites(machine)
        for memory in machine.memories.values():
            unread = (1 << memory.size) - 1 & ~entry.read.get(memory, 0)
            # A column of a table may be in the code instead: it is unread in every row.
            row = unread & (1 << TABLE_ROW) - 1
            if row == (1 << TABLE_ROW) - 1 or unread != spread(
                row, TABLE_ROW, memory.size // TABLE_ROW
            ):
                text = f"{bin(unread).count('1')} bytes of '{memory.name}' are never read"
                to = self.assembly_reads(memory, unread, machine)
                if to:
                    self.trust.append(f"{text} but by the assembly of {', '.join(sorted(to))}")
                else:
                    self.refuse("order", text)
        self.directions(machine)
        if entry.ends:
            self.holds.append(
                f"canaries are set before all layers, and compared {entry.compared} times"
            )
        self.holds.append(f"{len(entry.order)} calls, {len(machine.memo)} analyses of functions")
        for fn, places in sorted(machine.trusted.items()):
            self.trust.append(f"{len(places)} results of integers in {fn} fit their types")

    def assumptions(self) -> list[str]:
        """Return what no line of this checker has looked at."""
        texts = [
            "the C compiler and the processor do what C says; a shift right of a negative number rounds down",
            "the caller passes memory of the declared sizes and alignments, and none of it overlaps",
            "values are those of the model only as far as test vectors show",
            "the compiler alone states ranges of sums, alignments, stack, time and instructions",
        ]
        if self.skipped:
            texts.append(
                f"{len(self.skipped)} parts for other compilers and CPUs do what the parts beside them do, which"
                f" were checked: {', '.join(self.skipped)}"
            )
        return texts

    def sites(self, machine: Machine) -> None:
        """Compare each access and loop of the C with those of the certificate, one by one."""
        functions = self.functions
        derived: dict[Any, dict[Any, list[str]]] = {}
        for (name, view, what, where), (low, end) in machine.sites.items():
            function = functions.get(name)
            if function is None:
                continue
            parameter = function["parameters"][view] if isinstance(view, int) else {"name": view}
            buffer, kind = parameter["name"], {"must": "write"}.get(what, what)
            if isinstance(view, int):
                element = None
            else:
                element = (machine.locals.get((name, view)) or machine.memories[view]).element
            size = SIZES[element or DTYPES.get(parameter["dtype"], f"{parameter['dtype']}_t")]
            of_kind = derived.setdefault((name, buffer, kind), {})
            of_kind.setdefault((low // size, end // size - 1), []).append(where)
        unused = {key[0] for key, ran in machine.code.items() if not ran}
        unused |= functions.keys() - {key[0] for key in machine.memo}
        for name, function in functions.items():
            claims: dict[Any, dict[Any, int]] = {}
            for a in function["accesses"]:
                of_kind = claims.setdefault((name, a["buffer"], a["kind"]), {})
                bounds = a["least"], a["greatest"]
                of_kind[bounds] = of_kind.get(bounds, 0) + a["times"]
            counts = {p["name"]: p["elements"] for p in function["parameters"]}
            counts |= {c["name"]: c["elements"] for c in self.facts["constants"]}
            counts |= {n: a.count for (of, n), a in machine.locals.items() if of == name}
            for a in function["accesses"]:
                if (
                    a["greatest"] >= (counts.get(a["buffer"]) or LARGEST)
                    or a["least"] > a["greatest"]
                ):
                    self.refuse(
                        "access",
                        f"{name}: '{a['buffer']}' has no elements {a['least']} to {a['greatest']}",
                    )
            free, stated = self.indices(name, function, machine)
            for key in {*claims, *(key for key in derived if key[0] == name)}:
                told, seen = claims.get(key, {}), derived.get(key, {})
                if {bounds: len(places) for bounds, places in seen.items()} == told:
                    self.exact.add(key)
                if (name, key[1]) not in machine.locals:  # whose claims are never wider
                    loose = {w for kind, w in stated if kind == key[2]}
                    seen = self.contained(name, told, seen, loose, machine)
                for bounds in {*told, *seen} if key[1] not in free else ():
                    times = len(seen.get(bounds, ()))
                    surplus = times - told.get(bounds, 0)
                    if surplus > 0 or (surplus and name not in unused):
                        where = seen.get(bounds, [name])[0]
                        self.refuse(
                            "access",
                            f"{where}: {key[2]} of elements {bounds[0]} to {bounds[1]} of '{key[1]}' stands {times} times in the C, {told.get(bounds, 0)} times in the certificate",
                        )
        for (name, variable, _), (low, high) in machine.loops.items():
            loops = functions.get(name, {"loops": []})["loops"]
            of_name = [one for one in loops if one["variable"] == variable] or loops
            is_told = any(p["elements"] is None for p in functions.get(name, NOTHING)["parameters"])
            ends = [(one["low"], one["stop"]) for one in of_name]
            inside = any(first <= low and high < stop for first, stop in ends) and is_told
            if loops and (low, high + 1) not in ends and not inside:
                self.refuse(
                    "loops",
                    f"{name}: '{variable}' goes from {low} to {high}, which the certificate does not say",
                )

    def indices(self, name: str, function: Any, machine: Machine) -> tuple[set[str], set[Any]]:
        """Compare the indices that the certificate states with those of the C.

        Returns arrays of any size, of which all are stated, and kinds and places of what is stated.
        """
        claims: dict[Any, int] = {}
        for claim in function["indices"]:
            key = claimed_index(claim)
            claims[key] = claims.get(key, 0) + claim["times"]
        if name not in machine.program.functions:
            return set(), set()
        c = machine.program.body(name)
        any_size = {p["name"] for p, (kind, _) in zip(function["parameters"], c.params, strict=True)
                    if p["elements"] is None and isinstance(kind, tuple)}  # fmt: skip
        if not claims and not any_size:
            return set(), set()
        if [p["name"] for p in function["parameters"]] != [of for _, of in c.params]:
            raise Refusal("access", c.where, "the parameters have other names in the certificate")
        derived: dict[Any, list[tuple[str, str]]] = {}
        for place, key in Indices(c, machine).sites.items():
            derived.setdefault(key, []).append(place)
        for key in {*claims, *(key for key in derived if key[0] in any_size)}:
            places = derived.get(key, [])
            if len(places) != claims.get(key, 0):
                where = places[0][1] if places else name
                text = f"{key[1]} of an element of '{key[0]}' is another in the certificate"
                self.refuse("access", f"{where}: {text}")
        return any_size, {place for key in claims for place in derived.get(key, ())}

    def directions(self, machine: Machine) -> None:
        """Compare what each call reads and writes with the certificate."""
        for call in self.facts["calls"]:
            name = call["function"]
            for i, argument in enumerate(call["arguments"]):
                for kind in ("read", "write"):
                    if (name, i, kind) in machine.reached and not argument[f"{kind}s"]:
                        text = f"'{argument['parameter']}' is {kind}, which the certificate denies"
                        self.refuse("access", f"{name}: {text}")

    def assembly_reads(self, memory: Memory, unread: int, machine: Machine) -> set[str]:
        """Return the functions that alone get an array, if all are assembly for other compilers.

        Their twins leave words unread as the claims say, if these are for the whole array, or only
        zeros, which fill vectors.  Else they leave a column of the constants of four channels.
        """
        size = SIZES[memory.element]
        is_filler = not any(v for i, v in enumerate(memory.values) if unread >> i * size & 1)
        given = machine.given.get(memory, set())
        for name, i in given:
            parameter = self.functions[name]["parameters"][i]["name"]
            is_told = machine.sizes.get((name, i)) == memory.size
            is_told = is_told and (name, parameter, "read") in self.exact
            if name not in self.assembly or not (is_told or is_filler or is_one_of_each(unread)):
                return set()
        return {name for name, _ in given}

    def is_partial(self, name: str, machine: Machine) -> bool:
        """Return whether a function is called for fewer rows than the certificate lets it compute.

        Its claims are of all rows then, and the C that is executed lies within them.
        """
        function = self.functions[name]
        told = [p for p in function["parameters"] if p["elements"] is None and p["low"] is not None]
        limits = min((p["low"] for p in told), default=0), max((p["high"] for p in told), default=0)
        return machine.numbers.get(name, limits) != limits

    def contained(self, name: str, told: Any, seen: Any, loose: set[str], machine: Any) -> Any:
        """Count ranges as claims that they lie in, each as one, and the least where it can.

        Only those of places whose claims may be wider; the others equal their claims.
        """
        is_partial = self.is_partial(name, machine)
        placed: dict[Any, list[str]] = {}
        pending = []
        for bounds, places in seen.items():
            for where in places:
                is_exact = len(placed.get(bounds, ())) < told.get(bounds, 0)
                is_less = is_partial and (name, where) in machine.written
                if not is_exact and (is_less or where in loose):
                    pending.append((bounds[1] - bounds[0], bounds, where))
                else:
                    placed.setdefault(bounds, []).append(where)
        pending.sort()
        free = [c for c, n in told.items()
                for _ in range(min(n - len(placed.get(c, ())), len(pending)))]  # fmt: skip
        free.sort(key=lambda c: c[1] - c[0])
        claim_of = matched([bounds for _, bounds, _ in pending], free)
        for index, (_, bounds, where) in enumerate(pending):
            claim = free[claim_of[index]] if index in claim_of else bounds
            placed.setdefault(claim, []).append(where)
        return placed

    def vectors(self, compiler: str) -> None:
        """Compile the C, run it on the inputs of the certificate and compare digests of outputs."""
        if not self.facts["vectors"]:
            self.trust.append(
                "there are no test vectors: what is computed is not compared with the model"
            )
            return
        with tempfile.TemporaryDirectory() as folder:
            source, program = Path(folder) / "run.c", Path(folder) / "run"
            source.write_text(self.harness(), "utf-8")
            files = [
                str(self.folder / f["path"])
                for f in self.facts["files"]
                if f["path"].endswith(".c")
            ]
            command = [compiler, "-O1", "-I", str(self.folder), str(source), *files, "-lm", "-o"]
            seeds = [str(vector["seed"]) for vector in self.facts["vectors"]]
            try:
                for call in ([*command, str(program)], [str(program), *seeds]):
                    result = subprocess.run(
                        call, check=True, capture_output=True, timeout=600
                    ).stdout
            except (OSError, subprocess.SubprocessError) as error:
                raise BadInput(
                    f"{compiler} could not build or run the C: {str(error)[:200]}"
                ) from None
        for vector in self.facts["vectors"]:
            for member, pointer in self.ports["outputs"].items():
                part, result = result[: pointer.memory.size], result[pointer.memory.size :]
                if hashlib.sha256(part).hexdigest() != vector["outputs"].get(member):
                    self.refuse(
                        "vectors",
                        f"output '{member}' of seed {vector['seed']} has another digest",
                    )
        self.holds.append(f"{len(self.facts['vectors'])} test vectors, compiled by {compiler}")

    def harness(self) -> str:
        """Return a program that runs the model for each seed in its arguments, one after another."""
        values = {
            "int8_t": "(int)(s >> 24) - 128",
            "uint8_t": "s >> 24",
            "int16_t": "(int)(s >> 16) - 32768",
            "float": "(float)((int)(s >> 24) - 128) / 128.0f",
        }
        text = [
            "#include <stdio.h>",
            "#include <stdlib.h>",
            f'#include "{self.name}.h"',
            f"static {self.name.upper()}_WORKSPACE(memory);",
        ]
        body, state, loop = ["uint32_t s;"], "", []
        if self.facts["states"]:
            text.append(f"static struct {self.name}_state state;")
            body.append(f"if ({self.name}_state_init(&state) != 0) return 1;")
            state = "&state, "
        for side, ports in self.ports.items():
            body.append(f"struct {self.name}_{side} {side};")
            for n, (member, pointer) in enumerate(ports.items()):
                kind = str(pointer.element)
                count = pointer.memory.size // SIZES[kind]
                text.append(f"static {kind} {side}_{member}[{count}];")
                body.append(f"{side}.{member} = {side}_{member};")
                if side == "inputs":
                    if kind not in values:
                        raise BadInput(f"there is no rule for inputs of {kind}")
                    loop.append(
                        f"s = (uint32_t)(atoi(*v) + {n}); for (int i = 0; i < {count}; i++)"
                        f" {{ s = s * 1664525u + 1013904223u; {side}_{member}[i] = ({kind})({values[kind]}); }}"
                    )
        loop.append(f"if ({self.name}_run(&inputs, &outputs, {state}memory) != 0) return 1;")
        loop += [
            f"fwrite(outputs_{m}, 1, {p.memory.size}, stdout);"
            for m, p in self.ports["outputs"].items()
        ]
        body += ["while (*++v) {", *loop, "}", "return 0; }", ""]
        return "\n".join([*text, "int main(int c, char **v) {", "(void)c;", *body])


def main(arguments: list[str]) -> int:
    """Check a certificate; the module says how."""
    compiler = None
    if "--run" in arguments:
        at = arguments.index("--run")
        compiler = arguments[at + 1] if at + 1 < len(arguments) else "cc"
        arguments = arguments[:at] + arguments[at + 2 :]
    if not 1 <= len(arguments) <= 2 or arguments[0].startswith("-"):
        print(__doc__)
        return 2
    sys.setrecursionlimit(8000)
    path = Path(arguments[0])
    try:
        check = Check(path, Path(arguments[1]) if len(arguments) > 1 else path.parent)
        check.all(compiler)
    except BadInput as error:
        print(f"certcheck: {error}")
        return 2
    except RecursionError:
        print("certcheck: the C is nested too deeply")
        return 1
    lines = [f"holds: {text}" for text in check.holds]
    lines += [f"rests on trust: {text}" for text in (*check.trust, *check.assumptions())]
    lines += [f"not proven ({part}): {text}" for part, text in check.refused]
    print("\n".join([*lines, "not proven" if check.refused else "proven"]))
    return 1 if check.refused else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
