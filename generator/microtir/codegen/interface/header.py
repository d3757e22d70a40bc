"""Prints the public header, which says what an application may rely on."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator

from microtir.codegen.interface.constant_pools import (
    constant_pools,
    passed_constant_pools,
    pool_identity,
)
from microtir.codegen.interface.entry import exported_head, run_name, run_parameters
from microtir.codegen.interface.parameters import alignment, file_name, file_size
from microtir.codegen.interface.parts import Draft, Part, Place, parts_at, rendered
from microtir.codegen.interface.pools import (
    internal_pools,
    named_pools,
    passed_pools,
    workspace_pools,
)
from microtir.codegen.interface.state import macros as state_macros
from microtir.codegen.interface.value_names import name_lines
from microtir.codegen.printer.c_types import float_literal
from microtir.codegen.printer.functions import c_function
from microtir.codegen.printer.layout import WIDTH, block_comment, columns, struct_text
from microtir.codegen.printer.rows import STRUCT_COMMENT, struct_name
from microtir.codegen.printer.statements import parameter_text
from microtir.codegen.program import CProgram
from microtir.dtype import DType
from microtir.module.ir_module import ModelInfo, Port, PortKind
from microtir.support.encoding import c_comment
from microtir.support.names import c_names
from microtir.tir.ir import Buffer, Param, PrimFunc, Var

# Stems of macros that are not about a tensor of the model.
_MACROS = ("WORKSPACE", "WEIGHTS", "STACK", "PARAMETERS", "FUSED_MULTIPLY_ADD")


def _port_sections(program: CProgram, model: ModelInfo) -> list[str]:
    """Return a heading and macros for each tensor of the model's interface."""
    return [
        "\n".join([*block_comment(_port_title(port)), *_port_macros(program, port, stem)])
        for port, stem in zip(model.ports, port_stems(program, model), strict=True)
    ]


def port_stems(program: CProgram, model: ModelInfo) -> list[str]:
    """Return what macros of each tensor have between the model's name and their own."""
    # A tensor's ROW_SIZE would be the SIZE of another one that is called like its rows.
    taken = [f"{port.c_name}_row" for port in model.ports if port.row_bytes is not None]
    macros = [pool.macro for pool in workspace_pools(program)]
    macros += [pool.macro for pool in constant_pools(program)]
    taken += [macro.removeprefix(f"{program.macro}_") for macro in macros]
    return list(c_names([port.c_name for port in model.ports], [*_MACROS, *taken]))


def _port_title(port: Port) -> list[str]:
    kind = "Input" if port.kind is PortKind.INPUT else "Output"
    title = f"{kind} '{port.name}': {type_text(port)}"
    if _scale(port) is not None:
        title += ", real value = scale * (value - zero point)"
    if port.in_use is None:
        return [title]
    along = f" along axis {port.in_use.axis}" if port.in_use.axis else ""
    return [title, f"The first {port.in_use.count}[0] rows{along} are in use."]


def type_text(port: Port) -> str:
    """Return the element type and extents of a tensor."""
    return f"{port.type.dtype.value}" + "".join(f"[{extent}]" for extent in port.type.shape)


def _scale(port: Port) -> tuple[float, int] | None:
    """Return scale and zero point of a tensor that is quantised as a whole."""
    quantization = port.type.quantization
    if quantization is None or quantization.is_per_channel:
        return None
    return quantization.scale, quantization.zero_point


def _port_macros(program: CProgram, port: Port, stem: str) -> list[str]:
    shape = ", ".join(str(extent) for extent in port.type.shape)
    facts = []
    if port.offset is not None:
        pools = program.config.workspace_pools
        place = "the workspace" if len(pools) == 1 else f"the pool {pools[port.pool].c_name}"
        facts = [("OFFSET", f"{port.offset} /* in {place} */")]
    facts += [
        ("SIZE", f"{port.type.bytes} /* bytes */"),
        ("ELEMENTS", str(port.type.elements)),
        ("RANK", str(len(port.type.shape))),
        ("SHAPE", f"{{{shape}}}"),
    ]
    if port.row_bytes is not None:
        facts.append(("ROWS", str(port.type.rows)))
        facts.append(("ROW_SIZE", f"{port.row_bytes} /* bytes */"))
    quantization = _scale(port)
    if quantization is not None:
        scale, zero_point = quantization
        facts.append(("SCALE", float_literal(scale, DType.FLOAT32)))
        facts.append(("ZERO_POINT", f"({zero_point})" if zero_point < 0 else str(zero_point)))
    elif port.type.quantization is not None:
        quant = port.type.quantization
        scales = ", ".join(float_literal(scale, DType.FLOAT32) for scale in quant.scales)
        facts.append(("SCALES", f"{{{scales}}}"))
        facts.append(("ZERO_POINTS", f"{{{', '.join(map(str, quant.zero_points))}}}"))
        facts.append(("SCALES_AXIS", str(quant.axis)))
    prefix = f"#define {program.macro}_{stem.upper()}"
    lines = columns([(f"{prefix}_{name}", text) for name, text in facts])
    return lines + (name_lines(prefix.removeprefix("#define "), port.names) if port.names else [])


