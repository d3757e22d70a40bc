"""Prints main: every call with its layer's comment and hook, in the convention of the operators."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence

from microtir.codegen.interface.canaries import check_of_canaries
from microtir.codegen.interface.devices import struct_name
from microtir.codegen.interface.integrity import checks_before
from microtir.codegen.printer.c_types import C_TYPES, runtime_dtype
from microtir.codegen.printer.expressions import Requirements
from microtir.codegen.printer.layout import block_comment, indent
from microtir.codegen.printer.names import ScopedNames
from microtir.codegen.printer.statements import StatementPrinter
from microtir.codegen.printer.tensor_checks import TensorChecks
from microtir.codegen.program import CProgram
from microtir.support.encoding import c_comment
from microtir.tir.ir import Buffer, BufferView, Expr, For, If, IntImm, Invoke, PrimFunc, Seq, Stmt
from microtir.tir.memory_plan import BufferPlacement
from microtir.tir.visitor import invokes_of, walk


class MainPrinter(StatementPrinter):
    """Prints a model's main: every call with its layer's comment and hook.

    Views of the workspace have been named before, what a step reads and what it writes; steps count
    Invokes in program order, as placement does; the statements that are printed begin with
    `first_step`. `row_ports` has the text of each tensor that the application hands over row by
    row. `pointers` are declared by the step that uses them first: declared all at the beginning, a
    compiler keeps them on the stack through every call. `checks` compare tensors between steps.
    """

    def __init__(
        self,
        program: CProgram,
        names: ScopedNames,
        requirements: Requirements,
        views: Mapping[tuple[int, BufferView, bool], str],
        first_step: int = 0,
        row_ports: Mapping[Buffer, str] | None = None,
        pointers: Mapping[int, Sequence[str]] | None = None,
        checks: TensorChecks | None = None,
    ) -> None:
        super().__init__(program, program.entry, names, requirements)
        self._views = views
        self._row_ports = row_ports or {}
        self._pointers = pointers or {}
        self._checks = checks or TensorChecks()
        self._step = first_step
        self._is_in_loop = False
        self._is_outermost = True

    def lines(self, s: Stmt) -> list[str]:
        if not self._is_outermost or isinstance(s, Seq):
            return self._inner_lines(s)
        steps = range(self._step, self._step + len(invokes_of(s)))
        declared = [line for step in steps for line in self._pointers.get(step, ())]
        self._is_outermost = False
        called = {self.program.callee(i.function).name for i in invokes_of(s)}
        lines = checks_before(self.program, called)
        lines += [line for step in steps for line in self._checks.before[step]]
        lines += self._inner_lines(s)
        lines += check_of_canaries(self.program)
        lines += [line for step in steps for line in self._checks.after[step]]
        self._is_outermost = True
        return ["", *declared, *lines] if declared else lines

    def _inner_lines(self, s: Stmt) -> list[str]:
        if isinstance(s, For):
            return self._loop_lines(s)
        if not isinstance(s, Invoke):
            return super().lines(s)
        callee = self.program.callee(s.function)
        packed = self.program.config.has_packed_operators()
        call = self._packed_call(callee, s) if packed else super().lines(s)
        lines = [*_call_comment(callee), *call, *self._hooks(callee, s)]
        self._step += 1
        return lines

    def turn_lines(self, s: For, turn: str) -> list[str]:
        """Return one iteration of a loop over rows, in the block that it has for itself.

        Args:
            s: the outermost loop.
            turn: the value of its variable, as C.
        """
        self._bounds.ranges[s.var] = self._bounds.of(s.start).union(self._bounds.of(s.stop))
        name = self.names.define(s.var)
        value = f"const {C_TYPES[s.var.dtype]} {name} = {turn};"
        callees = [self.program.callee(i.function) for i in invokes_of(s)]
        self._is_in_loop = True
        lines = self.lines(s.body)
        self._is_in_loop = False
        return [*_loop_comment(callees), value, *lines]

    def _loop_lines(self, s: For) -> list[str]:
        """Return a loop of the model, or one over rows.

        Of those over rows, the outermost one of several layers says what it does.
        """
        if not any(node is s.var for node in walk(s.body)):
            most = "At most " * _may_end_before(s)
            return [f"/* {most}{_text_of(s.stop)} iterations. */", *super().lines(s)]
        is_outermost, self._is_in_loop = not self._is_in_loop, True
        lines = super().lines(s)
        if is_outermost:
            self._is_in_loop = False
            callees = [self.program.callee(i.function) for i in invokes_of(s)]
            lines = [*_loop_comment(callees), *lines]
        return lines

    def view(self, view: BufferView, is_written: bool) -> str:
        name = self._row_ports.get(view.buffer)
        for written in (is_written, not is_written):
            name = name or self._views.get((self._step, view, written))
        return super().view(view, is_written) if name is None else name

    def _packed_call(self, callee: PrimFunc, s: Invoke) -> list[str]:
        """Return a call through packed arguments: views of the tensors, and what they are."""
        lines: list[str] = []
        values: list[str] = []
        kinds: list[str] = []
        with self.names.block():
            for argument, parameter in zip(s.args, callee.params, strict=True):
                number = len(values)
                if isinstance(argument, BufferView) and isinstance(parameter, Buffer):
                    tensor = self.names.reserve(f"tensor_{number}")
                    shape = self.names.reserve(f"shape_{number}")
                    lines += self._tensor(tensor, shape, self.view(argument, True), parameter)
                    values.append(f"{{.v_tensor = &{tensor}}}")
                    kinds.append("MICROTIR_KIND_TENSOR")
                else:
                    values.append(f"{{.v_integer = {self.argument(argument, False)}}}")
                    kinds.append("MICROTIR_KIND_INTEGER")
            args, codes, status = (self.names.reserve(n) for n in ("args", "kinds", "status"))
            name = f"{self.program.names[callee]}_packed"
            passed = self.program.given_constants
            resource = f"&{passed.name}" if self.program.takes_constants(callee) else "NULL"
            if self.program.takes_devices(callee):
                copy = self.names.reserve("given")
                lines.append(f"{struct_name(self.program)} {copy} = *devices;")
                resource = f"&{copy}"
            call = f"{name}({args}, {codes}, {len(values)}, NULL, NULL, {resource})"
            lines += [
                f"const union microtir_value {args}[] = {{{', '.join(values)}}};",
                f"static const int32_t {codes}[] = {{{', '.join(kinds)}}};",
                f"const int32_t {status} = {call};",
                f"if ({status} != MICROTIR_OK) {{",
                *indent([f"return {status};"]),
                "}",
            ]
        return ["{", *indent(lines), "}"]

    def _tensor(self, name: str, shape: str, data: str, parameter: Buffer) -> list[str]:
        """Return a view of a tensor; layers of a model have constant shapes only."""
        extents = ", ".join(str(extent) for extent in parameter.shape)
        lines = [f"static const int64_t {shape}[] = {{{extents}}};"] if extents else []
        fields = [
            data, str(len(parameter.shape)), runtime_dtype(parameter.dtype),
            shape if extents else "NULL", "NULL", "0",
        ]  # fmt: skip
        return [*lines, f"const struct microtir_tensor {name} = {{{', '.join(fields)}}};"]

    def _hooks(self, callee: PrimFunc, s: Invoke) -> list[str]:
        """Return one hook per tensor that the call wrote."""
        layer, tensors = self.program.layers.index(callee), self.program.tensors_written(callee)
        written = [view for parameter, view in self.program.views(s) if parameter in tensors]
        return [
            f"{self.program.macro}_LAYER_HOOK({layer}, {number}, {self.view(view, True)}, "
            f"{self._rows(callee, s, view)});"
            for number, view in enumerate(written)
        ]

    def _rows(self, callee: PrimFunc, s: Invoke, view: BufferView) -> str:
        """Return the first row and the one after the last that the call computed."""
        scalars: list[Expr] = [a for a in s.args if not isinstance(a, BufferView)]
        if callee.row_range is not None:
            return ", ".join(self.argument(a, False) for a in scalars[-2:])
        return f"0, {view.shape[0] if view.shape else 1}"


def _may_end_before(loop: For) -> bool:
    """Return whether a condition leaves out the rest of a turn: branches have two sides."""
    last = loop.body.statements[-1] if isinstance(loop.body, Seq) else loop.body
    return isinstance(last, If) and last.otherwise is None


def _text_of(iterations: Expr) -> str:
    assert isinstance(iterations, IntImm), "a loop of the model has this many iterations"
    return str(iterations.value)


def _call_comment(callee: PrimFunc) -> list[str]:
    origin = callee.origin
    if origin is None:
        return []
    number = f"{origin.index}  " if origin.index >= 0 else ""
    return [f"/* {c_comment(f'{number}{origin.operator}  {origin.node}')} */"]


def _loop_comment(callees: Sequence[PrimFunc]) -> list[str]:
    numbers = sorted({callee.origin.index for callee in callees if callee.origin})
    if len(numbers) < 2:
        return []
    which = f"Operators {numbers[0]} to {numbers[-1]} row by row"
    return block_comment(
        [
            f"{which}: each runs when the rows that it reads are complete.",
            "A ring keeps the last rows of a tensor: row r of R lies in its slot r % R.",
        ]
    )


def views_of(main: PrimFunc | Stmt) -> Iterator[tuple[int, BufferView]]:
    """Yield every view that a call is given, with the number of the call in program order."""
    for step, invoke in enumerate(invokes_of(main)):
        for argument in invoke.args:
            if isinstance(argument, BufferView):
                yield step, argument


def alive_at_steps(
    placements: Iterable[BufferPlacement],
) -> Mapping[int, Sequence[BufferPlacement]]:
    """Return the buffers that are in use at each step, in their order."""
    alive: dict[int, list[BufferPlacement]] = {}
    for placement in placements:
        for step in range(placement.first_step, placement.last_step + 1):
            alive.setdefault(step, []).append(placement)
    return alive


def label_of(
    alive: Sequence[BufferPlacement],
    step: int,
    view: BufferView,
    is_written: bool | None = None,
) -> str:
    """Return the planner's name for the buffer, of those that live at a step, at this place.

    Buffers of a nest lie over each other; the one that begins and ends with the view is meant. Of
    several such, if it matters whether the step writes it, the one that is in use at the step: of
    an input and an output in one place the output is the later one.
    """
    size = math.prod(view.shape) * view.dtype.bytes
    around = [p for p in alive if p.offset <= view.byte_offset < p.offset + p.size]
    exact = [p for p in around if (p.offset, p.size) == (view.byte_offset, size)]
    if is_written is not None:
        used = [p for p in exact if any(part.step == step for part in p.kept_bytes)] or exact
        exact = used[::-1] if is_written else used
    return next((p.name for p in (*exact, *around)), f"tensor_{view.byte_offset}")
