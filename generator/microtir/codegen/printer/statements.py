"""Prints TIR statements as lines of C."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from types import MappingProxyType

from microtir.codegen.flash import reader_names, reads_from_flash
from microtir.codegen.printer.annotations import counted, loop_lines, split_lines
from microtir.codegen.printer.c_types import C_TYPES, is_promoted
from microtir.codegen.printer.expressions import ExpressionPrinter, Requirements
from microtir.codegen.printer.layout import indent
from microtir.codegen.printer.names import ScopedNames
from microtir.codegen.program import EXTERN_STATUS, CProgram
from microtir.config.enums import Annotations
from microtir.dtype import DType
from microtir.errors import UsageError
from microtir.tir import build, ir
from microtir.tir.analysis.bounds import Bounds
from microtir.tir.analysis.interval import Interval
from microtir.tir.analysis.long_products import has_short_products, named_upper_word
from microtir.tir.analysis.masks import takes_masks
from microtir.tir.visitor import buffers_read, walk

_COMPOUND: Mapping[ir.BinaryOp, str] = MappingProxyType({
    ir.BinaryOp.ADD: "+=",
    ir.BinaryOp.SUB: "-=",
    ir.BinaryOp.MUL: "*=",
})  # fmt: skip


class StatementPrinter:
    """Prints the body of one function.

    Args:
        program: the other functions, and the names of constants.
        function: whose parameters have been defined in `names` by the caller.
        names: starts as the scope of the parameters.
        requirements: grows by what the text needs from the file.
    """

    def __init__(
        self,
        program: CProgram,
        function: ir.PrimFunc,
        names: ScopedNames,
        requirements: Requirements,
    ) -> None:
        self.program = program
        self.names = names
        self._bounds = Bounds()
        self._is_annotated = program.config.annotations is Annotations.ACSL
        self._locals: frozenset[ir.Buffer] = frozenset()  # that live here
        self._read = frozenset(buffers_read(function))
        config, target = program.config, program.config.primary_target()
        self._parted = has_short_products(target)
        self.expressions = ExpressionPrinter(
            names, requirements, self._bounds, reader_names(program),
            data=program.data if config.constant_time and takes_masks(target) else None,
            parted=self._parted,
        )  # fmt: skip
        names.see(program.array_names)

    def lines(self, s: ir.Stmt) -> list[str]:
        match s:
            case ir.Store():
                return [self._store(s)]
            case ir.Seq(statements):
                return [line for inner in statements for line in self.lines(inner)]
            case ir.For():
                return self._for(s)
            case ir.If():
                return self._if(s)
            case ir.Let():
                return self._let(s)
            case ir.Allocate(buffer, body):
                return self._allocate(buffer, body)
            case ir.Invoke(function, args):
                callee = self.program.callee(function)
                call = self._call(callee, args)
                if self.program.takes_devices(callee):
                    return self._passed_on(call)
                return self._checked(call, callee in self.program.fallible)
            case ir.KernelCall(meaning, args):
                return [f"{self._call(meaning, args)};"]
            case ir.ExternCall(extern, args):
                call = self._extern_call(extern, args)
                if extern.device is not None:
                    return self._passed_on(call)
                return self._checked(call, extern.returns_status)

    def _store(self, s: ir.Store) -> str:
        target = self.expressions.element(s.buffer, s.indices)
        match s.value:
            case ir.Binary(op, ir.Load(buffer, indices), b) if (
                op in _COMPOUND
                and buffer is s.buffer
                and indices == s.indices
                and not is_promoted(buffer.dtype)
            ):
                return self._update(target, op, b)
            case _:
                return f"{target} = {self.expressions.value(s.value)};"

    def _update(self, target: str, op: ir.BinaryOp, b: ir.Expr) -> str:
        match b:
            case ir.IntImm(value, dtype) if dtype.min < value < 0 and op is ir.BinaryOp.ADD:
                return f"{target} -= {self.expressions.value(ir.IntImm(-value, dtype))};"
            case ir.FloatImm(value, dtype) if value < 0.0 and op is ir.BinaryOp.ADD:
                return f"{target} -= {self.expressions.value(ir.FloatImm(-value, dtype))};"
            case _:
                return f"{target} {_COMPOUND[op]} {self.expressions.value(b)};"

    def _for(self, s: ir.For) -> list[str]:
        start = self.expressions.value(s.start)
        stop = self.expressions.expr(s.stop).text
        before: list[str] = []
        if _may_change(s.stop):
            # TIR evaluates the bound once, C before every iteration.
            name = self.names.reserve(f"{s.var.name}_stop")
            before = [f"const {C_TYPES[s.var.dtype]} {name} = {self.expressions.value(s.stop)};"]
            stop = name
        first, last = self._bounds.of(s.start).low, self._bounds.of(s.stop).high - 1
        self._bounds.ranges[s.var] = Interval(first, max(first, last))
        with self.names.block():
            name = self.names.define(s.var)
            outside = self._locals
            body = self.lines(s.body)
            if not body:
                return []
            if self._is_annotated:
                before += loop_lines(s, self.names, self._bounds, outside)
        c_type = C_TYPES[s.var.dtype]
        head = f"for ({c_type} {name} = {start}; {name} < {stop}; {name}++) {{"
        return [*before, head, *indent(body), "}"]

    def _if(self, s: ir.If) -> list[str]:
        head = f"if ({self.expressions.condition(s.condition)}) {{"
        with self.names.block():
            then = self.lines(s.then)
        with self.names.block():
            otherwise = [] if s.otherwise is None else self.lines(s.otherwise)
        if not otherwise:
            return [head, *indent(then), "}"]
        if isinstance(s.otherwise, ir.If):
            return [head, *indent(then), f"}} else {otherwise[0]}", *otherwise[1:]]
        return [head, *indent(then), "} else {", *indent(otherwise), "}"]

    def _let(self, s: ir.Let) -> list[str]:
        s = named_upper_word(s) if self._parted else s
        value = self.expressions.value(s.value)
        number = counted(s) if self._is_annotated else None
        operand = "" if number is None else self.expressions.expr(number).text
        name = self.names.define(s.var)
        if not s.value.dtype.is_float:
            self._bounds.ranges[s.var] = self._bounds.of(s.value)
        body = self.lines(s.body)
        unused = [] if self.names.is_used(s.var) else [f"(void){name};"]
        line = f"const {C_TYPES[s.var.dtype]} {name} = {value};"
        if not self._is_annotated:
            return [line, *unused, *body]
        cases, parts = split_lines(s, operand, name, self._bounds)
        return [*cases, line, *unused, *parts, *body]

    def _allocate(self, buffer: ir.Buffer, body: ir.Stmt) -> list[str]:
        c_type = C_TYPES[buffer.dtype]
        name = self.names.define(buffer)
        if buffer.scope is ir.Scope.LOCAL:
            self._locals |= {buffer}
        # A variable that is only ever stored to warns.
        unused = [] if buffer in self._read else [f"(void){name};"]
        if buffer.shape:
            return [self._array(buffer, f"{c_type} {name}"), *unused, *self.lines(body)]
        first, rest = _split_first(body)
        if (
            isinstance(first, ir.Store)
            and first.buffer is buffer
            and not _reads(first.value, buffer)
        ):
            value = self.expressions.value(first.value)
            return [f"{c_type} {name} = {value};", *unused, *self.lines(rest)]
        return [f"{c_type} {name};", *unused, *self.lines(body)]

    def _array(self, buffer: ir.Buffer, declaration: str) -> str:
        extents = [extent for extent in buffer.shape if isinstance(extent, int)]
        assert len(extents) == len(buffer.shape), f"{buffer.name}: a local array has a fixed size"
        aligned = ""
        if buffer.alignment > buffer.dtype.bytes:
            aligned = f"{self.program.macro}_ALIGNED({buffer.alignment}) "
        return f"{aligned}{declaration}[{math.prod(extents)}];"

    def _call(
        self, callee: ir.PrimFunc, args: Sequence[ir.BufferView | ir.BufferArgument | ir.Expr]
    ) -> str:
        written = self.program.written[callee]
        texts = [
            self.argument(argument, parameter in written)
            for parameter, argument in zip(callee.params, args, strict=True)
        ]
        if self.program.takes_constants(callee):
            texts.append(self.program.given_constants.name)
        if self.program.takes_devices(callee):
            texts.append("devices")
        return f"{self.program.names[callee]}({', '.join(texts)})"

    def _extern_call(
        self, extern: ir.ExternFunction, args: Sequence[ir.BufferArgument | ir.Expr]
    ) -> str:
        texts = [
            self.argument(argument, parameter in extern.writes)
            for parameter, argument in zip(extern.params, args, strict=True)
        ]
        if extern.device is not None:
            texts.append(f"devices->{extern.device.name}")
        return f"{extern.name}({', '.join(texts)})"

    def _passed_on(self, call: str) -> list[str]:
        """Return a call as a statement whose own status ends the function.

        A device's driver made it.
        """
        with self.names.block():
            status = self.names.reserve("status")
        body = [f"const int32_t {status} = {call};",
                f"if ({status} != 0) {{", *indent([f"return {status};"]), "}"]  # fmt: skip
        return ["{", *indent(body), "}"]

    def _checked(self, call: str, may_fail: bool) -> list[str]:
        """Return a call as a statement: one that may fail ends the function."""
        if not may_fail:
            return [f"{call};"]
        failure = f"{self.program.macro}_{EXTERN_STATUS}"
        return [f"if ({call} != 0) {{", *indent([f"return {failure};"]), "}"]

    def argument(
        self, argument: ir.BufferView | ir.BufferArgument | ir.Expr, is_written: bool
    ) -> str:
        """Return text of an argument; a pointer is to const unless the callee writes through it.

        Raises:
            UsageError: a constant is passed by pointer on a target that cannot read through it.
        """
        if isinstance(argument, ir.BufferView | ir.BufferArgument):
            self._check_pointer(argument.buffer)
        match argument:
            case ir.BufferView():
                return self.view(argument, is_written)
            case ir.BufferArgument(buffer, indices):
                if buffer.scope is ir.Scope.LOCAL and not buffer.shape:
                    return f"&{self.names.of(buffer)}"
                if build.linear_index(buffer, indices) == ir.IntImm(0):
                    return self.names.of(buffer)
                return f"&{self.expressions.element(buffer, indices)}"
            case _:
                return self.expressions.value(argument)

    def _check_pointer(self, buffer: ir.Buffer) -> None:
        if buffer.scope is ir.Scope.CONSTANT and reads_from_flash(self.program):
            raise UsageError(
                f"the constant '{buffer.name}' is passed by pointer, but an AVR cannot read its "
                "flash through pointers",
                where=self.program.name,
                fix="pass elements instead of the pointer, or choose a target other than AVR",
            )

    def view(self, view: ir.BufferView, is_written: bool) -> str:
        """Return the text of a pointer to part of a buffer, of the view's type."""
        name = self.names.of(view.buffer)
        if view.buffer.scope is ir.Scope.LOCAL and not view.buffer.shape:
            name = f"&{name}"
        if view.buffer.dtype is view.dtype:
            offset = view.byte_offset // view.dtype.bytes
            assert offset * view.dtype.bytes == view.byte_offset, "the verifier checks alignment"
            return f"&{name}[{offset}]" if offset else name
        return pointer_cast(name, view.buffer.dtype, view.dtype, view.byte_offset, not is_written)


