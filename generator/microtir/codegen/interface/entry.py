"""Prints the functions that an application calls: checks of what it passes, then the program."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from microtir.codegen.interface.canaries import setting_of_canaries
from microtir.codegen.interface.checks import argument_checks, model_checks, null_check
from microtir.codegen.interface.constant_pools import given_constants, passed_constant_pools
from microtir.codegen.interface.devices import activated_name, activation, devices_parameter
from microtir.codegen.interface.guard import guard_call
from microtir.codegen.interface.integrity import next_identity
from microtir.codegen.interface.pools import passed_pools, workspace_pools
from microtir.codegen.interface.state import next_turn, state_place
from microtir.codegen.printer.c_types import C_TYPES
from microtir.codegen.printer.expressions import Requirements
from microtir.codegen.printer.functions import FunctionText, c_function
from microtir.codegen.printer.layout import indent
from microtir.codegen.printer.main_printer import MainPrinter, alive_at_steps, label_of
from microtir.codegen.printer.names import ScopedNames
from microtir.codegen.printer.statements import parameter_text, pointer_cast
from microtir.codegen.printer.tensor_checks import tensor_checks
from microtir.codegen.program import CProgram
from microtir.dtype import DType
from microtir.module.ir_module import ModelInfo
from microtir.tir.ir import Buffer, BufferView, PrimFunc
from microtir.tir.visitor import invokes_of


def run_entries(program: CProgram, requirements: Requirements) -> list[FunctionText]:
    """Return the function that runs a model, ahead of time; with devices, what they do around it.

    A graph is run by the functions of its own interface.
    """
    model = program.model
    assert model is not None
    if program.is_graph:
        return []
    entries = with_devices(
        program,
        run_name(program),
        run_parameters(program),
        _run_lines(program, model, requirements),
    )
    if model.stream is not None and not program.is_packed:
        parameters = run_parameters(program)
        call = f"return {run_name(program)}({', '.join(names_of(parameters))});"
        entries.append(c_function(f"int32_t {program.name}_push", parameters, [call]))
    return entries


def exported_entries(program: CProgram, requirements: Requirements) -> list[FunctionText]:
    """Return the public functions of a user's program."""
    return [exported_entry(program, function, requirements) for function in program.exported]


def with_devices(
    program: CProgram, name: str, parameters: list[str], lines: list[str]
) -> list[FunctionText]:
    """Return the function `name`; with devices it activates them, runs what uses them, and ends."""
    head = f"{_storage(program)}int32_t {name}"
    if not program.devices:
        return [c_function(head, parameters, lines)]
    inner = c_function(f"static int32_t {activated_name(name)}", parameters, lines)
    around = activation(program, name, names_of(parameters))
    return [inner, c_function(head, parameters, [*null_check(program, ["devices"]), *around])]


def names_of(parameters: Sequence[str]) -> list[str]:
    """Return the names of parameters that are written with their types."""
    return [re.split(r"[ *]", parameter)[-1] for parameter in parameters]


@dataclass(frozen=True, slots=True)
class MainFrame:
    """The surroundings of the statements of main within a function of C.

    `printer` prints them, and what they use of `local` is declared: the buffers of main, each with
    its line. Those of `per_image` are one image's of a batch, whose number is called `image`.
    """

    program: CProgram
    names: ScopedNames
    printer: MainPrinter
    image: str
    local: tuple[tuple[Buffer, str], ...]
    per_image: frozenset[Buffer]

    def of_image(self) -> list[str]:
        """Return the declarations of what is an image's own, after the statements are printed."""
        return [line for buffer, line in self._used() if buffer in self.per_image]

    def of_all(self) -> list[str]:
        """Return the other declarations, after the statements are printed."""
        shared = [line for buffer, line in self._used() if buffer not in self.per_image]
        return [*given_constants(self.program), *shared]

    def _used(self) -> list[tuple[Buffer, str]]:
        return [(buffer, line) for buffer, line in self.local if self.names.is_used(buffer)]


