"""Prints a lowered module as all of its source files."""

from __future__ import annotations

import hashlib
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from microtir.codegen.description import metadata_of, with_files
from microtir.codegen.flash import flash_readers
from microtir.codegen.interface import header, state
from microtir.codegen.interface.constant_pools import (
    constant_pools,
    constants_struct,
    passed_constant_pools,
    pool_bytes,
    pool_file,
    pool_identity,
    pool_parts,
)
from microtir.codegen.interface.devices import devices_struct, driver_prototypes
from microtir.codegen.interface.entry import exported_entry, model_entries
from microtir.codegen.interface.graph import GraphText, graph_entries, graph_files, graph_text
from microtir.codegen.interface.packed import (
    entry_wrappers,
    operator_wrappers,
    packed_files,
    registered,
)
from microtir.codegen.interface.parameters import file_bytes, file_name, identity
from microtir.codegen.interface.pools import internal_pools, passed_pools, workspace_pools
from microtir.codegen.interface.runtime import runtime_files
from microtir.codegen.interface.statuses import Status, returned
from microtir.codegen.interface.steps import step_entries, step_macros
from microtir.codegen.interface.typed_view import typed_view
from microtir.codegen.measured import measured
from microtir.codegen.metadata import METADATA_FILE, Metadata
from microtir.codegen.microtvm.abi import abi_files, abi_parameters, abi_parts, params_name
from microtir.codegen.printer.constants import value_lines
from microtir.codegen.printer.expressions import Requirements
from microtir.codegen.printer.externs import extern_files, prototype, text_of
from microtir.codegen.printer.functions import FunctionText, function_text, merges
from microtir.codegen.printer.helpers import with_dependencies
from microtir.codegen.printer.intrinsics import support_text
from microtir.codegen.printer.layout import INDENT, WIDTH, block_comment
from microtir.codegen.printer.rows import is_row_port, row_port_text
from microtir.codegen.program import STATE_STATUS, CProgram, make_program
from microtir.codegen.self_contained import self_contained
from microtir.codegen.source_file import DataFile, SourceFile
from microtir.config import Feature
from microtir.config.enums import Compatibility
from microtir.errors import UsageError
from microtir.measure import Stacks
from microtir.measure.functions import has_intrinsics
from microtir.module.ir_module import IRModule
from microtir.support.code_templates import render


@dataclass(frozen=True, slots=True)
class Printed:
    """All files that are generated for a program, and the facts about them.

    `sources` are texts, `metadata.json` at the end, which says `metadata`. `data` are the constants
    where they are no arrays of the code: one file of parameters, or one for each constant pool that
    is passed.
    """

    metadata: Metadata
    sources: tuple[SourceFile, ...]
    data: tuple[DataFile, ...] = ()


def emit(module: IRModule) -> Printed:
    """Print a lowered module as C99: header, source, weights, metadata, packed interface.

    Raises:
        UsageError: the module is not lowered, or has no function to call.
        ConfigMissing: the module has no configuration.
        TemplateError: a template is broken.
    """
    program = _program(module)
    # What only the twins of assembly call would be unused where the assembly is compiled.
    requirements, of_twins = Requirements(set()), Requirements(set())
    bodies = [
        row_port_text(program, function)
        if is_row_port(function)
        else function_text(
            program, function, of_twins if function in program.assembly else requirements
        )
        for function in program.functions
        if not (program.model and function is program.entry)
    ]
    entries = _entries(program, requirements)
    graph = None
    if program.model and program.is_graph:
        graph = graph_text(program, program.model, requirements)
    is_given = program.has_external_params or program.given_pools
    number = identity(program, _code(bodies)) if is_given else ""
    figures = measured(module)
    stacks = figures.stacks
    metadata = metadata_of(program, figures, number)
    fingerprint = _fingerprint(program, [*bodies, *entries], metadata)
    microtvm_abi = _microtvm_abi(program, fingerprint)
    parts = abi_parts(program) if microtvm_abi else ()
    floats = header.float_lines(program, requirements, of_twins)
    needs_runtime = program.is_graph or program.is_packed or program.config.runtime.system_lib
    statuses = returned(program, [*bodies, *entries, *(graph.nodes if graph else ())])
    source = _source(program, bodies, entries, requirements, of_twins, graph, fingerprint, statuses)
    files: tuple[SourceFile, ...] = (
        SourceFile(
            f"{program.name}.h", _header(program, stacks, fingerprint, number, floats, statuses)
        ),
        SourceFile(f"{program.name}.c", source),
        *_weights(program, fingerprint),
        *_pool_initialisers(program, number),
        *(graph_files(program, program.model) if program.model and graph else ()),
        *packed_files(program, fingerprint),
        *extern_files(program),
        *microtvm_abi,
        *(runtime_files(parts) if needs_runtime or microtvm_abi else ()),
    )
    if microtvm_abi:
        files = self_contained(files)
        source = next(file.text for file in files if file.path == f"{program.name}.c")
    paths = [*(file.path for file in files), METADATA_FILE]
    paths += [file_name(program)] * program.has_external_params
    if program.has_external_params and microtvm_abi:
        paths.append(params_name(program.name))
    paths += [pool_file(program, pool) for pool in passed_constant_pools(program) if pool.size]
    metadata = with_files(metadata, paths, source)
    sources = (*files, SourceFile(METADATA_FILE, metadata.text))
    return Printed(metadata, sources, tuple(_data_files(program, metadata)))


