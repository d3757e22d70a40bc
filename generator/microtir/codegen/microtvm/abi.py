"""Prints the C interface of microTVM for a model, for applications that were written against it.

Names, members and macros are those of its `tvmgen_<module>.h`; the functions call microtir's own.
An application links them instead of what microTVM generated, and needs no other change.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from microtir.codegen.interface import header
from microtir.codegen.interface.checks import null_check
from microtir.codegen.interface.constant_pools import ConstantPool, passed_constant_pools
from microtir.codegen.interface.devices import device_members, struct_name
from microtir.codegen.interface.parts import Draft, file_comment
from microtir.codegen.interface.pools import (
    WorkspacePool,
    internal_pools,
    passed_pools,
    workspace_pools,
)
from microtir.codegen.interface.runtime import MicrotvmPart
from microtir.codegen.interface.state import layout
from microtir.codegen.microtvm import abi_module
from microtir.codegen.microtvm.params import to_params
from microtir.codegen.printer.functions import FunctionText, c_function
from microtir.codegen.printer.layout import columns, struct_text
from microtir.codegen.printer.names import ScopedNames
from microtir.codegen.program import CProgram
from microtir.codegen.source_file import DataFile, SourceFile
from microtir.config.enums import Compatibility
from microtir.module.ir_module import ModelInfo, Port, PortKind
from microtir.support.code_templates import render
from microtir.support.names import MAX_C_NAME, c_names, constants_macro, macro_name, workspace_macro

_INPUTS, _OUTPUTS, _POOLS, _DEVICES = "inputs", "outputs", "workspace_pools", "devices"


@dataclass(frozen=True, slots=True)
class _Interface:
    """The C interface of microTVM for one program, from which its functions are printed.

    Args:
        prefix: start of every name.
        pools: workspace pools that are passed, members of the struct of pools; None where none is
            declared, and the workspace is ours.
        constants: constant pools that are passed, further members of it.
        members: microTVM's names of the tensors of `inputs` and of `outputs`.
        is_mapped: whether the tensors lie in the workspace.
    """

    program: CProgram
    model: ModelInfo
    prefix: str
    pools: tuple[WorkspacePool, ...] | None
    constants: tuple[ConstantPool, ...]
    members: dict[str, list[tuple[Port, str]]]
    is_mapped: bool

    def struct(self, name: str) -> str:
        return f"struct {self.prefix}_{name}"

    @property
    def structs(self) -> tuple[str, ...]:
        """Return the struct of pools, if there is one."""
        return (_POOLS,) if self.pools or self.constants else ()

    @property
    def has_instance(self) -> bool:
        """Return whether its callers have no place for a state: then there is one instance.

        Each graph executor has one of its own.
        """
        return bool(self.program.states) and not self.program.is_graph

    @property
    def has_constants(self) -> bool:
        """Return whether there is a pool of constants that holds something."""
        return any(pool.size for pool in self.constants)

    @property
    def memories(self) -> tuple[str, ...]:
        """Return what is passed on: the state, the workspace and pools of constants."""
        state = (f"{self.prefix}_begun()",) * self.has_instance
        constants = tuple(_member_of(pool) for pool in self.constants)
        if self.pools is None:
            return (*state, f"{self.prefix}_workspace", *constants)
        return (*state, *(_member_of(pool) for pool in self.pools), *constants)


def _member_of(pool: WorkspacePool | ConstantPool) -> str:
    return f"{_POOLS}->{pool.member}"


def abi_prefix(name: str) -> str:
    """Return what names begin with; microTVM spells a module's name in lower case."""
    return f"tvmgen_{name.lower()}"


def params_name(name: str) -> str:
    """Return what the file is called that holds a module's weights as TVM serialises them."""
    return f"{abi_prefix(name)}.params"


def data(draft: Draft) -> Iterator[DataFile]:
    """Yield the weights, by their names in C, as TVM serialises parameters, if they are a file."""
    program = draft.program
    if not program.has_external_params:
        return
    arrays = {array.name: array.data for array in program.constants}
    yield DataFile(params_name(program.name), to_params(arrays))


