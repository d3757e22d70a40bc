"""The packed interface: wrappers that unpack arguments, check them and call plain functions."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from microtir.codegen.interface.constant_pools import passed_constant_pools
from microtir.codegen.interface.devices import struct_name
from microtir.codegen.interface.entry import checked_name, exported_name, run_name
from microtir.codegen.interface.parts import Draft, Part, Place, file_comment, rendered
from microtir.codegen.interface.pools import passed_pools
from microtir.codegen.printer.c_types import C_TYPES, integer_literal, runtime_dtype
from microtir.codegen.printer.names import ScopedNames
from microtir.codegen.program import CProgram, GivenConstants
from microtir.codegen.source_file import SourceFile
from microtir.dtype import DType
from microtir.errors import Fix, UsageError
from microtir.module.ir_module import ModelInfo, PortKind
from microtir.support.code_templates import render
from microtir.tir.ir import Buffer, Param, PrimFunc, Var

RUNTIME_VERSION = 6  # MICROTIR_RUNTIME_VERSION of runtime_crt/include/microtir/runtime.h

_LOCALS = ("args", "kinds", "count", "result", "result_kind", "resource", "status", "inputs",
           "outputs", "state", "workspace", "parameters", "devices")  # fmt: skip


@dataclass(frozen=True, slots=True)
class TensorArgument:
    """A tensor among the arguments of a packed function.

    `shape` is the text of its extents, empty for rank 0; `storage` that of the array's class.
    """

    name: str
    index: int
    dtype: str
    rank: int
    shape: str
    storage: str
    alignment: int


@dataclass(frozen=True, slots=True)
class ScalarArgument:
    """An integer among the arguments of a packed function."""

    name: str
    index: int
    low: str
    high: str


@dataclass(frozen=True, slots=True)
class MemoryArgument:
    """An argument that is plain bytes: `size` and `alignment` are macros of the header."""

    name: str
    index: int
    size: str
    alignment: str


@dataclass(frozen=True, slots=True)
class Wrapper:
    """A packed function. `call` are the lines that follow once every argument is unpacked.

    `storage` is empty for one that applications see. Where `constants` is set, the resource points
    to a pointer to them; where `devices` has text, it points to this struct.
    """

    name: str
    registered: str
    comment: str
    storage: str
    count: int
    scalars: tuple[ScalarArgument, ...]
    tensors: tuple[TensorArgument, ...]
    memories: tuple[MemoryArgument, ...]
    call: tuple[str, ...]
    constants: GivenConstants | None = None
    devices: str = ""


def entry_wrappers(program: CProgram) -> tuple[Wrapper, ...]:
    """Return the packed functions that an application calls."""
    if program.model:
        return (_model_wrapper(program, program.model),)
    return tuple(_function_wrapper(program, f) for f in program.exported)


def _operator_wrappers(program: CProgram) -> tuple[Wrapper, ...]:
    """Return the packed functions through which main calls its operators, if it does."""
    if not program.config.has_packed_operators():
        return ()
    return tuple(_operator_wrapper(program, layer) for layer in program.layers)


def file(draft: Draft, suffix: str, title: str = "the packed interface") -> SourceFile:
    """Return a file of the interface."""
    program = draft.program
    name = f"{program.name}_{suffix}"
    return SourceFile(
        name,
        render(
            f"c/{suffix}.j2",
            comment=file_comment(program, f"{name}: {title}"),
            macro=program.macro,
            fingerprint=draft.fingerprint,
            runtime_version=RUNTIME_VERSION,
            wrappers=entry_wrappers(program),
            **_table(program),
        ),
    )


def _table(program: CProgram) -> dict[str, object]:
    """Return what the table of a module is printed from: entry functions, then operators."""
    listed = [*entry_wrappers(program), *_operator_wrappers(program)]
    return {"name": program.name, "registered": listed, "function_count": len(listed)}


def _model_wrapper(program: CProgram, model: ModelInfo) -> Wrapper:
    names = _names(program, len(program.entry.params))
    tensors = []
    for index, (port, parameter) in enumerate(zip(model.ports, program.entry.params, strict=False)):
        assert isinstance(parameter, Buffer)
        extents = [str(extent) for extent in port.type.shape]
        name = names.reserve(port.c_name)
        tensors.append(_argument(name, index, parameter, extents))
    members = {
        kind: ", ".join(
            t.name for t, port in zip(tensors, model.ports, strict=True) if port.kind is kind
        )
        for kind in PortKind
    }
    pools = passed_pools(program)
    named = [("state", f"{program.macro}_STATE")] * bool(program.states)
    named += [
        ("workspace" if len(pools) == 1 else names.reserve(pool.name), pool.macro) for pool in pools
    ]
    named += _constant_memories(program, names)
    memories = _memories(named, len(tensors))
    arguments = ["&inputs", "&outputs", *(m.name for m in memories)]
    memory = ", ".join([*arguments, *["devices"] * bool(program.devices)])
    call = [
        *(
            f"const struct {program.name}_{kind.value}s {kind.value}s = {{{members[kind] or '0'}}};"
            for kind in PortKind
        ),
        f"return {run_name(program)}({memory});",
    ]
    state_text = "the state as a uint8 tensor, " * bool(program.states)
    more = ", and the file of parameters likewise" * program.has_external_params
    more += ", and the constant pools likewise" * bool(passed_constant_pools(program))
    if program.devices:
        more += f". The resource is a pointer to a {struct_name(program)}"
    return Wrapper(
        _wrapper_name(program, f"{program.name}_run"),
        f"{program.name}_run",
        f"Arguments: the inputs, the outputs, {state_text}and {_workspace_text(len(pools))}{more}",
        "",
        len(tensors) + len(memories),
        (),
        tuple(tensors),
        tuple(memories),
        tuple(call),
        devices=struct_name(program) if program.devices else "",
    )


def _workspace_text(pools: int) -> str:
    if pools == 1:
        return "the workspace as a uint8 tensor"
    return f"{pools} workspace pools as uint8 tensors" if pools else "no workspace, which is inside"


def _constant_memories(program: CProgram, names: ScopedNames) -> list[tuple[str, str]]:
    """Return the file of constants, or the pools that are passed: names, and starts of macros."""
    named = [("parameters", f"{program.macro}_PARAMETERS")] * program.has_external_params
    return [*named, *((names.reserve(p.name), p.macro) for p in passed_constant_pools(program))]


def _memories(named: Sequence[tuple[str, str]], first: int) -> list[MemoryArgument]:
    """Return arguments that are plain bytes, from the index `first` on.

    Args:
        named: their names, and what the macros of their sizes and alignments begin with.
        first: the index of the first.
    """
    return [
        MemoryArgument(name, index, f"{macro}_SIZE", f"{macro}_ALIGNMENT")
        for index, (name, macro) in enumerate(named, first)
    ]


def _wrapper_name(program: CProgram, public: str) -> str:
    """Return the public name, unless a function with plain arguments has it."""
    return public if program.is_packed else f"{public}_packed"


def _function_wrapper(program: CProgram, function: PrimFunc) -> Wrapper:
    public = exported_name(program, function)
    count = len(function.params)
    names = _names(program, count)
    scalars, tensors, arguments = _arguments(function, names)
    memories = []
    if program.takes_constants(function):
        memories = _memories(_constant_memories(program, names), count)
    call = ", ".join([*arguments, *(memory.name for memory in memories)])
    return Wrapper(
        _wrapper_name(program, public),
        public,
        "Arguments: those of the function in their order, tensors and integers",
        "",
        count + len(memories),
        scalars,
        tensors,
        tuple(memories),
        (f"return {checked_name(program, function)}({call});",),
    )


def _operator_wrapper(program: CProgram, layer: PrimFunc) -> Wrapper:
    names = _names(program, len(layer.params))
    scalars, tensors, arguments = _arguments(layer, names)
    takes_constants, on_device = program.takes_constants(layer), program.takes_devices(layer)
    if takes_constants and on_device:
        raise UsageError(
            f"'{program.names[layer]}' uses a device and reads constants that the caller passes",
            where="executor",
            legal="packed operators with a device, or with constants of the caller, not both",
            fix=Fix(
                "use unpacked-api True, or link the constants into the code",
                "use --executor-aot-unpacked-api 1, or link the constants into the code",
            ),
        )
    name = program.names[layer]
    passed = program.given_constants
    extra = [passed.name] * takes_constants + ["devices"] * on_device
    call = f"{name}({', '.join([*arguments, *extra])})"
    lines = [f"return {call};"]
    if layer not in program.fallible:
        lines = [f"{call};", f"return {program.macro}_OK;"]
    return Wrapper(
        f"{name}_packed",
        name,
        "Arguments: those of the function in their order, tensors and integers",
        "static ",
        len(layer.params),
        scalars,
        tensors,
        (),
        tuple(lines),
        passed if takes_constants else None,
        struct_name(program) if on_device else "",
    )


def _arguments(
    function: PrimFunc, names: ScopedNames
) -> tuple[tuple[ScalarArgument, ...], tuple[TensorArgument, ...], list[str]]:
    """Return integers and tensors of a function, and the text of its arguments in their order."""
    defined = {p: names.define(p) for p in function.params}
    scalars, tensors = [], []
    for index, parameter in enumerate(function.params):
        if isinstance(parameter, Var):
            scalars.append(_scalar(parameter, defined[parameter], index))
        else:
            extents = [
                f"(int32_t){defined[d]}" if isinstance(d, Var) else str(d) for d in parameter.shape
            ]
            tensors.append(_argument(defined[parameter], index, parameter, extents))
    texts = [_call_argument(p, defined[p]) for p in function.params]
    return tuple(scalars), tuple(tensors), texts


def _names(program: CProgram, count: int) -> ScopedNames:
    """Return names of a wrapper's variables; each tensor has a shape and a type of its number."""
    numbered = [f"{stem}_{index}" for stem in ("shape", "type") for index in range(count)]
    return ScopedNames((*program.file_names, *_LOCALS, *numbered))