def main_frame(
    program: CProgram,
    model: ModelInfo,
    requirements: Requirements,
    reserved: Sequence[str] = (),
    blocks: Sequence[int] = (),
) -> MainFrame:
    """Name what main works on.

    Args:
        program: the program of the model.
        model: its facts.
        requirements: grows by what the statements need from the file.
        reserved: names of further parameters.
        blocks: the number of the block of C that each call is in; all are in one if it is empty.
    """
    names = ScopedNames(program.file_names)
    pools = workspace_pools(program)
    constants = passed_constant_pools(program)
    passed = [*(pool.name for pool in pools), *(pool.name for pool in constants)]
    for taken in ("inputs", "outputs", "state", *passed, *reserved):
        names.reserve(taken)
    main = program.entry
    buffers = [p for p in main.params if isinstance(p, Buffer)]
    ports, rest = buffers[: len(model.ports)], buffers[len(model.ports) :]
    stored_states = [state for state in model.states if not state.is_counter]
    states, rest = rest[len(rest) - len(stored_states) :], rest[: len(rest) - len(stored_states)]
    image = names.reserve("image") if main.images > 1 else ""
    local, row_ports = _named_ports(program, model, names, ports, image)
    filled = [pool for pool in pools if pool.size]
    for buffer, pool in zip(rest, filled, strict=True):
        name = names.define(buffer, "memory" if len(filled) == 1 else f"in_{pool.plan.name}")
        local.append((buffer, f"uint8_t *const {name} = {program.name}_pool({pool.name});"))
    for buffer, state in zip(states, stored_states, strict=True):
        name = names.define(buffer, state.c_name)
        c_type, place = C_TYPES[buffer.dtype], state_place(state, model)
        local.append((buffer, f"{c_type} *const {name} = {place};"))
    views, pointers = _workspace_pointers(program, rest, model, names, blocks)
    checks = tensor_checks(program, names, {b: p.size for b, p in zip(rest, filled, strict=True)})
    printer = MainPrinter(
        program, names, requirements, views, row_ports=row_ports, pointers=pointers, checks=checks
    )
    per_image = frozenset(ports if image else ())
    return MainFrame(program, names, printer, image, tuple(local), per_image)


def _named_ports(
    program: CProgram,
    model: ModelInfo,
    names: ScopedNames,
    ports: Sequence[Buffer],
    image: str,
) -> tuple[list[tuple[Buffer, str]], dict[Buffer, str]]:
    """Return the declaration of each tensor of the model, and the text of those by rows."""
    main = program.entry
    local: list[tuple[Buffer, str]] = []
    row_ports = {}
    for buffer, port in zip(ports, model.ports, strict=True):
        if port.row_bytes is not None:
            row_ports[buffer] = f"&{port.kind.value}s->{port.c_name}"
            continue
        # A packed argument has no const.
        is_written = buffer in program.written[main] or program.config.has_packed_operators()
        pointer = parameter_text(buffer, "", is_written)
        name = names.define(buffer, port.c_name)
        first = f" + {image} * {port.type.elements // main.images}" if image else ""
        local.append((buffer, f"{pointer}const {name} = {port.kind.value}s->{port.c_name}{first};"))
    return local, row_ports


def _run_lines(program: CProgram, model: ModelInfo, requirements: Requirements) -> list[str]:
    frame = main_frame(program, model, requirements)
    body = frame.printer.lines(program.entry.body)
    if frame.image:
        each = separated(frame.of_image(), body)
        body = _for_each_image(frame.image, _image_count(program), each)
    end = [*body, *next_turn(model), *next_identity(program), f"return {program.macro}_OK;"]
    checks = model_checks(program, model, requirements)
    begin = [*setting_of_canaries(program), *guard_call(program)]
    return separated(checks, begin, frame.of_all(), end)


def separated(*blocks: Sequence[str]) -> list[str]:
    """Return blocks with a blank line between them, also where one begins with it."""
    spaced = [line for block in blocks if block for line in ("", *block)][1:]
    return [line for line, before in zip(spaced, ["", *spaced], strict=False) if line or before]


def _image_count(program: CProgram) -> str:
    """Return how many images a run computes: as many as there are, or as it is told."""
    return "count" if program.has_count else str(program.entry.images)


def _for_each_image(image: str, images: str, body: Sequence[str]) -> list[str]:
    """Return the loop that computes images one by one: no operator mixes them."""
    return [
        "/* Each image by itself: no operator mixes them. */",
        f"for (int32_t {image} = 0; {image} < {images}; {image}++) {{",
        *indent(body),
        "}",
    ]


def run_name(program: CProgram) -> str:
    """Return the function that takes structs; where callers have packed arguments, a static one."""
    return f"{program.name}_run{'_unpacked' * program.is_packed}"


