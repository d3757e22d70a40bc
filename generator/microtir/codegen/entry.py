"""The functions an application calls: checks of what it passes, then the program."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping

from microtir.codegen.c_types import C_TYPES, integer_literal
from microtir.codegen.expressions import Requirements
from microtir.codegen.functions import FunctionText, joined, signature
from microtir.codegen.layout import comment_text
from microtir.codegen.names import ScopedNames
from microtir.codegen.program import Program
from microtir.codegen.statements import StatementPrinter, parameter_text, pointer_cast
from microtir.ir_module import BufferPlacement, ModelInfo, Port
from microtir.tir.dtype import DType
from microtir.tir.ir import Buffer, BufferView, Expr, Invoke, PrimFunc, Stmt, Var
from microtir.tir.visitor import walk


class _MainPrinter(StatementPrinter):
    """Prints a model's main: every call with its layer's comment and hook.

    Views of the workspace have been named before; steps count Invokes in program order, as
    placement does.
    """

    def __init__(
        self,
        program: Program,
        names: ScopedNames,
        requirements: Requirements,
        views: dict[tuple[int, BufferView], str],
        row_ports: Mapping[Buffer, str],
    ) -> None:
        super().__init__(program, program.entry, names, requirements)
        self._views = views
        self._row_ports = row_ports
        self._step = 0

    def lines(self, s: Stmt) -> list[str]:
        if not isinstance(s, Invoke):
            return super().lines(s)
        callee = self.program.callee(s.function)
        lines = [*_call_comment(callee), *super().lines(s), *self._hooks(callee, s)]
        self._step += 1
        return lines

    def view(self, view: BufferView, is_written: bool) -> str:
        name = self._row_ports.get(view.buffer) or self._views.get((self._step, view))
        return super().view(view, is_written) if name is None else name

    def _hooks(self, callee: PrimFunc, s: Invoke) -> list[str]:
        """One hook per tensor that the call wrote."""
        layer, tensors = self.program.layers.index(callee), self.program.tensors_written(callee)
        written = [
            argument
            for parameter, argument in zip(callee.params, s.args, strict=True)
            if parameter in tensors and isinstance(argument, BufferView)
        ]
        return [
            f"{self.program.macro}_LAYER_HOOK({layer}, {number}, {self.view(view, True)}, "
            f"{self._rows(callee, s, view)});"
            for number, view in enumerate(written)
        ]

    def _rows(self, callee: PrimFunc, s: Invoke, view: BufferView) -> str:
        """First row and the one after the last that the call computed."""
        scalars: list[Expr] = [a for a in s.args if not isinstance(a, BufferView)]
        if takes_row_range(callee):
            return ", ".join(self.argument(a, False) for a in scalars[-2:])
        return f"0, {view.shape[0] if view.shape else 1}"


def takes_row_range(function: PrimFunc) -> bool:
    """Whether a layer function ends in the parameters y0 and y1 of the calling convention."""
    names = [p.name for p in function.params if isinstance(p, Var)]
    return names[-2:] == ["y0", "y1"]


def _call_comment(callee: PrimFunc) -> list[str]:
    origin = callee.origin
    if origin is None:
        return []
    number = f"{origin.index}  " if origin.index >= 0 else ""
    return [f"/* {comment_text(f'{number}{origin.operator}  {origin.node}')} */"]


def model_entry(program: Program, model: ModelInfo, requirements: Requirements) -> FunctionText:
    """The body of `<name>_run`."""
    names = ScopedNames(program.file_names)
    for taken in ("inputs", "outputs", workspace_name(program)):
        names.reserve(taken)
    main = program.entry
    buffers = [p for p in main.params if isinstance(p, Buffer)]
    ports, rest = buffers[: len(model.ports)], buffers[len(model.ports) :]
    local, row_ports = [], {}
    for buffer, port in zip(ports, model.ports, strict=True):
        if port.row_bytes is not None:
            row_ports[buffer] = f"&{port.kind.value}s->{port.c_name}"
            continue
        pointer = parameter_text(buffer, "", buffer in program.written[main])
        name = names.define(buffer, port.c_name)
        local.append((buffer, f"{pointer}const {name} = {port.kind.value}s->{port.c_name};"))
    pool = workspace_name(program)
    local += [(b, f"uint8_t *const {names.define(b, 'memory')} = {pool};") for b in rest]
    views, pointers = _workspace_pointers(main, rest, model, names)
    printer = _MainPrinter(program, names, requirements, views, row_ports)
    body = printer.lines(main.body)
    used = [line for buffer, line in local if buffer in rest or names.is_used(buffer)]
    blocks = [
        _model_checks(program, model, bool(rest)),
        [*used, *pointers],
        [*body, f"return {program.macro}_OK;"],
    ]
    lines = [line for block in blocks if block for line in ("", *block)][1:]
    return FunctionText("", "\n".join(model_signature(program)), joined(lines))


def workspace_name(program: Program) -> str:
    """The parameter that takes the workspace: the name of the pool, unless another one has it."""
    names = ScopedNames(program.file_names)
    for taken in ("inputs", "outputs"):
        names.reserve(taken)
    return names.reserve(program.config.workspace_pool().c_name)


def model_signature(program: Program) -> list[str]:
    """`<name>_run` with its parameters."""
    return signature(
        f"int32_t {program.name}_run",
        [
            f"const struct {program.name}_inputs *inputs",
            f"const struct {program.name}_outputs *outputs",
            f"void *{workspace_name(program)}",
        ],
    )


def _model_checks(program: Program, model: ModelInfo, has_workspace: bool) -> list[str]:
    pool = workspace_name(program)
    structs = ["inputs", "outputs", *([pool] if has_workspace else [])]
    members = [_pointer(port) for port in model.ports]
    null = f"{program.macro}_ERROR_NULL_POINTER"
    if not has_workspace:
        unused = [f"(void){pool}; /* this model needs none */"]
        return [*unused, *_check(_any_null(structs), null), *_check(_any_null(members), null)]
    misaligned = f"(uintptr_t){pool} % {program.macro}_WORKSPACE_ALIGNMENT != 0"
    return [
        *_check(_any_null(structs), null),
        *_check(_any_null(members), null),
        *_check(misaligned, f"{program.macro}_ERROR_WORKSPACE_ALIGNMENT"),
        *_place_checks(program, model, pool),
    ]


def _pointer(port: Port) -> str:
    """What must be set for a tensor: where it is, or the function that hands over its rows."""
    member = f"{port.kind.value}s->{port.c_name}"
    return member if port.row_bytes is None else f"{member}.move"


def _place_checks(program: Program, model: ModelInfo, pool: str) -> list[str]:
    """Checks that tensors are where the plan has them; none if the caller has other memory."""
    places = []
    for port in model.ports:
        if port.offset is not None:
            place = f"(const uint8_t *){pool}" + (f" + {port.offset}" if port.offset else "")
            places.append(f"(const uint8_t *){port.kind.value}s->{port.c_name} != {place}")
    return _check(" || ".join(places), f"{program.macro}_ERROR_TENSOR_PLACE") if places else []


def _any_null(pointers: list[str]) -> str:
    return " || ".join(f"{pointer} == NULL" for pointer in pointers)


def _check(condition: str, status: str) -> list[str]:
    return [f"if ({condition}) {{", f"    return {status};", "}"]


def _workspace_pointers(
    main: PrimFunc, workspace: list[Buffer], model: ModelInfo, names: ScopedNames
) -> tuple[dict[tuple[int, BufferView], str], list[str]]:
    """A named pointer for each tensor in the workspace, and which view uses which."""
    views: dict[tuple[int, BufferView], str] = {}
    pointers: dict[tuple[str, int, DType], str] = {}
    lines: list[str] = []
    for step, view in _views(main):
        if view.buffer not in workspace:
            continue
        label = _label(model.memory.placements, step, view)
        key = (label, view.byte_offset, view.dtype)
        if key not in pointers:
            base = names.of(view.buffer)
            pointers[key] = names.reserve(label)
            cast = pointer_cast(base, DType.UINT8, view.dtype, view.byte_offset, False)
            lines.append(f"{C_TYPES[view.dtype]} *const {pointers[key]} = {cast};")
        views[step, view] = pointers[key]
    return views, lines


def _views(main: PrimFunc) -> Iterator[tuple[int, BufferView]]:
    invokes = [node for node in walk(main) if isinstance(node, Invoke)]
    for step, invoke in enumerate(invokes):
        for argument in invoke.args:
            if isinstance(argument, BufferView):
                yield step, argument


def _label(placements: tuple[BufferPlacement, ...], step: int, view: BufferView) -> str:
    """The planner's name for the buffer that lives at this place and step.

    Buffers of a nest lie over each other; the one that begins and ends with the view is meant.
    """
    size = math.prod(view.shape) * view.dtype.bytes
    alive = [p for p in placements if p.first_step <= step <= p.last_step]
    around = [p for p in alive if p.offset <= view.byte_offset < p.offset + p.size]
    exact = [p for p in around if (p.offset, p.size) == (view.byte_offset, size)]
    return next((p.name for p in (*exact, *around)), f"tensor_{view.byte_offset}")


def exported_entry(program: Program, function: PrimFunc) -> FunctionText:
    """The public function of a user's program: checks, then the static body."""
    names = ScopedNames(program.file_names)
    for parameter in function.params:
        names.define(parameter)
    buffers = [p for p in function.params if isinstance(p, Buffer)]
    lines: list[str] = []
    if buffers:
        condition = _any_null([names.of(b) for b in buffers])
        lines += _check(condition, f"{program.macro}_ERROR_NULL_POINTER")
    for parameter in function.params:
        name = names.of(parameter)
        if isinstance(parameter, Var):
            condition = " || ".join(_outside(parameter, name))
            lines += _check(condition, f"{program.macro}_ERROR_ARGUMENT_RANGE") if condition else []
        elif parameter.alignment > parameter.dtype.bytes:
            condition = f"(uintptr_t){name} % {parameter.alignment} != 0"
            lines += _check(condition, f"{program.macro}_ERROR_TENSOR_ALIGNMENT")
    arguments = ", ".join(names.of(p) for p in function.params)
    call = f"{program.names[function]}({arguments})"
    if function in program.fallible:
        lines.append(f"return {call};")
    else:
        lines += [f"{call};", f"return {program.macro}_OK;"]
    return FunctionText("", "\n".join(exported_signature(program, function)), joined(lines))


def exported_signature(program: Program, function: PrimFunc) -> list[str]:
    """The public function with its parameters."""
    names = ScopedNames(program.file_names)
    parameters = [
        parameter_text(p, names.define(p), p in program.written[function]) for p in function.params
    ]
    return signature(f"int32_t {exported_name(program, function)}", parameters)


def exported_name(program: Program, function: PrimFunc) -> str:
    """C name of a function of a user's program."""
    return f"{program.name}_{function.name}"


def _outside(var: Var, name: str) -> Iterator[str]:
    """Conditions under which a scalar is outside its declared range."""
    # A comparison that a type can never meet warns.
    if var.low is not None and var.low > var.dtype.min:
        yield f"{name} < {integer_literal(var.low, var.dtype)}"
    if var.high is not None and var.high < var.dtype.max:
        yield f"{name} > {integer_literal(var.high, var.dtype)}"
