"""The text form of TIR, read.  See `tir.printer` for what it looks like."""

from __future__ import annotations

import json
from collections import ChainMap
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Any

import numpy as np

from microtir.config import Feature
from microtir.dtype import DType
from microtir.errors import TirError
from microtir.tir import ir
from microtir.tir.build import seq
from microtir.tir.function import (
    LayerName,
    MicroKernel,
    NativeBody,
    NativeForm,
    Origin,
    PlaneRows,
    RowAccess,
    RowPort,
    RowRange,
)
from microtir.tir.lexer import SourceLine, TokenKind, lines_of
from microtir.tir.parser_expr import Cursor, Symbols
from microtir.tir.visitor import allocated


def parse(text: str) -> tuple[ir.PrimFunc, ...]:
    """Parse the functions of a text, without the kernels and externs that they call.

    Raises:
        TirError: the text is malformed; the error names the line.
    """
    return _Parser(lines_of(text)).module()


def parse_function(text: str) -> ir.PrimFunc:
    """Parse the only function of a text; TirError if there is not exactly one."""
    functions = parse(text)
    if len(functions) != 1:
        raise TirError(f"the text contains {len(functions)} functions", legal="exactly one")
    return functions[0]


@dataclass(slots=True)
class _Header:
    """The declarations before the body of a function."""

    origin: Origin | None = None
    row_range: RowRange | None = None
    rows: dict[ir.Buffer, RowAccess] = field(default_factory=dict)
    scratch: ir.Buffer | None = None
    row_port: RowPort | None = None
    plane_rows: PlaneRows | None = None
    images: int = 1
    kernel: MicroKernel | None = None


