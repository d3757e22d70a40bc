"""tensorize: a micro-kernel in the place of the loop nest that it means."""

from __future__ import annotations

from dataclasses import dataclass

from microtir.errors import ScheduleError
from microtir.schedule.program import Loop, ScheduledProgram
from microtir.schedule.proof import constant_difference, proves
from microtir.schedule.tree import facts_at, find_loop, replace_stmt
from microtir.tir import build, ir
from microtir.tir.printer import access_text, expr_text
from microtir.tir.visitor import Replacement, buffers_written, substitute, variables_used, walk

Replacements = dict[ir.Param, Replacement]


@dataclass(frozen=True, slots=True)
class KernelDescription:
    """A micro-kernel as a library describes it.

    `meaning` is a function whose body is one loop nest; its buffers are pointers with the strides
    of their shapes, its Vars scalar arguments.  `contract` speaks about these parameters;
    `assembly` names a template for targets that have it; `sizes` are the values of scalar
    arguments that follow all others and are known here.
    """

    meaning: ir.PrimFunc
    contract: ir.KernelContract
    assembly: str | None = None
    sizes: tuple[int, ...] = ()


def tensorize(program: ScheduledProgram, loop: Loop, kernel: KernelDescription) -> ScheduledProgram:
    """Replace `loop` by a call of the kernel.

    The nest and the kernel's meaning must be the same statements, loop for loop, with buffers that
    the kernel sees from one element on.  Bounds and preconditions of the call are proven with those
    of all other accesses, when the function is lowered.

    Raises:
        ScheduleError: the first difference, an argument that does not exist, or an alignment that
            cannot be shown.
    """
    step = f"tensorize({loop}, {kernel.meaning.name})"
    node = find_loop(program, loop, step)
    match = _Match(kernel.meaning, step)
    match.stmt(node, kernel.meaning.body)
    args = tuple(match.argument(param) for param in kernel.meaning.params)
    match.check_aliases()
    facts = facts_at(program.body, node)
    for arg in args:
        if isinstance(arg, ir.BufferArgument):
            _check_alignment(arg, kernel.contract.alignment, facts, step)
    call = ir.KernelCall(kernel.meaning, args, kernel.contract, kernel.assembly)
    return program.with_body(replace_stmt(program.body, node, call))


def flat_index(buffer: ir.Buffer, indices: tuple[ir.Expr, ...]) -> ir.Expr:
    """Return the number of the element in row-major order."""
    flat: ir.Expr = build.const(0)
    for dim, index in zip(buffer.shape, indices, strict=True):
        flat = build.add(build.mul(flat, build.index(dim)), index)
    return flat


def _check_alignment(
    arg: ir.BufferArgument, alignment: int, facts: tuple[ir.Expr, ...], step: str
) -> None:
    size = arg.buffer.dtype.bytes
    offset = build.mul(flat_index(arg.buffer, arg.indices), size)
    is_multiple = build.eq(build.floormod(offset, alignment), 0)
    if max(arg.buffer.alignment, size) % alignment or not proves(facts, is_multiple):
        raise ScheduleError(
            f"the kernel needs addresses that are multiples of {alignment}. This could not be "
            f"proven for {access_text(arg.buffer, arg.indices)}",
            where=step,
            fix="set the alignment of the tensor, and split its loops by multiples of it",
        )


@dataclass(frozen=True, slots=True)
class _Pointer:
    """The target of a buffer parameter: an element, and its number in the buffer."""

    buffer: ir.Buffer
    indices: tuple[ir.Expr, ...]
    origin: ir.Expr


