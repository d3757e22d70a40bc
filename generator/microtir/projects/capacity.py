"""Checks whether the models fit a board, before anything is compiled."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from microtir.artifact import Artifact, Footprint
from microtir.boards.board import Board, BoardMemory
from microtir.boards.errors import ModelTooLargeError
from microtir.config import CompilationConfig, Feature
from microtir.errors import Fix
from microtir.projects.models import Models, describe_models
from microtir.projects.options import ProjectOptions

# Machine code per character of generated C, less than for any model that was measured (0.10 to
# 0.16 at -Os): what is refused here could not have been linked, and what passes in spite of being
# too large is refused by the linker.
CODE_PER_CHARACTER = 0.08

CODE = "code of the models, estimated"
SAMPLES = "samples"
TENSORS = "tensors that are passed row by row"
CHECKS = "canaries, and a stack for faults"
_OF_THE_APPLICATION = (CODE, SAMPLES, TENSORS)


@dataclass(frozen=True, slots=True)
class Need:
    """A need for bytes: of the memory that `section` is in, if it has one."""

    what: str
    bytes: int
    section: str = ""


@dataclass(frozen=True, slots=True)
class MemoryDemand:
    """Everything that a project needs, by the memory in which it lies without a section."""

    flash: tuple[Need, ...]
    ram: tuple[Need, ...]


# What templates/projects/baremetal/debug_checks has: words on both sides of each memory; a stack,
# where the registers of a fault are, and a gap in front of it.
_CANARY_BYTES = 2 * 32
_FAULT_BYTES = 512 + 8


def check_bytes(models: Models) -> int:
    """Return the bytes of RAM that debug checks take."""
    watched = len(models.shared_pools) + sum(model.has_state for model in models.models)
    return _FAULT_BYTES + _CANARY_BYTES * watched


def demand(models: Models, ram: Footprint) -> MemoryDemand:
    """Return what a project needs.

    Args:
        models: with their samples.
        ram: of all of them; its data are weights that start-up code copies into RAM.
    """
    characters = sum(model.source_bytes for model in models.models)
    samples = sum(array.bytes for array in models.sample_arrays)
    constants = [
        Need(f"constants in pool {pool.name}", pool.bytes, pool.section)
        for model in models.models
        for pool in model.constants
        if pool.section
    ]
    internal = [pool for model in models.models for pool in model.internal]
    pools = [Need(f"pool {p.pools[0].name}", p.bytes, p.section) for p in models.shared_pools]
    pools += [Need(f"pool {p.name}", p.size, p.section) for p in internal]
    in_sections = [pool for pool in pools if pool.section]
    flash = (
        Need("weights", max(models.weights_bytes - _total(constants), 0)),
        *constants,
        Need(CODE, int(characters * CODE_PER_CHARACTER)),
        Need(SAMPLES, samples),
    )
    by_rows = models.tensor_bytes - ram.io
    needs = (
        Need("workspace", ram.planned - _total(in_sections)),
        *in_sections,
        Need("inputs and outputs", ram.io),
        *((Need("state", ram.state),) if ram.state else ()),
        Need("stack", ram.stack),
        *((Need("copy of the weights", ram.data),) if ram.data else ()),
        *((Need("reserve of the board", ram.reserve),) if ram.reserve else ()),
        *((Need(TENSORS, by_rows),) if by_rows else ()),
        *((Need(CHECKS, check_bytes(models)),) if models.has_checks else ()),
    )
    return MemoryDemand(flash, needs)


def copied_weights(artifacts: Sequence[Artifact], board: Board) -> int:
    """Return the bytes of weights that lie in RAM, too: an AVR's flash needs special code."""
    return sum(
        artifact.metadata.weights_bytes
        for artifact in artifacts
        if copies_weights(artifact.module.require_config("project"), board)
    )


def copies_weights(config: CompilationConfig, board: Board) -> bool:
    """Return whether start-up code copies the weights of a program into RAM."""
    reads_flash = config.should_link_params() and config.primary_target().has(Feature.AVR_PROGMEM)
    return board.target.has(Feature.AVR_PROGMEM) and not reads_flash


def project_footprint(
    models: Models, artifacts: Sequence[Artifact], board: Board, stack: int
) -> Footprint:
    """Return what models take of a board's RAM, with a stack that is set aside for them."""
    data = copied_weights(artifacts, board)
    return models.footprint(data=data, stack=stack, reserve=board.reserve)