def memory_lines(program: CProgram, identity: str = "") -> str:
    """Return macros of sizes and alignments, and of the file of constants if there is one."""
    rows = []
    if program.model:
        memory = program.model.memory
        rows.append(("WORKSPACE_SIZE", str(memory.workspace_size)))
        rows.append(("WORKSPACE_ALIGNMENT", str(memory.alignment)))
        for pool in named_pools(program):
            stem = pool.macro.removeprefix(f"{program.macro}_")
            internal = " /* in the generated code */" * pool.is_internal
            rows.append((f"{stem}_SIZE", f"{pool.size}{internal}"))
            rows.append((f"{stem}_ALIGNMENT", str(pool.plan.alignment)))
    rows += state_macros(program)
    weights = sum(array.bytes for array in program.constants)
    if program.has_external_params:
        rows.append(("PARAMETERS_SIZE", f"{file_size(program.constants)} /* size of the file */"))
        rows.append(("PARAMETERS_ALIGNMENT", str(alignment(program.constants))))
        rows.append(("PARAMETERS_IDENTITY", f"UINT32_C({identity})"))
        rows.append(("WEIGHTS_SIZE", f"{weights} /* constants, in the file of parameters */"))
    else:
        rows.append(
            ("WEIGHTS_SIZE", f"{weights} /* constants, which the linker places in flash */")
        )
    for constants in constant_pools(program):
        stem = constants.macro.removeprefix(f"{program.macro}_")
        rows.append((f"{stem}_SIZE", f"{constants.size} /* including gaps for alignment */"))
        if not constants.is_internal:
            rows.append((f"{stem}_ALIGNMENT", str(constants.plan.alignment)))
        if not constants.is_internal and constants.size:
            number = pool_identity(constants, identity)
            rows.append((f"{stem}_IDENTITY", f"UINT32_C({number})"))
    return "\n".join(columns([(f"#define {program.macro}_{n}", text) for n, text in rows]))


def _structs(program: CProgram, model: ModelInfo) -> list[str]:
    """Return the types of tensors that a model's entry takes."""
    return [*rows_struct(program, model), *(_port_struct(program, model, k) for k in PortKind)]


def _port_struct(program: CProgram, model: ModelInfo, kind: PortKind) -> str:
    """Return the struct of all inputs or of all outputs."""
    ports = [port for port in model.ports if port.kind is kind]
    rows = [
        (f"{member};", f"/* {type_text(port)} */")
        for port, member in zip(ports, members(program, model, kind), strict=True)
    ]
    # C has no empty struct.
    rows = rows or [("uint8_t none;", f"/* the model has no {kind.value} */")]
    return struct_text(f"struct {program.name}_{kind.value}s", rows)


def members(program: CProgram, model: ModelInfo, kind: PortKind) -> list[str]:
    """Return the declarations of what the struct of all inputs, or of all outputs, holds."""
    written = program.written[program.entry]
    if program.config.has_packed_operators():  # their tensors have no const
        written |= {p for p in program.entry.params if isinstance(p, Buffer)}
    return [
        _member(program, port, parameter, written)
        for port, parameter in zip(model.ports, program.entry.params, strict=False)
        if port.kind is kind
    ]


def rows_struct(program: CProgram, model: ModelInfo) -> list[str]:
    """Return the type of tensors that are handed over row by row; nothing if there are none."""
    if all(port.row_bytes is None for port in model.ports):
        return []
    members = [("void (*move)(void *context, int32_t row, void *data);",), ("void *context;",)]
    comment = block_comment(list(STRUCT_COMMENT))
    return ["\n".join([*comment, struct_text(struct_name(program), members)])]


