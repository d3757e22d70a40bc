"""Prints a lowered module as all of its source files: a loop over its interfaces."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from microtir.codegen.bodies import body_parts
from microtir.codegen.description import metadata_of, with_files
from microtir.codegen.interface.parameters import identity
from microtir.codegen.interface.parts import Draft, Interface, Part, Place, file_comment
from microtir.codegen.interface.statuses import returned, status_lines
from microtir.codegen.interfaces import INTERFACES
from microtir.codegen.measured import measured
from microtir.codegen.metadata import METADATA_FILE, Metadata
from microtir.codegen.printer.definitions import in_section
from microtir.codegen.printer.expressions import Requirements
from microtir.codegen.printer.externs import text_of
from microtir.codegen.printer.functions import FunctionText, function_text
from microtir.codegen.printer.rows import is_row_port, row_port_text
from microtir.codegen.program import CProgram, make_program
from microtir.codegen.source_file import DataFile, SourceFile
from microtir.errors import UsageError
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


def emit(module: IRModule, interfaces: Sequence[Interface] = INTERFACES) -> Printed:
    """Print a lowered module as C99: a header, a source, and what its interfaces add.

    Args:
        module: what is printed.
        interfaces: those of which a program has what it asks for.

    Raises:
        UsageError: the module is not lowered, or has no function to call.
        ConfigMissing: the module has no configuration.
        TemplateError: a template is broken.
    """
    program = _program(module)
    asked = [interface for interface in interfaces if interface.is_asked(program)]
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
    entries = [f for interface in asked for f in interface.entries(program, requirements)]
    is_given = program.has_external_params or program.given_pools
    number = identity(program, _code(bodies)) if is_given else ""
    figures = measured(module)
    metadata = metadata_of(program, figures, number)
    fingerprint = _fingerprint(program, [*bodies, *entries], metadata)
    draft = Draft(
        program, bodies, entries, requirements, of_twins, number, figures.stacks, fingerprint
    )
    header, source = _own_files(draft, [part for i in asked for part in i.parts(draft)])
    files: Sequence[SourceFile] = (header, source, *(f for i in asked for f in i.files(draft)))
    for interface in asked:
        files = interface.finish(files)
    data = tuple(file for interface in asked for file in interface.data(draft))
    text = next(file.text for file in files if file.path == source.path)
    paths = [*(file.path for file in files), METADATA_FILE, *(file.path for file in data)]
    metadata = with_files(metadata, paths, text)
    return Printed(metadata, (*files, SourceFile(METADATA_FILE, metadata.text)), data)


def _program(module: IRModule) -> CProgram:
    if not module.is_lowered:
        raise UsageError("the module is not lowered", where="codegen", fix="call build(module)")
    program = make_program(module)
    if not module.model and not program.exported:
        raise UsageError(
            "the module exports no function, so an application could not call it",
            where=program.name,
            legal="at least one PrimFunc with exported=True",
        )
    return program


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


def _own_files(draft: Draft, of_interfaces: Sequence[Part]) -> Iterator[SourceFile]:
    """Yield the header and the source file, which every program has."""
    program = draft.program
    parts = [*body_parts(draft), *of_interfaces]
    parts += [Part(Place.ENTRIES, entry.definition) for entry in draft.entries]
    statuses = returned(program, (part.text for part in parts))
    lines = status_lines(program, statuses)
    parts.append(Part(Place.STATUSES, f"/* Statuses. */\n{lines}"))
    uses_runtime = program.is_graph or program.is_packed
    values = {
        "name": program.name,
        "macro": program.macro,
        "fingerprint": draft.fingerprint,
        "statuses": statuses,
        "other_status": "microtir_status_text(status)" if uses_runtime else '"unknown status"',
        "header_parts": _texts(parts, Place.TENSORS, Place.CHECKS),
        "cplusplus_parts": _texts(parts, Place.CPLUSPLUS, Place.CPLUSPLUS),
        "system_includes": _texts(parts, Place.SYSTEM_INCLUDES, Place.SYSTEM_INCLUDES),
        "includes": _texts(parts, Place.INCLUDES, Place.CONSTANT_INCLUDES),
        "settings": _texts(parts, Place.SETTINGS, Place.SETTINGS),
        "source_parts": [
            in_section(text, program.macro) for text in _texts(parts, Place.TYPES, Place.PACKED)
        ],
    }
    model = program.model
    title = f"the model '{model.name}'" if model else "functions compiled from TIR"
    for suffix, template in (("h", "c/header.h.j2"), ("c", "c/source.c.j2")):
        name = f"{program.name}.{suffix}"
        comment = file_comment(program, f"{name}: {title}", with_options=suffix == "h")
        yield SourceFile(name, render(template, comment=comment, **values))


def _texts(parts: Sequence[Part], first: Place, last: Place) -> list[str]:
    """Return the texts from one place to another, in the order of the places."""
    places = list(Place)
    between = places[places.index(first) : places.index(last) + 1]
    return [part.text for place in between for part in parts if part.place is place]