def _microtvm_abi(program: CProgram, fingerprint: str) -> tuple[SourceFile, ...]:
    """Return what `compatibility` asks for.

    A user's functions are called by no application of others.
    """
    if program.model is None or not _has_microtvm_abi(program):
        return ()
    return abi_files(program, program.model, fingerprint)


def _has_microtvm_abi(program: CProgram) -> bool:
    return program.model is not None and program.config.compatibility is not Compatibility.NONE


def _data_files(program: CProgram, metadata: Metadata) -> Iterator[DataFile]:
    """Yield the constants that are no arrays."""
    facts = metadata.parameters
    if facts is not None:
        yield DataFile(facts.file, file_bytes(program, facts.identity))
        if _has_microtvm_abi(program):
            yield abi_parameters(program)
        return
    for pool, known in zip(constant_pools(program), metadata.constant_pools, strict=True):
        if known.file is not None and known.identity is not None:
            yield DataFile(known.file, pool_bytes(program, pool, known.identity))


def _program(module: IRModule) -> CProgram:
    if not module.is_lowered:
        raise UsageError("the module is not lowered", where="codegen", fix="use build(module)")
    program = make_program(module)
    if not module.model and not program.exported:
        raise UsageError(
            "the module has no function that can be called from outside",
            where=program.name,
            legal="at least one PrimFunc with exported=True",
        )
    return program


def _entries(program: CProgram, requirements: Requirements) -> list[FunctionText]:
    if program.model and program.is_graph:
        return graph_entries(program, program.model, requirements)
    if program.model:
        steps = step_entries(program, program.model, requirements) if program.has_steps else []
        return [*model_entries(program, program.model, requirements), *steps]
    return [exported_entry(program, function, requirements) for function in program.exported]


def _fingerprint(program: CProgram, functions: list[FunctionText], metadata: Metadata) -> str:
    """Return a number that differs between any two programs: header and sources must match."""
    digest = hashlib.sha256(metadata.text.encode())
    for text in _code(functions):
        digest.update(text.encode())
    for extern in program.externs:
        for source in extern.sources:
            digest.update(text_of(source).encode())
    for array in program.constants:
        digest.update(array.declaration.encode())
        digest.update(array.data.tobytes())
    return f"0x{digest.hexdigest()[:8]}"


def _code(functions: list[FunctionText]) -> Iterator[str]:
    """Yield everything of functions but their comments."""
    for function in functions:
        yield from (function.signature, function.body, function.assembly)


def _has_assembly(program: CProgram) -> bool:
    """Return whether micro-kernels are lists of instructions, and not bodies in intrinsics."""
    return bool(program.assembly) and not any(map(has_intrinsics, program.assembly))


def _has_vectors(program: CProgram) -> bool:
    bodies = (f.kernel.native for f in program.assembly if f.kernel is not None)
    return any(native is not None and native.needs is Feature.MVE for native in bodies)


def _has_floats(program: CProgram) -> bool:
    """Return whether lists of instructions for the DSP extension take the FPU, too."""
    natives = (f.kernel.native for f in program.assembly if f.kernel is not None)
    rescalings = (native.values.get("rescaling") for native in natives if native is not None)
    return any(isinstance(r, Mapping) and r.get("in_float") is True for r in rescalings)


def _structs(program: CProgram) -> list[str]:
    """Return the structs of tensors that the function that runs a model takes."""
    if program.model is None:
        return []
    return header.structs(program, program.model)


def _public_structs(program: CProgram) -> list[str]:
    """Return those that a caller needs: packed arguments are tensors, and bytes of a state."""
    return (
        state.struct(program)
        if program.is_packed
        else [
            *_structs(program),
            *state.struct(program),
        ]
    )


def _header(
    program: CProgram,
    stacks: Stacks,
    fingerprint: str,
    number: str,
    floats: str,
    statuses: Sequence[Status],
) -> str:
    model = program.model
    return render(
        "c/header.h.j2",
        comment=header.file_comment(
            program, f"{program.name}.h: {_title(program)}", with_options=True
        ),
        name=program.name,
        macro=program.macro,
        fingerprint=fingerprint,
        ports=header.port_sections(program, model) if model else [],
        floats=floats,
        memory=header.memory_lines(program, number),
        stack=stacks.best.bytes,
        stack_in_c=stacks.in_c.bytes,
        stack_unoptimised=stacks.unoptimised.bytes,
        has_assembly=_has_assembly(program),
        has_vectors=_has_vectors(program),
        has_floats=_has_floats(program),
        pools=header.pool_macros(program),
        has_sections=any(pool.section for pool in passed_pools(program))
        or any(pool.section for pool in passed_constant_pools(program)),
        steps=step_macros(program, model) if model and program.has_steps else "",
        statuses=header.status_lines(program, statuses),
        structs=[*devices_struct(program), *_public_structs(program)],
        functions=header.prototypes(program),
        has_state=bool(program.states),
        is_packed=program.is_packed,
        view=typed_view(program, model) if model and not program.is_packed else None,
    )