def _call_argument(parameter: Param, name: str) -> str:
    return f"({C_TYPES[parameter.dtype]}){name}" if isinstance(parameter, Var) else name


def _scalar(parameter: Var, name: str, index: int) -> ScalarArgument:
    low = parameter.dtype.min if parameter.low is None else parameter.low
    high = parameter.dtype.max if parameter.high is None else parameter.high
    return ScalarArgument(
        name, index, integer_literal(low, DType.INT64), integer_literal(high, DType.INT64)
    )


def _argument(name: str, index: int, buffer: Buffer, extents: list[str]) -> TensorArgument:
    alignment = max(buffer.alignment, buffer.dtype.bytes)
    is_constant = all(isinstance(extent, int) for extent in buffer.shape)
    storage = "static const" if is_constant else "const"
    dtype, shape = runtime_dtype(buffer.dtype), ", ".join(extents)
    return TensorArgument(name, index, dtype, len(extents), shape, storage, alignment)


def operator_parts(draft: Draft) -> Iterator[Part]:
    """Yield the functions through which main calls its operators."""
    for wrapper in _operator_wrappers(draft.program):
        yield rendered(Place.OPERATORS, "wrapper.c.j2", wrapper=wrapper)


def parts(draft: Draft) -> Iterator[Part]:
    """Yield the functions that an application calls, and the table of them."""
    program = draft.program
    header = f"{program.name}_packed.h"
    note = f"/* The functions take packed arguments: {header} declares them. */"
    yield Part(Place.PROTOTYPES, note)
    yield Part(Place.INCLUDES, f'#include "{header}"')
    for wrapper in entry_wrappers(program):
        yield rendered(Place.PACKED, "wrapper.c.j2", wrapper=wrapper)
    yield rendered(Place.PACKED, "module.c.j2", **_table(program))
