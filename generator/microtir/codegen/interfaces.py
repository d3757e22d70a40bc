"""Lists the interfaces of a program: a new one is one entry more.

Files stand in the order of the list; parts of one file stand in that of their places, and those of
one place in the order of the list.
"""

from __future__ import annotations

from microtir.codegen.interface import (
    canaries,
    constant_pools,
    devices,
    entry,
    graph,
    guard,
    header,
    integrity,
    packed,
    parameters,
    pools,
    state,
    steps,
    typed_view,
    weights,
)
from microtir.codegen.interface.parts import Interface, Part, Place, rendered
from microtir.codegen.interface.runtime import runtime_files
from microtir.codegen.microtvm import abi
from microtir.codegen.printer.externs import extern_files
from microtir.codegen.self_contained import self_contained

INTERFACES = (
    Interface(
        "devices",
        lambda program: program.devices,
        parts=lambda draft: [Part(Place.STRUCTS, devices.devices_struct(draft.program))],
    ),
    Interface("c", lambda _: True, parts=header.parts),
    Interface("model", lambda program: program.model, entry.run_entries, header.model_parts),
    Interface(
        "functions", lambda program: program.exported, entry.exported_entries, header.function_parts
    ),
    Interface("guard", lambda program: program.guard, parts=guard.parts),
    Interface("integrity", integrity.has_checks, parts=integrity.parts),
    Interface("canaries", lambda program: program.config.canaries, parts=canaries.parts),
    Interface("pools", lambda program: program.model, parts=pools.parts),
    Interface("weights", weights.linked, parts=weights.parts, files=weights.files),
    Interface(
        "parameters",
        lambda program: program.has_external_params,
        parts=lambda _: [rendered(Place.BYTE_ORDER, "byte_order.c.j2")],
        data=parameters.data,
    ),
    Interface(
        "constant pools",
        constant_pools.filled_pools,
        parts=constant_pools.parts,
        files=constant_pools.files,
        data=constant_pools.data,
    ),
    Interface("graph", lambda program: program.is_graph, graph.entries, graph.parts, graph.files),
    Interface("steps", lambda program: program.has_steps, steps.entries, steps.parts),
    Interface("state", lambda program: program.states, parts=state.parts),
    Interface(
        "packed operators",
        lambda program: program.config.has_packed_operators(),
        parts=packed.operator_parts,
    ),
    Interface(
        "packed",
        lambda program: program.is_packed,
        parts=packed.parts,
        files=lambda draft: [packed.file(draft, "packed.h")],
    ),
    Interface(
        "packed beside plain",
        lambda program: program.config.needs_packed_wrapper(),
        files=lambda draft: [packed.file(draft, name) for name in ("packed.h", "packed.c")],
    ),
    Interface(
        "system library",
        lambda program: program.config.runtime.system_lib,
        files=lambda draft: [packed.file(draft, "system_lib.c", "the system library")],
    ),
    Interface(
        "typed view",
        lambda program: program.model and not program.is_packed,
        parts=typed_view.parts,
    ),
    Interface(
        "externs", lambda program: program.externs, files=lambda draft: extern_files(draft.program)
    ),
    Interface("microTVM", abi.is_asked, files=abi.files, data=abi.data, finish=self_contained),
    Interface(
        "runtime",
        lambda program: (
            program.is_graph
            or program.is_packed
            or program.config.runtime.system_lib
            or abi.is_asked(program)
        ),
        files=lambda draft: runtime_files(abi.runtime_parts(draft.program)),
    ),
)