def pointer_cast(name: str, from_: DType, to: DType, offset: int, is_const: bool) -> str:
    """Return a pointer into `name`, `offset` bytes further, as a pointer to another type."""
    const = "const " if is_const else ""
    if from_.bytes > 1:
        name = f"({const}uint8_t *){name}"
    if offset:
        name = f"({name} + {offset})"
    # By way of void: what the planner aligned may look misaligned to -Wcast-align.
    through = f"({const}void *)" if to.bytes > 1 else ""
    return f"({const}{C_TYPES[to]} *){through}{name}"


def parameter_text(
    parameter: ir.Param, name: str, is_written: bool, *, is_restrict: bool = False
) -> str:
    """Return the declaration of a parameter of a function's body.

    `is_restrict`: nothing that is written through it is read through another parameter.
    """
    if isinstance(parameter, ir.Var):
        return f"{C_TYPES[parameter.dtype]} {name}"
    const = "" if is_written else "const "
    restrict = "restrict " if is_written and is_restrict else ""
    return f"{const}{C_TYPES[parameter.dtype]} *{restrict}{name}"


def _split_first(s: ir.Stmt) -> tuple[ir.Stmt, ir.Stmt]:
    """Return the first statement to run, and the rest."""
    match s:
        case ir.Seq((first, *others)):
            inner, rest = _split_first(first)
            return inner, ir.Seq((rest, *others))
        case _:
            return s, ir.Seq(())


def _reads(e: ir.Expr, buffer: ir.Buffer) -> bool:
    return any(isinstance(node, ir.Load) and node.buffer is buffer for node in walk(e))


def _may_change(e: ir.Expr) -> bool:
    """Return whether the value depends on memory that the loop's body might write."""
    return any(
        isinstance(node, ir.Load) and node.buffer.scope is not ir.Scope.CONSTANT for node in walk(e)
    )