def files(draft: Draft) -> Iterator[SourceFile]:
    """Yield header and sources of the interface; a workspace that is ours is a file of its own."""
    program = draft.program
    interface = _interface(program, draft.model)
    prefix = interface.prefix
    paths = {f"{prefix}.h": "tvmgen.h.j2", f"{prefix}.c": "tvmgen.c.j2"}
    functions = list(_functions(interface))
    declarations: list[str] = []
    if not program.is_packed and not program.is_graph:
        declarations += _structs(interface)
    declarations += [function.declaration for function in functions]
    # The graph executor takes its workspace from the application's memory.
    if interface.pools is None and not program.is_graph:
        paths[f"{prefix}_workspace.c"] = "tvmgen_workspace.c.j2"
        comment = f"/* The workspace, which {prefix}_workspace.c defines. */"
        declarations.append(f"{comment}\nextern uint8_t *const {prefix}_workspace;")
    if abi_module.has_module(program):
        paths[f"{prefix}_system_lib.c"] = "tvmgen_system_lib.c.j2"
    header_includes, includes = _includes(interface)
    values = {
        "prefix": prefix,
        "guard": f"{macro_name(prefix)}_H_",
        "name": program.name,
        "macro": program.macro,
        "fingerprint": draft.fingerprint,
        "sizes": _sizes(interface),
        "memory": _memory(interface),
        "memory_title": "Bytes of the workspace"
        + ", and what constant pools hold" * interface.has_constants,
        "header_includes": header_includes,
        "includes": includes,
        "declarations": declarations,
        "data": list(_data_parts(interface)),
        "functions": "\n\n".join(f"TVM_DLL\n{function.definition}" for function in functions),
    }
    for path, template in paths.items():
        comment = file_comment(program, f"{path}: the interface of microTVM")
        yield SourceFile(path, render(f"c/{template}", comment=comment, **values))


def _includes(interface: _Interface) -> tuple[list[str], list[str]]:
    """Return what the header includes, and the source besides it."""
    program, tvm = interface.program, "tvm/runtime"
    of_header, own = [], []
    if program.is_graph:
        own += [f"{program.name}_graph.h", f"{tvm}/crt/internal/graph_executor/graph_executor.h"]
    if program.is_packed or program.config.needs_packed_wrapper():
        of_header.append(f"#include <{tvm}/c_runtime_api.h>")
        own += [f"{program.name}_packed.h", "microtir/runtime.h", f"{tvm}/crt/packed_arguments.h"]
    if abi_module.has_module(program):
        of_header.append(f"#include <{tvm}/crt/module.h>")
    if interface.has_constants:
        of_header += ["", f'#include "{program.name}_constant_pools.h"']
    if _packed_name(interface):
        own += [f"{tvm}/metadata_types.h"] * bool(interface.model.ports)
    return of_header, [f'#include "{path}"' for path in own]


def _data_parts(interface: _Interface) -> Iterator[str]:
    """Yield the state of the one instance, and what is said of the tensors, where they are used."""
    if interface.has_instance:
        values = {"name": interface.program.name, "prefix": interface.prefix}
        yield render("c/tvmgen_instance.c.j2", **values).rstrip("\n")
    if _packed_name(interface) and interface.model.ports:
        table = abi_module.tensor_table(interface.model, interface.prefix)
        yield "\n".join(["/* The inputs, then the outputs. */", *table])


def is_asked(program: CProgram) -> bool:
    """Return whether a model has it: a user's functions are called by no application of others."""
    return program.model is not None and program.config.compatibility is not Compatibility.NONE


def runtime_parts(program: CProgram) -> tuple[MicrotvmPart, ...]:
    """Return what the interface needs of microTVM's runtime; nothing where it is not asked for."""
    if not is_asked(program):
        return ()
    if not abi_module.has_module(program):
        return (MicrotvmPart.BASE,)
    executor = MicrotvmPart.GRAPH if program.is_graph else MicrotvmPart.AOT
    return (MicrotvmPart.BASE, MicrotvmPart.FUNCTIONS, executor)