def _member(program: CProgram, port: Port, parameter: Param, written: frozenset[Buffer]) -> str:
    if port.row_bytes is not None:
        return f"{struct_name(program)} {port.c_name}"
    return parameter_text(parameter, port.c_name, _is_written(port, parameter, written))


def _is_written(port: Port, parameter: Param, written: frozenset[Buffer]) -> bool:
    """Return whether a run may change a tensor.

    In the workspace other tensors come to lie over it.
    """
    return port.offset is not None or parameter in written


def _run_comment(program: CProgram) -> list[str]:
    macro = program.macro
    model = program.model
    assert model is not None
    rows = _tensor_rows(program, model)
    if program.states:
        rows.append(("state", f"initialised by {program.name}_state_init; each run changes it"))
    for pool in passed_pools(program):
        if pool.size == 0:
            needs = (
                "this model needs none" if not model.memory.workspace_size else "it holds nothing"
            )
            rows.append((pool.name, f"not used: {needs}, NULL is fine"))
            continue
        has_tensors = any(port.offset is not None for port in model.ports)
        lifetime = f"its {'other ' * has_tensors}contents need not be preserved between calls"
        if named_pools(program):
            rows.append((pool.name, f"{pool.macro}_SIZE bytes, aligned to"))
            rows.append(("", f"{pool.macro}_ALIGNMENT; {lifetime}"))
        else:
            rows.append((pool.name, f"{pool.macro}_SIZE bytes, aligned to {pool.macro}_ALIGNMENT;"))
            rows.append(("", lifetime))
    rows += _constant_rows(program)
    if program.has_external_params:
        rows.append(("parameters", f"the file {file_name(program)}, aligned to"))
        rows.append(("", f"{macro}_PARAMETERS_ALIGNMENT"))
    if program.devices:
        rows.append(("devices", "passed to the drivers; NULL is fine for a driver without a state"))
    if program.has_count:
        axis, most = model.ports[0].type.outermost, program.entry.images
        what = f"dimension {axis} of {model.ports[0].c_name} has" if axis else "the batch has"
        rows.append(("count", f"how many entries {what}, 1 to {most}. The first"))
        rows.append(
            ("", "entries of each input are read, and the same number of each output is written")
        )
    if program.guard:
        rows.append(("guard", "receives the counts of the input guard; NULL if not needed"))
    return [
        *textwrap.wrap(_what_runs(model), WIDTH - 4),
        "",
        *columns([(f"  {name}", text) for name, text in rows], gap="  "),
        "",
        *_ends(program),
    ]


def _tensor_rows(program: CProgram, model: ModelInfo) -> list[tuple[str, str]]:
    """Return what is said of the tensors that a run is given."""
    rows = [("inputs, outputs", "no pointer is NULL; tensors are row-major and must not overlap")]
    if any(port.type.dtype.bytes > 1 and port.row_bytes is None for port in model.ports):
        rows.append(("", "each tensor is aligned like its C element type"))
    if any(port.offset is not None for port in model.ports):
        rows = [
            (
                "inputs, outputs",
                f"every pointer set to its tensor's OFFSET in the {_holder(program)}, in bytes;",
            ),
            ("", "tensors are row-major. Write the inputs before each run: a run overwrites"),
            ("", "them. The outputs stay until their memory is used again"),
        ]
    if any(port.row_bytes is not None for port in model.ports):
        rows.append(("", "a tensor that is passed row by row needs its `move` set"))
    return rows


def _what_runs(model: ModelInfo) -> str:
    """Return what a run does, as a sentence."""
    stream = model.stream
    if stream is None:
        return "Runs the model once."
    newest = "the newest frame" if stream.frames == 1 else f"the newest {stream.frames} frames"
    return (
        f"Runs the model on a window of {stream.window} frames: '{stream.input}' is {newest}. The "
        "state holds what the run needs of earlier frames. Frames before the first run are zeros."
    )


def _constant_rows(program: CProgram) -> list[tuple[str, str]]:
    """Return what is said of the parameters that are constant pools."""
    rows = []
    for pool in passed_constant_pools(program):
        if not pool.size:
            rows.append((pool.name, "not used: no constant is placed in it, NULL is fine"))
            continue
        rows.append((pool.name, f"{pool.macro}_DATA of {program.name}_constant_pools.h,"))
        rows.append(("", f"aligned to {pool.macro}_ALIGNMENT"))
    return rows