class _Match:
    """Compares a nest with the meaning of a kernel and finds the arguments on the way."""

    def __init__(self, meaning: ir.PrimFunc, step: str) -> None:
        self.meaning = meaning
        self.step = step
        self.inner: Replacements = {}  # kernel's variables and LOCAL buffers -> those of the nest
        self.zero: Replacements = {}  # the nest's own variables at their origin
        self.pointers: dict[ir.Buffer, _Pointer] = {}
        self.scalars: dict[ir.Var, ir.Expr] = {}

    def refuse(self, nest: str, kernel: str) -> ScheduleError:
        return ScheduleError(f"the loops have {nest}, but the kernel {kernel}", where=self.step)

    # --- statements ---

    def stmt(self, nest: ir.Stmt, kernel: ir.Stmt) -> None:
        match nest, kernel:
            case ir.For(), ir.For():
                self.bounds(nest, kernel)
                self.define(nest.var, kernel.var)
                self.stmt(nest.body, kernel.body)
            case ir.Store(buffer, indices, value), ir.Store(pattern, pattern_indices, expected):
                self.access(buffer, indices, pattern, pattern_indices)
                self.same(value, expected)
            case ir.Seq(parts), ir.Seq(expected_parts) if len(parts) == len(expected_parts):
                for part, expected_part in zip(parts, expected_parts, strict=True):
                    self.stmt(part, expected_part)
            case ir.If(), ir.If() if (nest.otherwise is None) == (kernel.otherwise is None):
                self.same(nest.condition, kernel.condition)
                self.stmt(nest.then, kernel.then)
                if nest.otherwise is not None and kernel.otherwise is not None:
                    self.stmt(nest.otherwise, kernel.otherwise)
            case ir.Let(), ir.Let():
                self.same(nest.value, kernel.value)
                self.define(nest.var, kernel.var)
                self.stmt(nest.body, kernel.body)
            case ir.Allocate(), ir.Allocate() if _have_same_type(nest.buffer, kernel.buffer):
                self.inner[kernel.buffer] = nest.buffer
                self.stmt(nest.body, kernel.body)
            case _:
                raise self.refuse(_outline(nest), _outline(kernel))

    def bounds(self, nest: ir.For, kernel: ir.For) -> None:
        try:
            self.same(nest.start, kernel.start)
            self.same(nest.stop, kernel.stop)
        except ScheduleError:
            raise self.refuse(_outline(nest), _outline(kernel)) from None

    def define(self, nest: ir.Var, kernel: ir.Var) -> None:
        self.inner[kernel] = nest
        self.zero[nest] = 0

    # --- expressions ---

    def same(self, nest: ir.Expr, kernel: ir.Expr) -> None:
        """Refuse unless the expressions have the same value in every iteration."""
        if nest.dtype is not kernel.dtype:
            raise self.refuse(
                f"'{expr_text(nest)}' of type {nest.dtype.value}",
                f"'{expr_text(kernel)}' of type {kernel.dtype.value}",
            )
        if isinstance(kernel, ir.Var) and kernel not in self.inner:
            self.scalar(nest, kernel)
            return
        match nest, kernel:
            case ir.Load(buffer, indices), ir.Load(pattern, pattern_indices):
                self.access(buffer, indices, pattern, pattern_indices)
            case ir.Binary(op, a, b), ir.Binary(other, x, y) if op is other:
                if not self.equal(nest, kernel):
                    self.same(a, x)
                    self.same(b, y)
            case ir.Unary(unary, a), ir.Unary(other_unary, x) if unary is other_unary:
                self.same(a, x)
            case ir.Cast(_, a), ir.Cast(_, x):
                self.same(a, x)
            case ir.Select(), ir.Select():
                self.same(nest.condition, kernel.condition)
                self.same(nest.then, kernel.then)
                self.same(nest.otherwise, kernel.otherwise)
            case ir.Call(function, args), ir.Call(expected, params) if function is expected:
                for arg, param in zip(args, params, strict=True):
                    self.same(arg, param)
            case _:
                if not self.equal(nest, kernel):
                    raise self.refuse(f"'{expr_text(nest)}'", f"'{expr_text(kernel)}'")

    def equal(self, nest: ir.Expr, kernel: ir.Expr) -> bool:
        """Return whether expressions without loads are equal once the kernel's names are gone."""
        for node in (*walk(nest), *walk(kernel)):
            if isinstance(node, ir.Load) or (isinstance(node, ir.Var) and self.is_open(node)):
                return False
        translated = substitute(kernel, self.translation())
        if nest.dtype.is_int:
            return constant_difference(nest, translated) == 0
        return nest == translated

    def is_open(self, var: ir.Var) -> bool:
        """Return whether a parameter of the kernel has no argument yet."""
        return var in self.meaning.params and var not in self.scalars

    def translation(self) -> Replacements:
        names = self.inner.copy()
        names.update(self.scalars.items())
        return names

    def scalar(self, nest: ir.Expr, param: ir.Var) -> None:
        if any(var in self.zero for var in variables_used(nest)):
            raise self.refuse(
                f"'{expr_text(nest)}', which changes inside", f"the argument '{param.name}'"
            )
        known = self.scalars.setdefault(param, nest)
        if known != nest and constant_difference(known, nest) != 0:
            raise self.refuse(
                f"'{expr_text(nest)}' and '{expr_text(known)}'", f"'{param.name}' for both"
            )

    # --- memory ---

    def access(
        self,
        buffer: ir.Buffer,
        indices: tuple[ir.Expr, ...],
        pattern: ir.Buffer,
        pattern_indices: tuple[ir.Expr, ...],
    ) -> None:
        """Check that the nest's element lies where the kernel's does, seen from one origin."""
        nest, kernel = access_text(buffer, indices), access_text(pattern, pattern_indices)
        if buffer.dtype is not pattern.dtype:
            raise self.refuse(
                f"'{nest}' of type {buffer.dtype.value}",
                f"'{kernel}' of type {pattern.dtype.value}",
            )
        if pattern in self.inner:
            if self.inner[pattern] is not buffer:
                raise self.refuse(f"'{nest}'", f"'{kernel}'")
            for index, expected in zip(indices, pattern_indices, strict=True):
                self.same(index, expected)
            return
        inside = substitute(flat_index(pattern, pattern_indices), self.translation())
        origin = build.sub(flat_index(buffer, indices), inside)
        if constant_difference(origin, substitute(origin, self.zero)) != 0:
            raise self.refuse(f"'{nest}'", f"'{kernel}' with other strides")
        if pattern not in self.pointers:
            first = substitute(inside, self.zero)
            place = tuple(substitute(index, self.zero) for index in indices)
            if place:
                place = (*place[:-1], build.sub(place[-1], first))
            elif build.int_value(first) != 0:
                raise self.refuse(f"'{nest}'", f"'{kernel}' of an array")
            self.pointers[pattern] = _Pointer(buffer, place, origin)
        known = self.pointers[pattern]
        if known.buffer is not buffer or constant_difference(origin, known.origin) != 0:
            raise self.refuse(
                f"'{nest}' and '{access_text(known.buffer, known.indices)}'",
                f"'{pattern.name}' for both",
            )

    # --- arguments ---

    def argument(self, param: ir.Param) -> ir.BufferArgument | ir.Expr:
        if isinstance(param, ir.Var) and param in self.scalars:
            return self.scalars[param]
        if isinstance(param, ir.Buffer) and param in self.pointers:
            pointer = self.pointers[param]
            return ir.BufferArgument(pointer.buffer, pointer.indices)
        raise ScheduleError(
            f"the kernel does not use its parameter '{param.name}', so microtir cannot find which"
            " value to pass",
            where=self.step,
        )

    def check_aliases(self) -> None:
        """Refuse one argument for two parameters if it is written: a kernel may write first."""
        written = buffers_written(self.meaning)
        for param, pointer in self.pointers.items():
            for other, seen in self.pointers.items():
                if param is not other and param in written and pointer.buffer is seen.buffer:
                    raise ScheduleError(
                        f"'{pointer.buffer.name}' would be passed as '{param.name}', which the"
                        f" kernel writes, and also as '{other.name}'",
                        where=self.step,
                    )


def _have_same_type(a: ir.Buffer, b: ir.Buffer) -> bool:
    return a.shape == b.shape and a.dtype is b.dtype


def _outline(s: ir.Stmt) -> str:
    """Describe a statement in a few words."""
    match s:
        case ir.For(var, start, stop):
            return f"the loop '{var.name}' over [{expr_text(start)}, {expr_text(stop)})"
        case ir.Store(buffer, indices):
            return f"a store to '{access_text(buffer, indices)}'"
        case ir.Allocate(buffer):
            return f"the LOCAL buffer '{buffer.name}'"
        case ir.Seq(statements):
            return f"{len(statements)} statements"
        case _:
            return f"the statement '{type(s).__name__}'"
