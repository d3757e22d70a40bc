"""The text form of TIR, written.  `tir.parser` reads it back; `tir.text` offers both.

    constant bias: int32[2] = [7, -9]

    extern measure(x: int8[4, 2], y: int8[4, 2]): reads x writes y status

    func layer(x: int8[4, 2], y: int8[4, 2], y0: int32 in 0..4):
      for row in range(y0, 4):
        alloc acc: int32[] local
        acc[] = bias[0]
        let scaled: int32 = cast(int32, x[row, 0]) * 3
        if scaled > 0:
          y[row, 0] = cast(int8, min(scaled + acc[], 127))

A name stands for one object: a second object of the same name gets a number.  A Let or an
Allocate holds until the end of its block; one that ends earlier is wrapped in `block:`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from microtir.dtype import DType
from microtir.support.float_text import float32_text
from microtir.tir import ir
from microtir.tir.build import seq
from microtir.tir.function import MicroKernel
from microtir.tir.visitor import allocations, calls_of, walk

# Binding strength of the infix operators, weakest first.  Comparisons do not associate.
PRECEDENCE: tuple[tuple[ir.BinaryOp, ...], ...] = (
    (ir.BinaryOp.OR,),
    (ir.BinaryOp.AND,),
    (
        ir.BinaryOp.EQ,
        ir.BinaryOp.NE,
        ir.BinaryOp.LT,
        ir.BinaryOp.LE,
        ir.BinaryOp.GT,
        ir.BinaryOp.GE,
    ),
    (ir.BinaryOp.BIT_OR,),
    (ir.BinaryOp.BIT_XOR,),
    (ir.BinaryOp.BIT_AND,),
    (ir.BinaryOp.SHIFT_LEFT, ir.BinaryOp.SHIFT_RIGHT),
    (ir.BinaryOp.ADD, ir.BinaryOp.SUB),
    (ir.BinaryOp.MUL, ir.BinaryOp.DIV),
)
COMPARISON_LEVEL = 2
UNARY_LEVEL = len(PRECEDENCE)
PRIMARY_LEVEL = UNARY_LEVEL + 1
LEVELS = {op: level for level, ops in enumerate(PRECEDENCE) for op in ops}
FUNCTION_OPS = (
    ir.BinaryOp.FLOORDIV,
    ir.BinaryOp.FLOORMOD,
    ir.BinaryOp.TRUNCDIV,
    ir.BinaryOp.MIN,
    ir.BinaryOp.MAX,
)
KEYWORDS = frozenset({
    "alloc", "and", "at", "block", "call", "else", "extern", "false", "for", "if", "in", "inf",
    "invoke", "let", "nan", "not", "or", "pass", "true",
})  # fmt: skip
_PLAIN_NAME = re.compile(r"[A-Za-z_]\w*", re.ASCII)
_LIST_LIMIT = 16  # elements of a constant that are printed as numbers; more are printed as bytes


class TextNames:
    """Gives every Var, Buffer and kernel of a text its own name."""

    def __init__(self, outer: TextNames | None = None) -> None:
        self._outer = outer
        self._names: dict[ir.Var | ir.Buffer | ir.PrimFunc, str] = {}
        self._taken: set[str] = set()

    def __call__(self, item: ir.Var | ir.Buffer | ir.PrimFunc) -> str:
        """Return the quoted name of an object; assigned when the object is first met."""
        name = self._find(item)
        if name is None:
            name = self._free(item.name)
            self._names[item] = name
            self._taken.add(name)
        if _PLAIN_NAME.fullmatch(name) and name not in KEYWORDS:
            return name
        return f"`{name}`"

    def _find(self, item: ir.Var | ir.Buffer | ir.PrimFunc) -> str | None:
        if item in self._names:
            return self._names[item]
        return self._outer._find(item) if self._outer else None

    def _is_taken(self, name: str) -> bool:
        return name in self._taken or (self._outer is not None and self._outer._is_taken(name))

    def _free(self, wanted: str) -> str:
        name, number = wanted, 0
        while self._is_taken(name):
            number += 1
            name = f"{wanted}_{number}"
        return name


# --- expressions --------------------------------------------------------------------------------


class ExprPrinter:
    """Prints expressions with the fewest parentheses that keep their tree."""

    def __init__(self, names: TextNames) -> None:
        self.names = names

    def __call__(self, e: ir.Expr) -> str:
        return self._at(e, 0)

    def all(self, items: Sequence[ir.Expr]) -> str:
        return ", ".join(self(e) for e in items)

    def _at(self, e: ir.Expr, level: int) -> str:
        """Return the text of `e` where an operator of binding strength `level` holds it."""
        text, own = self._text(e)
        return text if own >= level else f"({text})"

    def _text(self, e: ir.Expr) -> tuple[str, int]:
        match e:
            case ir.Var():
                return self.names(e), PRIMARY_LEVEL
            case ir.IntImm(value, dtype):
                return int_text(value, dtype), PRIMARY_LEVEL
            case ir.FloatImm(value, dtype):
                return float_text(value, dtype), PRIMARY_LEVEL
            case ir.Binary(op, a, b) if op in LEVELS:
                own = LEVELS[op]
                left = own + 1 if own == COMPARISON_LEVEL else own
                return f"{self._at(a, left)} {op.value} {self._at(b, own + 1)}", own
            case ir.Binary(op, a, b):
                return f"{op.value}({self(a)}, {self(b)})", PRIMARY_LEVEL
            case ir.Unary(ir.UnaryOp.NOT, a):
                return f"not {self._at(a, UNARY_LEVEL)}", UNARY_LEVEL
            case ir.Unary(_, a):
                # -5 is a literal: the negation of the literal 5 keeps its parentheses.
                inner = f"({self(a)})" if isinstance(a, ir.IntImm | ir.FloatImm) else None
                return f"-{inner or self._at(a, PRIMARY_LEVEL)}", UNARY_LEVEL
            case ir.Cast(dtype, value):
                return f"cast({dtype.value}, {self(value)})", PRIMARY_LEVEL
            case ir.Select(c, t, o):
                return f"select({self(c)}, {self(t)}, {self(o)})", PRIMARY_LEVEL
            case ir.Load(buffer, indices):
                return f"{self.names(buffer)}[{self.all(indices)}]", PRIMARY_LEVEL
            case ir.Call(intrinsic, args):
                return f"{intrinsic.value}({self.all(args)})", PRIMARY_LEVEL


def int_text(value: int, dtype: DType) -> str:
    """Return the text of an integer literal: only INT32 goes without its type."""
    if dtype is DType.BOOL:
        return "true" if value else "false"
    return str(value) if dtype is DType.INT32 else f"{dtype.value}({value})"


def float_text(value: float, dtype: DType) -> str:
    """Return the shortest text that reads back as the same value of the type."""
    if dtype is DType.FLOAT32:
        return float32_text(value)
    return f"{dtype.value}({value!r})"


def expr_text(e: ir.Expr) -> str:
    """Return an expression for a message, where Vars of one name look alike."""
    return ExprPrinter(TextNames())(e)


def access_text(buffer: ir.Buffer, indices: Sequence[ir.Expr]) -> str:
    """Return a buffer access for a message, e.g. ``x[row, 0]``."""
    names = TextNames()
    return f"{names(buffer)}[{ExprPrinter(names).all(indices)}]"


# --- statements ---------------------------------------------------------------------------------


class _FunctionPrinter:
    def __init__(
        self, names: TextNames, kernels: Mapping[ir.PrimFunc, TextNames] | None = None
    ) -> None:
        self.names = names
        self.kernels = kernels or {}  # names inside the kernels that were printed before
        self.expr = ExprPrinter(names)
        self.lines: list[str] = []

    def function(self, func: ir.PrimFunc, name: str, keyword: str) -> str:
        params = [self.param(p) for p in func.params]
        export = "export " if func.exported else ""
        line = f"{export}{keyword} {name}({', '.join(params)}):"
        if len(line) > 100:
            line = f"{export}{keyword} {name}(\n    " + ",\n    ".join(params) + "\n):"
        self.lines.append(line)
        self._origin(func)
        if func.row_range is not None:
            ends = func.row_range.start, func.row_range.stop
            self.line(1, f"row_range {' '.join(map(self.names, ends))}")
        for buffer, r in func.rows.items():
            numbers = f"{r.stride} {r.offset} {r.extent} {r.height}"
            self.line(1, f"rows {self.names(buffer)} {numbers}{' adds' if r.adds else ''}")
        if func.scratch is not None:
            self.line(1, f"scratch {self.names(func.scratch)}")
        if func.row_port is not None:
            self.line(1, f"row_port {func.row_port.value}")
        if (planes := func.plane_rows) is not None:
            self.line(1, f"plane_rows {planes.before} {planes.width} {planes.dtype.value}")
        if func.images > 1:
            self.line(1, f"images {func.images}")
        if func.kernel is not None:
            self._kernel(func.kernel)
        self.stmt(func.body, 1)
        return "\n".join(self.lines)

    def _origin(self, func: ir.PrimFunc) -> None:
        if func.origin is None:
            return
        o = func.origin
        partial = " partial" if o.is_partial else ""
        names = f"{json.dumps(o.operator)} {json.dumps(o.node)}"
        again = f" again {o.macs_recomputed}" if o.macs_recomputed else ""
        self.line(1, f"origin {names} {o.index} {o.macs} {o.macs_executed}{again}{partial}")
        if o.name is not None:
            self.line(1, f"layer {json.dumps(o.name.layer)} {json.dumps(o.name.work)}")
        for fact in o.facts:
            self.line(1, f"fact {json.dumps(fact)}")

    def _kernel(self, kernel: MicroKernel) -> None:
        marks = f"{' noinline' if kernel.noinline else ''}{' merges' if kernel.merges else ''}"
        self.line(1, f"kernel{marks}")
        for comment in kernel.comment:
            self.line(2, f"comment {json.dumps(comment)}")
        if (native := kernel.native) is not None:
            # A text of JSON, itself a text: what templates are given has braces and other signs.
            values = json.dumps(json.dumps(dict(native.values)))
            self.line(2, f"{native.form.value} {json.dumps(native.needs.value)} {values}")

    def param(self, p: ir.Param) -> str:
        if isinstance(p, ir.Buffer):
            scope = "" if p.scope is ir.Scope.PARAMETER else f" {p.scope.value}"
            return buffer_text(p, self.names) + scope
        return self.variable(p)

    def variable(self, v: ir.Var) -> str:
        low, high = ("*" if bound is None else bound for bound in (v.low, v.high))
        limits = "" if v.low is None and v.high is None else f" in {low}..{high}"
        return f"{self.names(v)}: {v.dtype.value}{limits}"

    def line(self, depth: int, text: str) -> None:
        self.lines.append("  " * depth + text)

    def stmt(self, s: ir.Stmt, depth: int, *, last: bool = True) -> None:
        s = seq(s)  # what is nested or empty within a sequence would not read back as it was
        match s:
            case ir.Seq(()):
                if last:
                    self.line(depth, "pass")
            case ir.Seq(statements):
                for position, statement in enumerate(statements):
                    self.stmt(statement, depth, last=last and position == len(statements) - 1)
            case ir.Let() | ir.Allocate() if not last:
                self.line(depth, "block:")
                self.stmt(s, depth + 1)
            case ir.Let(var, value, body):
                self.line(depth, f"let {self.variable(var)} = {self.expr(value)}")
                self.stmt(body, depth)
            case ir.Allocate():
                buffers, inside = allocations(s)
                for buffer in buffers:
                    text = buffer_text(buffer, self.names)
                    self.line(depth, f"alloc {text} {buffer.scope.value}")
                self.stmt(inside, depth)
            case ir.For():
                self._for(s, depth)
            case ir.If(condition, then, otherwise):
                self.line(depth, f"if {self.expr(condition)}:")
                self.stmt(then, depth + 1)
                if otherwise is not None:
                    self.line(depth, "else:")
                    self.stmt(otherwise, depth + 1)
            case ir.Store(buffer, indices, value):
                target = f"{self.names(buffer)}[{self.expr.all(indices)}]"
                self.line(depth, f"{target} = {self.expr(value)}")
            case ir.Invoke(function, args):
                self.line(depth, f"invoke {_quoted(function)}({', '.join(map(self._arg, args))})")
            case ir.KernelCall():
                self._kernel_call(s, depth)
            case ir.ExternCall(extern, args):
                arguments = ", ".join(map(self._arg, args))
                self.line(depth, f"extern {_quoted(extern.name)}({arguments})")

    def _for(self, s: ir.For, depth: int) -> None:
        kind = "" if s.kind is ir.LoopKind.SERIAL else f" {s.kind.value}"
        plain = s.var.dtype is DType.INT32 and s.var.low is None and s.var.high is None
        var = self.names(s.var) if plain else self.variable(s.var)
        self.line(depth, f"for {var} in range({self.expr(s.start)}, {self.expr(s.stop)}){kind}:")
        self.stmt(s.body, depth + 1)

    def _arg(self, argument: ir.BufferView | ir.BufferArgument | ir.Expr) -> str:
        match argument:
            case ir.BufferView(buffer, shape, dtype, offset):
                shape_text = ", ".join(map(str, shape))
                return f"view({self.names(buffer)}, {dtype.value}[{shape_text}], {offset})"
            case ir.BufferArgument(buffer, indices):
                return f"{self.names(buffer)} at [{self.expr.all(indices)}]"
            case _:
                return self.expr(argument)

    def _kernel_call(self, s: ir.KernelCall, depth: int) -> None:
        clauses = list(self._clauses(s))
        end = ":" if clauses else ""
        args = ", ".join(map(self._arg, s.args))
        self.line(depth, f"call {self.names(s.meaning)}({args}){end}")
        for clause in clauses:
            self.line(depth + 1, clause)

    def _clauses(self, s: ir.KernelCall) -> Iterator[str]:
        # The contract speaks about the kernel's parameters: the names of its own text.
        names = self.kernels.get(s.meaning) or TextNames()
        contract: ir.KernelContract = s.contract
        if s.template is not None:
            yield f"assembly {json.dumps(s.template)}"
        for keyword, regions in (("reads", contract.reads), ("writes", contract.writes)):
            for region in regions:
                yield f"{keyword} {_region_text(region, names)}"
        if contract.alignment != 1:
            yield f"alignment {contract.alignment}"
        if contract.scratch_bytes:
            yield f"scratch {contract.scratch_bytes}"
        if contract.stack_bytes:
            yield f"stack {contract.stack_bytes}"
        for condition in contract.preconditions:
            yield f"requires {ExprPrinter(names)(condition)}"


def _region_text(region: ir.Region, names: TextNames) -> str:
    printer = ExprPrinter(names)
    axes = (
        f"{printer(start)} +: {extent}"
        for start, extent in zip(region.start, region.extent, strict=True)
    )
    return f"{names(region.buffer)}[{', '.join(axes)}]"


def _dim_text(dim: ir.Dim, names: TextNames) -> str:
    return names(dim) if isinstance(dim, ir.Var) else str(dim)


def _quoted(name: str) -> str:
    return name if _PLAIN_NAME.fullmatch(name) and name not in KEYWORDS else f"`{name}`"


def buffer_text(buffer: ir.Buffer, names: TextNames) -> str:
    """Return the declaration of a buffer without its scope, e.g. ``x: int8[16, n] align 4``."""
    shape = ", ".join(_dim_text(d, names) for d in buffer.shape)
    align = "" if buffer.alignment == 1 else f" align {buffer.alignment}"
    return f"{names(buffer)}: {buffer.dtype.value}[{shape}]{align}"


def stmt_text(s: ir.Stmt) -> str:
    """Return a statement for a message, its body included."""
    printer = _FunctionPrinter(TextNames())
    printer.stmt(s, 0)
    return "\n".join(printer.lines)


# --- modules ------------------------------------------------------------------------------------


def to_text(functions: ir.PrimFunc | Sequence[ir.PrimFunc], *, constants: bool = True) -> str:
    """Return the text of functions, preceded by the constants and kernels that they use.

    With `constants=False` the data of large constants is elided: for people, not for the parser.
    """
    items = (functions,) if isinstance(functions, ir.PrimFunc) else tuple(functions)
    everything = (*_kernels(items), *items)
    names = TextNames()
    parts: list[str] = []
    tables = [_constant_text(b, names, full=constants) for b in constant_buffers(everything)]
    if tables:
        parts.append("\n".join(tables))
    parts += [_extern_text(function) for function in extern_functions(everything)]
    inside: dict[ir.PrimFunc, TextNames] = {}
    for func in everything:
        keyword = "func" if func in items else "meaning"
        name = names(func)
        inside[func] = TextNames(names)
        parts.append(_FunctionPrinter(inside[func], inside).function(func, name, keyword))
    return "\n\n".join(parts) + "\n"


def _kernels(functions: Sequence[ir.PrimFunc]) -> tuple[ir.PrimFunc, ...]:
    kernels: dict[ir.PrimFunc, None] = {}
    for func in functions:
        for node in calls_of(func):
            if isinstance(node, ir.KernelCall) and node.meaning not in kernels:
                kernels.update(dict.fromkeys((*_kernels((node.meaning,)), node.meaning)))
    return tuple(kernels)


def extern_functions(functions: Sequence[ir.PrimFunc]) -> tuple[ir.ExternFunction, ...]:
    """Return the outside functions that functions call, once each, in order of first use."""
    calls = (call for func in functions for call in calls_of(func))
    return tuple(dict.fromkeys(c.function for c in calls if isinstance(c, ir.ExternCall)))


def _extern_text(function: ir.ExternFunction) -> str:
    printer = _FunctionPrinter(TextNames())
    params = ", ".join(map(printer.param, function.params))
    parts = [f"extern {_quoted(function.name)}({params}):"]
    for keyword, buffers in (("reads", function.reads), ("writes", function.writes)):
        if buffers:
            parts.append(f"{keyword} {', '.join(map(printer.names, buffers))}")
    return " ".join([*parts, "status"] if function.returns_status else parts)


def constant_buffers(functions: Sequence[ir.PrimFunc]) -> tuple[ir.Buffer, ...]:
    """Return the CONSTANT buffers that functions use, each once, in order of first use."""
    constants: dict[ir.Buffer, None] = {}
    for func in functions:
        for node in walk(func):
            if not isinstance(node, ir.Load | ir.Store | ir.BufferView | ir.BufferArgument):
                continue
            if node.buffer.scope is ir.Scope.CONSTANT and node.buffer not in func.params:
                constants[node.buffer] = None
    return tuple(constants)


def _constant_text(buffer: ir.Buffer, names: TextNames, *, full: bool) -> str:
    head = f"constant {buffer_text(buffer, names)}"
    if buffer.data is None:
        return head
    if buffer.data.size <= _LIST_LIMIT:
        numbers = ", ".join(_element_text(v, buffer.dtype) for v in buffer.data.reshape(-1))
        return f"{head} = [{numbers}]"
    if not full:
        return f"{head} = ..."
    little_endian = buffer.data.astype(np.dtype(buffer.dtype.value).newbyteorder("<"))
    return f'{head} = "{little_endian.tobytes().hex()}"'


def _element_text(value: float, dtype: DType) -> str:
    if dtype is DType.BOOL:
        return "true" if value else "false"
    return float32_text(value) if dtype is DType.FLOAT32 else str(value)