def run_parameters(program: CProgram) -> list[str]:
    """Return what a run needs: tensors, memory, and constants that are no arrays of the code."""
    return [
        f"const struct {program.name}_inputs *inputs",
        f"const struct {program.name}_outputs *outputs",
        *([f"struct {program.name}_state *state"] if program.states else []),
        *(f"void *{pool.name}" for pool in passed_pools(program)),
        *constant_parameters(program),
        *([devices_parameter(program)] if program.devices else []),
        *(["int32_t count"] if program.has_count else []),
        *([f"struct {program.name}_guard *guard"] if program.guard else []),
    ]


def constant_parameters(program: CProgram) -> list[str]:
    """Return an entry function's parameters for the file or the pools of constants."""
    if program.has_external_params:
        return ["const void *parameters"]
    return [f"const void *{pool.name}" for pool in passed_constant_pools(program)]


def _storage(program: CProgram) -> str:
    return "static " * program.is_packed


def _workspace_pointers(
    program: CProgram,
    workspace: list[Buffer],
    model: ModelInfo,
    names: ScopedNames,
    blocks: Sequence[int],
) -> tuple[dict[tuple[int, BufferView, bool], str], dict[int, list[str]]]:
    """Return the named pointer of each view, and the declarations by the step that needs them.

    What several blocks need is declared in each.
    """
    views: dict[tuple[int, BufferView, bool], str] = {}
    pointers: dict[tuple[str, int, DType], str] = {}
    lines: dict[int, list[str]] = {}
    declared: set[tuple[int, tuple[str, int, DType]]] = set()
    numbers = [number for number, pool in enumerate(model.memory.pools) if pool.size]
    alive = [
        alive_at_steps(p for p in model.memory.placements if p.pool == number) for number in numbers
    ]
    for step, view, is_written in _views(program):
        if view.buffer not in workspace:
            continue
        base = names.of(view.buffer)
        label = label_of(alive[workspace.index(view.buffer)].get(step, ()), step, view, is_written)
        key = (label, view.byte_offset, view.dtype)
        if key not in pointers:
            pointers[key] = names.reserve(label)
        place = (blocks[step] if blocks else 0, key)
        if place not in declared:
            declared.add(place)
            cast = pointer_cast(base, DType.UINT8, view.dtype, view.byte_offset, False)
            line = f"{C_TYPES[view.dtype]} *const {pointers[key]} = {cast};"
            lines.setdefault(step, []).append(line)
        views[step, view, is_written] = pointers[key]
    return views, lines


def _views(program: CProgram) -> Iterator[tuple[int, BufferView, bool]]:
    """Yield what each step of main is given, and whether it writes that."""
    for step, invoke in enumerate(invokes_of(program.entry)):
        written = program.written[program.callee(invoke.function)]
        for parameter, view in program.views(invoke):
            yield step, view, parameter in written


def exported_entry(
    program: CProgram, function: PrimFunc, requirements: Requirements
) -> FunctionText:
    """Return the public function of a user's program: checks, then the static body."""
    names = ScopedNames(program.file_names)
    for parameter in function.params:
        names.define(parameter)
    lines = argument_checks(program, function, names, requirements)
    takes_constants = program.takes_constants(function)
    lines += given_constants(program) if takes_constants else []
    passed = [program.given_constants.name] * takes_constants
    arguments = ", ".join([*(names.of(p) for p in function.params), *passed])
    call = f"{program.names[function]}({arguments})"
    if function in program.fallible:
        lines.append(f"return {call};")
    else:
        lines += [f"{call};", f"return {program.macro}_OK;"]
    return c_function(*exported_head(program, function), lines)


def exported_head(program: CProgram, function: PrimFunc) -> tuple[str, list[str]]:
    """Return the public function and its parameters."""
    names = ScopedNames(program.file_names)
    parameters = [
        parameter_text(p, names.define(p), p in program.written[function]) for p in function.params
    ]
    if program.takes_constants(function):
        parameters += constant_parameters(program)
    return f"{_storage(program)}int32_t {checked_name(program, function)}", parameters


def checked_name(program: CProgram, function: PrimFunc) -> str:
    """Return function that checks plain arguments; a static one where callers have packed ones."""
    return f"{exported_name(program, function)}{'_unpacked' * program.is_packed}"


def exported_name(program: CProgram, function: PrimFunc) -> str:
    """Return the C name of a function of a user's program."""
    return f"{program.name}_{function.name}"