def _ends(program: CProgram) -> list[str]:
    """Return what a run returns, and whether two may go on at once."""
    returns = f"Returns {program.macro}_OK, or a negative status before anything is computed."
    if program.devices:
        returns = f"Returns {program.macro}_OK, a negative status before anything is computed, or"
        returns += " the status of a driver."
    if internal_pools(program):
        again = "Not re-entrant: the code contains memory that only one run at a time can use."
    elif program.devices:
        again = "Re-entrant, if the devices are: it changes no memory except its arguments."
    else:
        again = "Re-entrant: it changes no memory except the caller's."
    return textwrap.wrap(f"{returns} {again}", WIDTH - 4)


def _holder(program: CProgram) -> str:
    return "workspace" if len(program.config.workspace_pools) == 1 else "pool of its comment"


def _function_comment(program: CProgram, function: PrimFunc) -> list[str]:
    written = program.written[function]
    rows = [(f"  {p.name}", _parameter_text(p, p in written)) for p in function.params]
    if program.takes_constants(function) and program.has_external_params:
        rows.append(("  parameters", f"the file {file_name(program)}"))
    elif program.takes_constants(function):
        rows += [(f"  {name}", text) for name, text in _constant_rows(program)]
    return [
        f"Function '{function.name}'.",
        "",
        *columns(rows, gap="  "),
        "",
        f"Returns {program.macro}_OK, or a negative status before anything is computed.",
    ]


def _parameter_text(parameter: Param, is_written: bool) -> str:
    if isinstance(parameter, Var):
        return f"{parameter.dtype.value}{_range_text(parameter)}"
    access = "written" if is_written else "read"
    return f"{access}, {_buffer_text(parameter)}"


def _range_text(var: Var) -> str:
    low = var.dtype.min if var.low is None else var.low
    high = var.dtype.max if var.high is None else var.high
    return "" if (low, high) == (var.dtype.min, var.dtype.max) else f", {low} to {high}"


def _buffer_text(buffer: Buffer) -> str:
    extents = (d.name if isinstance(d, Var) else str(d) for d in buffer.shape)
    text = buffer.dtype.value + "".join(f"[{c_comment(extent)}]" for extent in extents)
    aligned = buffer.alignment > buffer.dtype.bytes
    return f"{text}, aligned to {buffer.alignment} bytes" if aligned else text


def parts(draft: Draft) -> Iterator[Part]:
    """Yield what the header of every program has."""
    program = draft.program
    memory = memory_lines(program, draft.identity)
    yield Part(Place.MEMORY, f"/* Memory, in bytes. */\n{memory}")
    yield rendered(Place.ALIGNMENT, "alignment.h.j2", macro=program.macro)
    sections = [pool.section for pool in passed_pools(program)]
    sections += [pool.section for pool in passed_constant_pools(program)]
    if any(sections):
        macro = f"{program.macro}_SECTION"
        yield rendered(Place.ALIGNMENT, "section.h.j2", macro=macro, what="variable")
    status_text = f"const char *{program.name}_status_text(int32_t status);"
    comment = "/* Returns the meaning of a status as a sentence; never NULL. */"
    yield Part(Place.STATUS_TEXT, f"{comment}\n{status_text}")


def model_parts(draft: Draft) -> Iterator[Part]:
    """Yield a model's tensors, and the function that runs it."""
    program, model = draft.program, draft.model
    yield from parts_at(Place.TENSORS, _port_sections(program, model))
    yield rendered(Place.LAYERS, "layer.c.j2", macro=program.macro)
    if program.is_packed:  # arguments are tensors, and packed.h has the functions
        yield from parts_at(Place.OWN_STRUCTS, _structs(program, model))
        return
    yield from parts_at(Place.STRUCTS, _structs(program, model))
    comments = {run_name(program): _run_comment(program)}
    if model.stream is not None:
        same = f"The same as {run_name(program)}: pushes frames into the window."
        comments[f"{program.name}_push"] = [same]
    for name, comment in comments.items():
        run = c_function(f"int32_t {name}", run_parameters(program), comment=comment)
        yield Part(Place.PROTOTYPES, run.declaration)


def function_parts(draft: Draft) -> Iterator[Part]:
    """Yield the functions of a user's program."""
    program = draft.program
    for function in () if program.is_packed else program.exported:
        comment = _function_comment(program, function)
        public = c_function(*exported_head(program, function), comment=comment)
        yield Part(Place.PROTOTYPES, public.declaration)
