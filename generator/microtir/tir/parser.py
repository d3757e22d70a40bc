"""The text form of TIR, read.  See `tir.printer` for what it looks like."""

from __future__ import annotations

import ast
import json
from collections import ChainMap
from collections.abc import Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any

import numpy as np

from microtir.errors import TirError
from microtir.tir.build import seq
from microtir.tir.dtype import DType
from microtir.tir.ir import (
    Array,
    Buffer,
    BufferArgument,
    BufferView,
    Dim,
    Expr,
    ExternCall,
    ExternFunction,
    For,
    If,
    Invoke,
    KernelCall,
    KernelContract,
    Let,
    LoopKind,
    Origin,
    Param,
    PrimFunc,
    Region,
    RowAccess,
    Scope,
    Seq,
    Stmt,
    Store,
    Var,
)
from microtir.tir.lexer import Line, TokenKind, lines_of
from microtir.tir.parser_expr import Cursor, Symbols
from microtir.tir.visitor import allocated


def parse(text: str) -> tuple[PrimFunc, ...]:
    """The functions of a text, without the kernels and externs that they call.

    Raises:
        TirError: the text is malformed; the error names the line.
    """
    return _Parser(lines_of(text)).module()


def parse_function(text: str) -> PrimFunc:
    """The only function of a text; TirError if there is not exactly one."""
    functions = parse(text)
    if len(functions) != 1:
        raise TirError(f"the text holds {len(functions)} functions", legal="exactly one")
    return functions[0]


@dataclass(slots=True)
class _Header:
    """What stands before the body of a function."""

    origin: Origin | None
    attrs: dict[str, object]
    rows: dict[Buffer, RowAccess]
    scratch: Buffer | None