def check_fit(board: Board, needs: MemoryDemand) -> None:
    """Refuse what is too large for the board.

    Raises:
        ModelTooLargeError: with the table of what needs how much, and where it exceeds.
    """
    placed = by_memory(board, needs)
    exceeded = [(memory, parts) for memory, parts in placed if _total(parts) > memory.size]
    if not exceeded:
        return
    tables = "\n".join(line for memory, parts in placed for line in _table(memory, parts))
    memory, parts = exceeded[0]
    largest = max(parts, key=lambda need: need.bytes)
    advice = (
        f"the largest part is '{largest.what}' with {largest.bytes} bytes; take a smaller model or "
        "a larger board, or build with"
    )
    raise ModelTooLargeError(
        f"the model is too large for the board. It needs {_total(parts)} bytes of {memory.name}, "
        f"which has {memory.size}\n{tables}",
        where=f"board '{board.name}'",
        fix=Fix(
            f"{advice} optimize='ram-least' or 'flash'", f"{advice} --optimize ram-least or flash"
        ),
    )


@dataclass(frozen=True, slots=True)
class MemoryUse:
    """The bytes that a program takes of a memory of a board, the application aside."""

    memory: BoardMemory
    what: str
    bytes: int
    largest: Need


def memory_uses(board: Board, artifact: Artifact, code: int) -> tuple[MemoryUse, ...]:
    """Return what a model takes of each memory of a board that it needs.

    Args:
        board: whose usual stack is set aside.
        artifact: the compiled model.
        code: bytes of code, compiled or estimated.
    """
    models = describe_models((artifact,), ProjectOptions())
    needs = demand(models, project_footprint(models, (artifact,), board, board.usual_stack))
    arrays, ram = (
        [need for need in part if need.what not in _OF_THE_APPLICATION]
        for part in (needs.flash, needs.ram)
    )
    flash = (*arrays, Need("code", code))
    return tuple(
        MemoryUse(
            memory,
            _listed([part.what for part in parts if part.bytes]),
            _total(parts),
            max(parts, key=lambda need: need.bytes),
        )
        for memory, parts in by_memory(board, MemoryDemand(flash, tuple(ram)))
    )


def workspace_room(board: Board, config: CompilationConfig, io: int) -> int | None:
    """Return the bytes that a board has for a workspace and a state, if known before they are made.

    It is what `memory_uses` leaves free of the memories that the pools lie in. Where the program or
    its weights are in the same memory nobody knows their size yet. Less than 0 if the rest alone is
    too much.

    Args:
        board: whose usual stack and reserve are set aside.
        config: of the model.
        io: its inputs and outputs outside of the workspace.
    """
    sections = [pool.pool_info_properties.section for pool in config.workspace_pools]
    if board.data is None:
        return None
    needs = [_memory(board, Need("pool", 0, section), board.data) for section in sections]
    memories = [memory for memory in board.memories if memory in needs]
    room = sum(memory.size for memory in memories)
    if board.data not in memories:
        return room
    if board.code == board.data or copies_weights(config, board):
        return None
    beside = Footprint(0, 0, io, stack=board.usual_stack, reserve=board.reserve)
    return room - beside.total


def _listed(names: Sequence[str]) -> str:
    *some, last = names or ("nothing",)
    return f"{', '.join(some)} and {last}" if some else last


def by_memory(board: Board, needs: MemoryDemand) -> list[tuple[BoardMemory, list[Need]]]:
    """Return the memories of a board that are needed, each with what lies in it."""
    if board.code is None or board.data is None:
        return []
    places = [(_memory(board, need, board.code), need) for need in needs.flash]
    places += [(_memory(board, need, board.data), need) for need in needs.ram]
    all_of = [(m, [need for place, need in places if place == m]) for m in board.memories]
    return [(memory, parts) for memory, parts in all_of if parts]


def _memory(board: Board, need: Need, usual: BoardMemory) -> BoardMemory | None:
    """Return the memory of a need: by the name of its section, else the usual one.

    Nobody but the linker knows where a section lies that the board has no memory for.
    """
    if not need.section or need.section.startswith((".rodata", ".data", ".bss")):
        return usual
    name = need.section.lstrip(".").partition(".")[0]
    return next((memory for memory in board.memories if memory.name == name), None)


def _total(parts: Sequence[Need]) -> int:
    return sum(need.bytes for need in parts)


def _table(memory: BoardMemory, parts: Sequence[Need]) -> list[str]:
    rows = [(need.what, need.bytes) for need in parts]
    total = _total(parts)
    excess = total - memory.size
    verdict = f"{excess} too many" if excess > 0 else f"{-excess} left"
    rows += [("total", total), (f"{memory.name} has", memory.size)]
    lines = [f"  {what:<32}{size:>10}" for what, size in rows]
    return [f"  {memory.name} ({memory.kind.value}), bytes", *lines, f"  {'':<32}{verdict}"]