def _source(
    program: CProgram,
    bodies: list[FunctionText],
    entries: list[FunctionText],
    requirements: Requirements,
    of_twins: Requirements,
    graph: GraphText | None,
    fingerprint: str,
    statuses: Sequence[Status],
) -> str:
    helpers = with_dependencies(requirements.helpers)
    has_bodies = any(has_intrinsics(kernel) for kernel in program.assembly)
    every = with_dependencies(requirements.helpers | of_twins.helpers)
    return render(
        "c/source.c.j2",
        comment=header.file_comment(program, f"{program.name}.c: {_title(program)}"),
        name=program.name,
        macro=program.macro,
        fingerprint=fingerprint,
        has_weights=any(array.offset is None for array in program.constants),
        has_external_params=program.has_external_params or bool(program.given_pools),
        constants_struct="" if graph else constants_struct(program),
        is_packed=program.is_packed,
        graph=graph,
        structs=_structs(program) if program.is_packed else [],
        state=_state_values(program),
        status=STATE_STATUS,
        operators=operator_wrappers(program),
        wrappers=entry_wrappers(program) if program.is_packed else [],
        registered=registered(program),
        function_count=len(registered(program)),
        uses_runtime=program.is_graph or program.is_packed,
        is_model=program.model is not None,
        pools=internal_pools(program),
        has_pools=any(pool.size for pool in workspace_pools(program)),
        uses_math=requirements.math or of_twins.math,
        uses_double=requirements.double or of_twins.double,
        uses_floats=requirements.floats or of_twins.floats,
        fuses_floats=requirements.fuses_floats or of_twins.fuses_floats,
        prototypes=[*driver_prototypes(program), *map(prototype, program.externs)],
        helpers=helpers,
        twin_helpers=[helper for helper in every if helper not in helpers],
        functions=bodies,
        has_assembly=_has_assembly(program),
        has_shared=any(map(merges, program.functions)),
        has_vectors=_has_vectors(program),
        has_floats=_has_floats(program),
        intrinsics=support_text(program.assembly, program.name, program.macro)
        if has_bodies
        else "",
        body_macro=f"{program.macro}_{'VECTORS' if has_bodies else 'ASSEMBLY'}",
        entries=entries,
        statuses=[
            {"name": f"{program.macro}_{status.name}", "text": status.text} for status in statuses
        ],
    )


def _state_values(program: CProgram) -> dict[str, object]:
    """Return what the functions of a state are printed from; nothing for a model without."""
    if not program.states:
        return {}
    return {
        "members": state.members(program),
        "identity": state.identity(program),
        "version": state.VERSION,
    }


def _weights(program: CProgram, fingerprint: str) -> Iterator[SourceFile]:
    arrays = [array for array in program.constants if array.offset is None]
    if not arrays:
        return
    pools = constant_pools(program)
    values = {
        "name": program.name,
        "macro": program.macro,
        "fingerprint": fingerprint,
        "has_sections": any(pool.section for pool in pools if pool.is_internal),
        "flash_readers": flash_readers(program),
        "uses_math": any(array.needs_math_header for array in arrays),
        "arrays": [
            {
                "declaration": array.declaration,
                "alignment": array.alignment,
                "comment": "\n".join(
                    block_comment(
                        textwrap.wrap(f"{', '.join(array.users)}: {array.bytes} bytes", WIDTH - 6)
                    )
                ),
                "section": "" if array.pool is None else pools[array.pool].section,
                "lines": [INDENT + line for line in value_lines(array.data)],
            }
            for array in arrays
        ],
    }
    for suffix, title in (("h", "declarations for"), ("c", "values for")):
        name = f"{program.name}_weights.{suffix}"
        comment = header.file_comment(program, f"{name}: constants, {title} {program.name}.c")
        yield SourceFile(name, render(f"c/weights.{suffix}.j2", comment=comment, **values))


def _pool_initialisers(program: CProgram, number: str) -> Iterator[SourceFile]:
    """Yield what memory for constant pools that are passed is initialised with, as macros."""
    pools = [pool for pool in passed_constant_pools(program) if pool.size]
    if not pools:
        return
    name = f"{program.name}_constant_pools.h"
    values = {
        "comment": header.file_comment(program, f"{name}: what constant pools hold"),
        "macro": program.macro,
        "pools": [
            {
                "name": pool.plan.name,
                "macro": pool.macro,
                "file": pool_file(program, pool),
                "parts": [
                    {"comment": title, "lines": value_lines(content)}
                    for title, content in pool_parts(program, pool, pool_identity(pool, number))
                ],
            }
            for pool in pools
        ],
    }
    yield SourceFile(name, render("c/constant_pools.h.j2", **values))


def _title(program: CProgram) -> str:
    model = program.model
    return f"the model '{model.name}'" if model else "functions compiled from TIR"