class _Parser:
    def __init__(self, lines: Sequence[Line]) -> None:
        self.lines = lines
        self.position = 0
        self.inside: dict[PrimFunc, Symbols] = {}
        self.externs: dict[str, ExternFunction] = {}

    # --- lines ---

    def line_at(self, depth: int) -> Line | None:
        """The next line if it belongs to the block of this depth."""
        if self.position >= len(self.lines):
            return None
        line = self.lines[self.position]
        if line.depth > depth:
            raise TirError("unexpected indentation", where=f"line {line.number}")
        return line if line.depth == depth else None

    def starts_with(self, depth: int, word: str) -> Line | None:
        line = self.line_at(depth)
        if line is None or line.tokens[0].text != word:
            return None
        if line.tokens[0].kind is not TokenKind.NAME or line.is_store:
            return None  # the word is the name of a buffer
        self.position += 1
        return line

    # --- modules and functions ---

    def module(self) -> tuple[PrimFunc, ...]:
        symbols: Symbols = ChainMap()
        functions: list[PrimFunc] = []
        while line := self.line_at(0):
            self.position += 1
            cursor = Cursor(line, symbols)
            if cursor.accept("constant"):
                buffer = self.constant(cursor)
                symbols[buffer.name] = buffer
                continue
            if cursor.accept("extern"):
                self.extern(cursor, symbols)
                continue
            exported = cursor.accept("export")
            is_kernel = cursor.accept("meaning")
            if not is_kernel:
                cursor.expect("func")
            func = self.function(cursor, symbols, exported)
            if is_kernel:
                symbols[func.name] = func
            else:
                functions.append(func)
        return tuple(functions)

    def function(self, cursor: Cursor, outer: Symbols, exported: bool) -> PrimFunc:
        name = cursor.name()
        symbols = outer.new_child()
        params = self.parameters(cursor, symbols)
        cursor.end()
        header = self.header(symbols)
        body = self.block(1, symbols)
        func = PrimFunc(
            name,
            params,
            body,
            header.origin,
            exported,
            MappingProxyType(header.attrs),
            MappingProxyType(header.rows),
            header.scratch,
        )
        self.inside[func] = symbols
        return func

    def extern(self, cursor: Cursor, outer: Symbols) -> None:
        """A declaration: what its function means in Python and its C files are not in the text."""
        name = cursor.name()
        params = self.parameters(cursor, outer.new_child())
        used: list[tuple[Buffer, ...]] = []
        for keyword in ("reads", "writes"):
            buffers: list[Buffer] = []
            if cursor.accept(keyword):
                buffers.append(cursor.buffer())
                while cursor.accept(","):
                    buffers.append(cursor.buffer())
            used.append(tuple(buffers))
        status = cursor.accept("status")
        cursor.end()
        reads, writes = used
        self.externs[name] = ExternFunction(name, params, reads, writes, returns_status=status)

    def parameters(self, cursor: Cursor, symbols: Symbols) -> tuple[Param, ...]:
        # A shape may name a variable that is listed later: variables are read first.
        start, cursor.symbols = cursor.position, symbols
        variables = [p for p in self.parameter_list(cursor, None) if isinstance(p, Var)]
        symbols.update({v.name: v for v in variables})
        cursor.position = start
        params = self.parameter_list(cursor, variables)
        symbols.update({p.name: p for p in params})
        return params

    def parameter_list(self, cursor: Cursor, variables: list[Var] | None) -> tuple[Param, ...]:
        """The parameters; with the variables known, else with buffers of no shape."""
        params: list[Param] = []
        known = iter(variables or ())
        cursor.expect("(")
        while not cursor.accept(")"):
            if params:
                cursor.expect(",")
            tokens, at = cursor.line.tokens, cursor.position
            if at + 3 >= len(tokens) or tokens[at + 3].text != "[":
                var = self.declaration(cursor)
                params.append(next(known, var))
            elif variables is None:
                params.append(self.buffer_skipped(cursor))
            else:
                params.append(self.buffer(cursor, Scope.PARAMETER))
        cursor.expect(":")
        return tuple(params)

    def buffer_skipped(self, cursor: Cursor) -> Buffer:
        """Passes over a declaration whose shape cannot be resolved yet."""
        name = cursor.name()
        cursor.expect(":")
        dtype = cursor.dtype()
        while not cursor.accept("]"):
            if cursor.next().kind is TokenKind.END:
                raise cursor.error("expected ']'")
        self.buffer_suffix(cursor)
        return Buffer(name, (), dtype)

    def header(self, symbols: Symbols) -> _Header:
        header = _Header(None, {}, {}, None)
        if line := self.starts_with(1, "origin"):
            cursor = Cursor(line, ChainMap())
            cursor.expect("origin")
            operator, node = json.loads(cursor.string()), json.loads(cursor.string())
            index, macs, executed = (cursor.integer() for _ in range(3))
            again = cursor.integer() if cursor.accept("again") else 0
            partial = cursor.accept("partial")
            facts: list[str] = []
            while fact := self.starts_with(1, "fact"):
                facts.append(json.loads(fact.tokens[1].text))
            header.origin = Origin(
                operator, node, index, tuple(facts), macs, executed, again, partial
            )
        while line := self.starts_with(1, "rows"):
            cursor = Cursor(line, symbols)
            cursor.expect("rows")
            buffer = cursor.buffer()
            stride, offset, extent, height = (cursor.integer() for _ in range(4))
            header.rows[buffer] = RowAccess(stride, offset, extent, height, cursor.accept("adds"))
        if line := self.starts_with(1, "scratch"):
            cursor = Cursor(line, symbols)
            cursor.expect("scratch")
            header.scratch = cursor.buffer()
        while line := self.starts_with(1, "attr"):
            key, _, value = line.text.removeprefix("attr ").partition(" = ")
            header.attrs[json.loads(key)] = ast.literal_eval(value)
        return header

    # --- declarations ---

    def declaration(self, cursor: Cursor) -> Var:
        name = cursor.name()
        cursor.expect(":")
        dtype = cursor.dtype()
        low = high = None
        if cursor.at("in") and not cursor.is_followed_by("range"):
            cursor.next()
            low = None if cursor.accept("*") else cursor.integer()
            cursor.expect("..")
            high = None if cursor.accept("*") else cursor.integer()
        return Var(name, dtype, low, high)

    def buffer(self, cursor: Cursor, scope: Scope) -> Buffer:
        name = cursor.name()
        cursor.expect(":")
        dtype = cursor.dtype()
        cursor.expect("[")
        shape: list[Dim] = []
        while not cursor.accept("]"):
            if shape:
                cursor.expect(",")
            number = cursor.peek().kind is TokenKind.NUMBER
            shape.append(cursor.integer() if number else cursor.variable())
        alignment, written_scope = self.buffer_suffix(cursor)
        return Buffer(name, tuple(shape), dtype, written_scope or scope, None, alignment)

    def buffer_suffix(self, cursor: Cursor) -> tuple[int, Scope | None]:
        alignment = cursor.integer() if cursor.accept("align") else 1
        for scope in Scope:
            if cursor.accept(scope.value):
                return alignment, scope
        return alignment, None

    def constant(self, cursor: Cursor) -> Buffer:
        buffer = self.buffer(cursor, Scope.CONSTANT)
        if not cursor.accept("="):
            return buffer
        if cursor.accept("["):
            values: Array = np.array(self.elements(cursor), dtype=buffer.dtype.value)
        else:
            data = bytes.fromhex(cursor.string()[1:-1])
            little_endian = np.dtype(buffer.dtype.value).newbyteorder("<")
            values = np.frombuffer(data, little_endian).astype(buffer.dtype.value)
        shape = tuple(d for d in buffer.shape if isinstance(d, int))
        cursor.end()
        return replace(buffer, data=values.reshape(shape))

    def elements(self, cursor: Cursor) -> list[Any]:
        literals = cursor.exprs("]")
        return [getattr(e, "value", None) for e in literals]

    # --- statements ---

    def block(self, depth: int, symbols: Symbols) -> Stmt:
        statements: list[Stmt] = []
        while line := self.line_at(depth):
            self.position += 1
            cursor = Cursor(line, symbols)
            if cursor.at("let") or cursor.at("alloc"):
                statements.append(self.definition(cursor, depth, symbols))
                break
            statements.append(self.statement(cursor, depth, symbols))
        if not statements:
            raise TirError(
                "an indented block is missing",
                where=f"line {self.lines[self.position - 1].number}",
            )
        return seq(statements)

    def definition(self, cursor: Cursor, depth: int, symbols: Symbols) -> Stmt:
        """A Let or an Allocate: the rest of the block is its body."""
        inner = symbols.new_child()
        if cursor.accept("alloc"):
            buffers = [self.allocation(cursor, inner)]
            while (line := self.line_at(depth)) and Cursor(line, inner).at("alloc"):
                self.position += 1
                cursor = Cursor(line, inner)
                cursor.expect("alloc")
                buffers.append(self.allocation(cursor, inner))
            return allocated(buffers, self.rest(depth, inner))
        cursor.expect("let")
        var = self.declaration(cursor)
        cursor.expect("=")
        value = cursor.expr()
        cursor.end()
        inner[var.name] = var
        return Let(var, value, self.rest(depth, inner))

    def allocation(self, cursor: Cursor, symbols: Symbols) -> Buffer:
        buffer = self.buffer(cursor, Scope.LOCAL)
        cursor.end()
        symbols[buffer.name] = buffer
        return buffer

    def rest(self, depth: int, symbols: Symbols) -> Stmt:
        return self.block(depth, symbols) if self.line_at(depth) else Seq(())

    def statement(self, cursor: Cursor, depth: int, symbols: Symbols) -> Stmt:
        if cursor.accept("pass"):
            cursor.end()
            return Seq(())
        if cursor.accept("block"):
            cursor.expect(":")
            return self.block(depth + 1, symbols.new_child())
        if cursor.accept("for"):
            return self.loop(cursor, depth, symbols)
        if cursor.accept("if"):
            condition = cursor.expr()
            cursor.expect(":")
            then = self.block(depth + 1, symbols.new_child())
            otherwise = None
            if self.starts_with(depth, "else"):
                otherwise = self.block(depth + 1, symbols.new_child())
            return If(condition, then, otherwise)
        if cursor.accept("invoke"):
            function = cursor.name()
            return Invoke(function, self.arguments(cursor, self.view))
        if cursor.accept("extern"):
            name = cursor.name()
            if name not in self.externs:
                raise cursor.error(f"no extern '{name}' is declared")
            return ExternCall(self.externs[name], self.arguments(cursor, self.pointer))
        if cursor.accept("call"):
            return self.kernel_call(cursor, depth)
        return self.store(cursor)

    def store(self, cursor: Cursor) -> Stmt:
        buffer = cursor.buffer()
        cursor.expect("[")
        indices = cursor.exprs("]")
        cursor.expect("=")
        value = cursor.expr()
        cursor.end()
        return Store(buffer, indices, value)

    def loop(self, cursor: Cursor, depth: int, symbols: Symbols) -> Stmt:
        start = cursor.position
        name = cursor.name()
        var = Var(name)
        if cursor.at(":"):
            cursor.position = start
            var = self.declaration(cursor)
        cursor.expect("in")
        if cursor.next().text != "range":
            raise cursor.error("expected 'range'")
        cursor.expect("(")
        bounds = cursor.exprs(")")
        if len(bounds) != 2:
            raise cursor.error("range takes start and stop")
        kind = LoopKind.SERIAL
        for candidate in LoopKind:
            if cursor.accept(candidate.value):
                kind = candidate
        cursor.expect(":")
        inner = symbols.new_child()
        inner[var.name] = var
        return For(var, bounds[0], bounds[1], self.block(depth + 1, inner), kind)

    # --- calls ---

    def arguments(self, cursor: Cursor, one: Any) -> tuple[Any, ...]:
        items: list[Any] = []
        cursor.expect("(")
        while not cursor.accept(")"):
            if items:
                cursor.expect(",")
            items.append(one(cursor))
        return tuple(items)

    def view(self, cursor: Cursor) -> BufferView | Expr:
        if not cursor.at("view") or not cursor.is_followed_by("("):
            return cursor.expr()
        cursor.position += 2
        buffer = cursor.buffer()
        cursor.expect(",")
        dtype: DType = cursor.dtype()
        cursor.expect("[")
        shape: list[int] = []
        while not cursor.accept("]"):
            if shape:
                cursor.expect(",")
            shape.append(cursor.integer())
        cursor.expect(",")
        offset = cursor.integer()
        cursor.expect(")")
        return BufferView(buffer, tuple(shape), dtype, offset)

    def pointer(self, cursor: Cursor) -> BufferArgument | Expr:
        if not cursor.is_followed_by("at"):
            return cursor.expr()
        buffer = cursor.buffer()
        cursor.expect("at")
        cursor.expect("[")
        return BufferArgument(buffer, cursor.exprs("]"))

    def kernel_call(self, cursor: Cursor, depth: int) -> Stmt:
        meaning = cursor.kernel()
        args = self.arguments(cursor, self.pointer)
        contract, assembly = KernelContract((), ()), None
        if not cursor.accept(":"):
            cursor.end()
            return KernelCall(meaning, args, contract, assembly)
        while line := self.line_at(depth + 1):
            self.position += 1
            clause = Cursor(line, self.inside[meaning])
            if clause.accept("assembly"):
                assembly = json.loads(clause.string())
            else:
                contract = self.clause(clause, contract)
            clause.end()
        return KernelCall(meaning, args, contract, assembly)

    def clause(self, cursor: Cursor, contract: KernelContract) -> KernelContract:
        if cursor.accept("reads"):
            return replace(contract, reads=(*contract.reads, self.region(cursor)))
        if cursor.accept("writes"):
            return replace(contract, writes=(*contract.writes, self.region(cursor)))
        if cursor.accept("requires"):
            return replace(contract, preconditions=(*contract.preconditions, cursor.expr()))
        if cursor.accept("alignment"):
            return replace(contract, alignment=cursor.integer())
        if cursor.accept("scratch"):
            return replace(contract, scratch_bytes=cursor.integer())
        cursor.expect("stack")
        return replace(contract, stack_bytes=cursor.integer())

    def region(self, cursor: Cursor) -> Region:
        buffer = cursor.buffer()
        cursor.expect("[")
        start: list[Expr] = []
        extent: list[int] = []
        while not cursor.accept("]"):
            if start:
                cursor.expect(",")
            start.append(cursor.expr())
            cursor.expect("+:")
            extent.append(cursor.integer())
        return Region(buffer, tuple(start), tuple(extent))