class _Parser:
    def __init__(self, lines: Sequence[SourceLine]) -> None:
        self.lines = lines
        self.position = 0
        self.inside: dict[ir.PrimFunc, Symbols] = {}
        self.externs: dict[str, ir.ExternFunction] = {}

    # --- lines ---

    def line_at(self, depth: int) -> SourceLine | None:
        """Return the next line if it belongs to the block of this depth."""
        if self.position >= len(self.lines):
            return None
        line = self.lines[self.position]
        if line.depth > depth:
            raise TirError("unexpected indentation", where=f"line {line.number}")
        return line if line.depth == depth else None

    def starts_with(self, depth: int, word: str) -> SourceLine | None:
        line = self.line_at(depth)
        if line is None or line.tokens[0].text != word:
            return None
        if line.tokens[0].kind is not TokenKind.NAME or line.is_store:
            return None  # the word is the name of a buffer
        self.position += 1
        return line

    # --- modules and functions ---

    def module(self) -> tuple[ir.PrimFunc, ...]:
        symbols: Symbols = ChainMap()
        functions: list[ir.PrimFunc] = []
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

    def function(self, cursor: Cursor, outer: Symbols, exported: bool) -> ir.PrimFunc:
        name = cursor.name()
        symbols = outer.new_child()
        params = self.parameters(cursor, symbols)
        cursor.end()
        header = self.header(symbols)
        body = self.block(1, symbols)
        func = ir.PrimFunc(
            name,
            params,
            body,
            header.origin,
            exported,
            header.row_range,
            MappingProxyType(header.rows),
            header.scratch,
            header.row_port,
            header.plane_rows,
            header.kernel,
            header.images,
        )
        self.inside[func] = symbols
        return func

    def extern(self, cursor: Cursor, outer: Symbols) -> None:
        """Parse a declaration; its meaning in Python and its C files are not in the text."""
        name = cursor.name()
        params = self.parameters(cursor, outer.new_child())
        used: list[tuple[ir.Buffer, ...]] = []
        for keyword in ("reads", "writes"):
            buffers: list[ir.Buffer] = []
            if cursor.accept(keyword):
                buffers.append(cursor.buffer())
                while cursor.accept(","):
                    buffers.append(cursor.buffer())
            used.append(tuple(buffers))
        status = cursor.accept("status")
        cursor.end()
        reads, writes = used
        self.externs[name] = ir.ExternFunction(name, params, reads, writes, returns_status=status)

    def parameters(self, cursor: Cursor, symbols: Symbols) -> tuple[ir.Param, ...]:
        # A shape may name a variable that is listed later: variables are read first.
        start, cursor.symbols = cursor.position, symbols
        variables = [p for p in self.parameter_list(cursor, None) if isinstance(p, ir.Var)]
        symbols.update({v.name: v for v in variables})
        cursor.position = start
        params = self.parameter_list(cursor, variables)
        symbols.update({p.name: p for p in params})
        return params

    def parameter_list(
        self, cursor: Cursor, variables: list[ir.Var] | None
    ) -> tuple[ir.Param, ...]:
        """Parse parameters; with the variables known, else with buffers of no shape."""
        params: list[ir.Param] = []
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
                params.append(self.buffer(cursor, ir.Scope.PARAMETER))
        cursor.expect(":")
        return tuple(params)

    def buffer_skipped(self, cursor: Cursor) -> ir.Buffer:
        """Pass over a declaration whose shape cannot be resolved yet."""
        name = cursor.name()
        cursor.expect(":")
        dtype = cursor.dtype()
        while not cursor.accept("]"):
            if cursor.next().kind is TokenKind.END:
                raise cursor.error("expected ']'")
        self.buffer_suffix(cursor)
        return ir.Buffer(name, (), dtype)

    def header(self, symbols: Symbols) -> _Header:
        header = _Header(self.origin())
        if cursor := self.clause_of(1, "row_range", symbols):
            header.row_range = RowRange(cursor.variable(), cursor.variable())
        while cursor := self.clause_of(1, "rows", symbols):
            buffer = cursor.buffer()
            stride, offset, extent, height = (cursor.integer() for _ in range(4))
            header.rows[buffer] = RowAccess(stride, offset, extent, height, cursor.accept("adds"))
        if cursor := self.clause_of(1, "scratch", symbols):
            header.scratch = cursor.buffer()
        if cursor := self.clause_of(1, "row_port", symbols):
            header.row_port = cursor.member(RowPort)
        if cursor := self.clause_of(1, "plane_rows", symbols):
            header.plane_rows = PlaneRows(cursor.integer(), cursor.integer(), cursor.dtype())
        if cursor := self.clause_of(1, "images", symbols):
            header.images = cursor.integer()
        if cursor := self.clause_of(1, "kernel", symbols):
            noinline, merges = cursor.accept("noinline"), cursor.accept("merges")
            cursor.end()
            header.kernel = MicroKernel(self.comment(), noinline, merges, self.native())
        return header

    def clause_of(self, depth: int, word: str, symbols: Symbols) -> Cursor | None:
        """Return what follows the word that the next line begins with, if that is it."""
        line = self.starts_with(depth, word)
        if line is None:
            return None
        cursor = Cursor(line, symbols)
        cursor.expect(word)
        return cursor

    def origin(self) -> Origin | None:
        cursor = self.clause_of(1, "origin", ChainMap())
        if cursor is None:
            return None
        operator, node = cursor.text(), cursor.text()
        index, macs, executed = (cursor.integer() for _ in range(3))
        again = cursor.integer() if cursor.accept("again") else 0
        partial = cursor.accept("partial")
        named = self.clause_of(1, "layer", ChainMap())
        name = None if named is None else LayerName(named.text(), named.text())
        facts: list[str] = []
        while fact := self.clause_of(1, "fact", ChainMap()):
            facts.append(fact.text())
        return Origin(operator, node, index, tuple(facts), macs, executed, again, partial, name)

    def comment(self) -> tuple[str, ...]:
        lines: list[str] = []
        while cursor := self.clause_of(2, "comment", ChainMap()):
            lines.append(cursor.text())
        return tuple(lines)

    def native(self) -> NativeBody | None:
        for form in NativeForm:
            if cursor := self.clause_of(2, form.value, ChainMap()):
                needs, values = cursor.member(Feature, cursor.text()), cursor.json(cursor.text())
                if not isinstance(values, dict):
                    raise cursor.error("expected values by name")
                return NativeBody(form, needs, MappingProxyType(values))
        return None

    # --- declarations ---

    def declaration(self, cursor: Cursor) -> ir.Var:
        name = cursor.name()
        cursor.expect(":")
        dtype = cursor.dtype()
        low = high = None
        if cursor.at("in") and not cursor.is_followed_by("range"):
            cursor.next()
            low = None if cursor.accept("*") else cursor.integer()
            cursor.expect("..")
            high = None if cursor.accept("*") else cursor.integer()
        return ir.Var(name, dtype, low, high)

    def buffer(self, cursor: Cursor, scope: ir.Scope) -> ir.Buffer:
        name = cursor.name()
        cursor.expect(":")
        dtype = cursor.dtype()
        cursor.expect("[")
        shape: list[ir.Dim] = []
        while not cursor.accept("]"):
            if shape:
                cursor.expect(",")
            number = cursor.peek().kind is TokenKind.NUMBER
            shape.append(cursor.integer() if number else cursor.variable())
        alignment, written_scope = self.buffer_suffix(cursor)
        return ir.Buffer(name, tuple(shape), dtype, written_scope or scope, None, alignment)

    def buffer_suffix(self, cursor: Cursor) -> tuple[int, ir.Scope | None]:
        alignment = cursor.integer() if cursor.accept("align") else 1
        for scope in ir.Scope:
            if cursor.accept(scope.value):
                return alignment, scope
        return alignment, None

    def constant(self, cursor: Cursor) -> ir.Buffer:
        buffer = self.buffer(cursor, ir.Scope.CONSTANT)
        if not cursor.accept("="):
            return buffer
        if cursor.accept("["):
            values: ir.Array = np.array(self.elements(cursor), dtype=buffer.dtype.value)
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

    def block(self, depth: int, symbols: Symbols) -> ir.Stmt:
        statements: list[ir.Stmt] = []
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

    def definition(self, cursor: Cursor, depth: int, symbols: Symbols) -> ir.Stmt:
        """Parse a Let or an Allocate, whose body is the rest of the block."""
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
        return ir.Let(var, value, self.rest(depth, inner))

    def allocation(self, cursor: Cursor, symbols: Symbols) -> ir.Buffer:
        buffer = self.buffer(cursor, ir.Scope.LOCAL)
        cursor.end()
        symbols[buffer.name] = buffer
        return buffer

    def rest(self, depth: int, symbols: Symbols) -> ir.Stmt:
        return self.block(depth, symbols) if self.line_at(depth) else ir.Seq(())

    def statement(self, cursor: Cursor, depth: int, symbols: Symbols) -> ir.Stmt:
        if cursor.accept("pass"):
            cursor.end()
            return ir.Seq(())
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
            return ir.If(condition, then, otherwise)
        if cursor.accept("invoke"):
            function = cursor.name()
            return ir.Invoke(function, self.arguments(cursor, self.view))
        if cursor.accept("extern"):
            name = cursor.name()
            if name not in self.externs:
                raise cursor.error(f"no extern '{name}' is declared")
            return ir.ExternCall(self.externs[name], self.arguments(cursor, self.pointer))
        if cursor.accept("call"):
            return self.kernel_call(cursor, depth)
        return self.store(cursor)

    def store(self, cursor: Cursor) -> ir.Stmt:
        buffer = cursor.buffer()
        cursor.expect("[")
        indices = cursor.exprs("]")
        cursor.expect("=")
        value = cursor.expr()
        cursor.end()
        return ir.Store(buffer, indices, value)

    def loop(self, cursor: Cursor, depth: int, symbols: Symbols) -> ir.Stmt:
        start = cursor.position
        name = cursor.name()
        var = ir.Var(name)
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
        kind = ir.LoopKind.SERIAL
        for candidate in ir.LoopKind:
            if cursor.accept(candidate.value):
                kind = candidate
        cursor.expect(":")
        inner = symbols.new_child()
        inner[var.name] = var
        return ir.For(var, bounds[0], bounds[1], self.block(depth + 1, inner), kind)

    # --- calls ---

    def arguments(self, cursor: Cursor, one: Any) -> tuple[Any, ...]:
        items: list[Any] = []
        cursor.expect("(")
        while not cursor.accept(")"):
            if items:
                cursor.expect(",")
            items.append(one(cursor))
        return tuple(items)

    def view(self, cursor: Cursor) -> ir.BufferView | ir.Expr:
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
        return ir.BufferView(buffer, tuple(shape), dtype, offset)

    def pointer(self, cursor: Cursor) -> ir.BufferArgument | ir.Expr:
        if not cursor.is_followed_by("at"):
            return cursor.expr()
        buffer = cursor.buffer()
        cursor.expect("at")
        cursor.expect("[")
        return ir.BufferArgument(buffer, cursor.exprs("]"))

    def kernel_call(self, cursor: Cursor, depth: int) -> ir.Stmt:
        meaning = cursor.kernel()
        args = self.arguments(cursor, self.pointer)
        contract, template = ir.KernelContract((), ()), None
        if not cursor.accept(":"):
            cursor.end()
            return ir.KernelCall(meaning, args, contract, template)
        while line := self.line_at(depth + 1):
            self.position += 1
            clause = Cursor(line, self.inside[meaning])
            if clause.accept("assembly"):
                template = json.loads(clause.string())
            else:
                contract = self.clause(clause, contract)
            clause.end()
        return ir.KernelCall(meaning, args, contract, template)

    def clause(self, cursor: Cursor, contract: ir.KernelContract) -> ir.KernelContract:
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

    def region(self, cursor: Cursor) -> ir.Region:
        buffer = cursor.buffer()
        cursor.expect("[")
        start: list[ir.Expr] = []
        extent: list[int] = []
        while not cursor.accept("]"):
            if start:
                cursor.expect(",")
            start.append(cursor.expr())
            cursor.expect("+:")
            extent.append(cursor.integer())
        return ir.Region(buffer, tuple(start), tuple(extent))