def _interface(program: CProgram, model: ModelInfo) -> _Interface:
    config = program.config
    # Members are as long as microTVM makes them.
    longest = max((len(port.name) for port in model.ports), default=0) + MAX_C_NAME
    names = c_names([port.name for port in model.ports], limit=longest)
    members: dict[str, list[tuple[Port, str]]] = {_INPUTS: [], _OUTPUTS: []}
    for port, name in zip(model.ports, names, strict=True):
        members[_INPUTS if port.kind is PortKind.INPUT else _OUTPUTS].append((port, name))
    return _Interface(
        program=program,
        model=model,
        prefix=abi_prefix(program.name),
        pools=passed_pools(program) if config.declares_workspace() else None,
        constants=passed_constant_pools(program),
        members=members,
        is_mapped=any(port.offset is not None for port in model.ports),
    )


def _sizes(interface: _Interface) -> list[str]:
    macro = macro_name(interface.prefix)
    tensors = [tensor for group in interface.members.values() for tensor in group]
    pools = [
        *(workspace_macro("", p.plan.name, is_alone=False) for p in interface.pools or ()),
        *(constants_macro("", pool.plan.name) for pool in interface.constants),
    ]
    members = [name for _, name in tensors]
    longest = max(map(len, members), default=0) + MAX_C_NAME
    taken = ["WORKSPACE", *(pool.removeprefix("_") for pool in pools)]
    stems = c_names(members, taken, longest)
    return columns([
        (f"#define {macro}_{macro_name(stem)}_SIZE", str(port.type.bytes))
        for (port, _), stem in zip(tensors, stems, strict=True)
    ])  # fmt: skip


def _memory(interface: _Interface) -> list[str]:
    whole = _declared(interface.model.memory.workspace_size)
    rows = [(f"{macro_name(interface.prefix)}_WORKSPACE_SIZE", whole)]
    for pool in interface.pools or ():
        stem = workspace_macro(interface.prefix, pool.plan.name, is_alone=False)
        rows.append((f"{stem}_SIZE", _declared(pool.size)))
    for constants in interface.constants:
        stem = constants_macro(interface.prefix, constants.plan.name)
        rows.append((f"{stem}_SIZE", str(constants.size)))
        rows.append((f"{stem}_DATA", f"{constants.macro}_DATA" if constants.size else "{0}"))
    return columns([(f"#define {name}", text) for name, text in rows])


def _declared(size: int) -> str:
    """Return the bytes of an array that an application declares of a size: C has none of 0."""
    return str(max(size, 1))


def _structs(interface: _Interface) -> Iterator[str]:
    for group, tensors in interface.members.items():
        rows = [(f"void *{name};", f"/* {header.type_text(port)} */") for port, name in tensors]
        # C has no empty struct.
        yield struct_text(
            interface.struct(group), rows or [("uint8_t none;", "/* there is none */")]
        )
    if interface.structs:
        where = f"_ALIGNMENT of {interface.program.name}.h */"
        members = [(f"void *{pool.member};", pool.macro) for pool in interface.pools or ()]
        members += [(f"const void *{p.member};", p.macro) for p in interface.constants]
        rows = [(member, f"/* aligned to {macro}{where}") for member, macro in members]
        yield struct_text(interface.struct(_POOLS), rows)
    if interface.program.devices:
        yield struct_text(interface.struct(_DEVICES), device_members(interface.program))


def _packed_name(interface: _Interface) -> str:
    """Return the packed function of the interface; empty where there is none."""
    program = interface.program
    if program.is_packed:
        return f"{interface.prefix}_run"
    has_pools = interface.pools is not None or bool(interface.constants)
    if program.config.needs_packed_wrapper() and not has_pools and not program.is_graph:
        return f"{interface.prefix}_run_packed"
    return ""


def _functions(interface: _Interface) -> Iterator[FunctionText]:
    packed = _packed_name(interface)
    if not interface.program.is_packed and not interface.program.is_graph:
        yield from _unpacked_functions(interface)
    if packed:
        yield _packed_run(interface, packed)
    if interface.has_instance:
        yield _reset(interface)
    if abi_module.has_module(interface.program):
        listed = {}
        if packed:
            yield abi_module.metadata_function(interface.model, interface.prefix)
            listed = abi_module.listed_functions(interface.prefix, packed)
        yield abi_module.module_function(
            interface.program, interface.model, interface.prefix, listed
        )


def _unpacked_functions(interface: _Interface) -> Iterator[FunctionText]:
    if interface.is_mapped:
        yield from (_map(interface, group) for group in (_INPUTS, _OUTPUTS))
    yield _run(interface)
    if not interface.structs:
        yield _main(interface)


def _map(interface: _Interface, group: str) -> FunctionText:
    """Return `_map_inputs` or `_map_outputs`: where the tensors lie in the workspace."""
    pools = workspace_pools(interface.program)
    places = [
        f"(uint8_t *){_member_of(pools[port.pool])} + {port.offset}"
        if port.offset
        else _member_of(pools[port.pool])
        for port, _ in interface.members[group]
    ]
    body = [f"const {interface.struct(group)} mapped = {{{', '.join(places) or '0'}}};"]
    return c_function(
        f"{interface.struct(group)} {interface.prefix}_map_{group}",
        [f"{interface.struct(_POOLS)} *{_POOLS}"],
        [*([] if places else [f"(void){_POOLS};"]), *body, "return mapped;"],
        [f"The {group}, where they lie in the workspace."],
    )


def _run(interface: _Interface) -> FunctionText:
    """Return `_run`: from microTVM's structs to microtir's."""
    name = interface.program.name
    pools = list(interface.structs)
    pools += [_DEVICES] if interface.program.devices else []
    tensors = [] if interface.is_mapped else [_INPUTS, _OUTPUTS]
    body = _null_check(interface, [*tensors, *pools])
    if interface.is_mapped:
        body += [
            f"const {interface.struct(group)} {group} = {interface.prefix}_map_{group}({_POOLS});"
            for group in (_INPUTS, _OUTPUTS)
        ]
    access = "." if interface.is_mapped else "->"
    for group, own in ((_INPUTS, "given"), (_OUTPUTS, "made")):
        members = [f"{group}{access}{member}" for _, member in interface.members[group]]
        body.append(f"const struct {name}_{group} {own} = {{{', '.join(members) or '0'}}};")
    arguments = ["&given", "&made", *interface.memories]
    if interface.program.devices:
        states = ", ".join(f"{_DEVICES}->{device.name}" for device in interface.program.devices)
        body.append(f"const {struct_name(interface.program)} used = {{{states}}};")
        arguments.append("&used")
    body.append(f"return {name}_run({', '.join(arguments)});")
    lines = ["Runs the model once."]
    if interface.is_mapped:
        lines[0] = "Runs the model once on the tensors in the workspace, and overwrites the inputs."
    if interface.has_instance:
        lines.append(
            f"It goes on where the last run ended; {interface.prefix}_reset() forgets that."
        )
    if interface.pools is None or internal_pools(interface.program):
        lines.append("Not re-entrant: there is one workspace.")
    elif interface.has_instance:
        lines.append("Not re-entrant: there is one state.")
    return c_function(
        f"int32_t {interface.prefix}_run",
        [f"{interface.struct(group)} *{group}" for group in (*tensors, *pools)],
        body,
        [*lines, "", f"Returns 0, or a negative status that {name}_status_text() explains."],
    )


def _null_check(interface: _Interface, structs: list[str]) -> list[str]:
    pools = [_member_of(pool) for pool in interface.pools or () if pool.size]
    pools += [_member_of(pool) for pool in interface.constants if pool.size]
    return null_check(interface.program, [*structs, *pools])


def _packed_run(interface: _Interface, function: str) -> FunctionText:
    """Print a packed function: from microTVM's arguments to microtir's."""
    name, count = interface.program.name, len(interface.model.ports)
    # The configuration refuses declared pools.
    memories = _packed_memories(interface)
    total = count + len(memories)
    kinds = ", ".join(["MICROTIR_KIND_TENSOR"] * total)
    table = abi_module.tensor_table_name(interface.model, interface.prefix)
    arguments = f"args, type_codes, num_args, {count}, {table}, tensors, values"
    called = f"{name}_run" if interface.program.is_packed else f"{name}_run_packed"
    resource = "resource_handle" if interface.program.devices else "NULL"
    return c_function(
        f"int {function}",
        list(abi_module.PACKED_PARAMETERS),
        [
            f"static const int32_t kinds[] = {{{kinds}}};",
            *(f"static const int64_t {m.extent}[] = {{{m.bytes}}};" for m in memories),
            f"struct microtir_tensor tensors[{max(count, 1)}];",
            f"union microtir_value values[{total}];",
            *(f"const struct microtir_tensor {m.name} = {{{m.values}}};" for m in memories),
            "const int32_t status = tvm_packed_arguments(",
            f"        {arguments});",
            "(void)out_value;",
            *([] if interface.program.devices else ["(void)resource_handle;"]),
            "if (out_type_code != NULL) {",
            "    *out_type_code = kTVMNullptr;",
            "}",
            "if (status != MICROTIR_OK) {",
            "    return (int)status;",
            "}",
            *(f"values[{n}].v_tensor = &{m.name};" for n, m in enumerate(memories, count)),
            f"return (int){called}(values, kinds, {total}, NULL, NULL, {resource});",
        ],
        [
            "Runs the model once.",
            "Not re-entrant: there is one workspace.",
            "",
            "Arguments are DLTensors: the inputs, then the outputs. Returns 0, or a status that",
            f"microtir_status_text() or {name}_status_text() explains.",
        ],
    )


@dataclass(frozen=True, slots=True)
class _PackedMemory:
    """Memory that a packed function is given as a tensor of bytes.

    Args:
        name: of the tensor.
        extent: name of its shape.
        place: where it lies, as C.
        bytes: its size.
    """

    name: str
    extent: str
    place: str
    bytes: int

    @property
    def values(self) -> str:
        """Return what the tensor is initialised with."""
        return f"{self.place}, 1, {{MICROTIR_ELEMENT_UNSIGNED, 8}}, {self.extent}, NULL, 0"


def _packed_memories(interface: _Interface) -> list[_PackedMemory]:
    """Return what the packed function takes besides tensors: the state, then the workspace."""
    *others, workspace = interface.memories
    size = max(interface.model.memory.workspace_size, 1)
    state = [
        _PackedMemory("state", "state_extent", place, layout(interface.program).size)
        for place in others
    ]
    return [*state, _PackedMemory("memory", "extent", workspace, size)]


def _reset(interface: _Interface) -> FunctionText:
    """Return `_reset`: what microTVM lacked, since it had no states."""
    return c_function(
        f"int32_t {interface.prefix}_reset",
        [],
        [f"return {interface.program.name}_state_reset(&instance);"],
        [
            "Makes the model forget what it has seen; before its first run it has seen nothing.",
            "An addition to microTVM's interface.",
        ],
    )


def _main(interface: _Interface) -> FunctionText:
    """Return `___tvm_main__`: the tensors as arguments, as some applications call a model."""
    names = ScopedNames((*interface.program.file_names, "given", "made", "used"))
    arguments = {
        group: [names.reserve(member) for _, member in tensors]
        for group, tensors in interface.members.items()
    }
    body = [
        f"{interface.struct(group)} {own} = {{{', '.join(arguments[group]) or '0'}}};"
        for group, own in ((_INPUTS, "given"), (_OUTPUTS, "made"))
    ]
    if interface.program.devices:
        arguments[_DEVICES] = [names.reserve(device.name) for device in interface.program.devices]
        values = ", ".join(arguments[_DEVICES])
        body.append(f"{interface.struct(_DEVICES)} used = {{{values}}};")
    pointers = "&given, &made" + ", &used" * bool(interface.program.devices)
    parameters = [f"void *{name}" for group in arguments.values() for name in group]
    return c_function(
        f"int32_t {interface.prefix}___tvm_main__",
        parameters,
        [*body, f"return {interface.prefix}_run({pointers});"],
        [
            f"The same as {interface.prefix}_run: the inputs, then the outputs"
            + ", then the devices." * bool(interface.program.devices)
            + "." * (not interface.program.devices)
        ],
    )
