"""Prints what a model keeps from one run to the next: a struct of the caller, and its functions."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from microtir.codegen.interface.integrity import has_checks, state_identity
from microtir.codegen.interface.parts import Draft, Part, Place, rendered
from microtir.codegen.printer.c_types import C_TYPES
from microtir.codegen.printer.constants import value_lines
from microtir.codegen.printer.layout import INDENT, struct_text
from microtir.codegen.program import STATE_STATUS, CProgram
from microtir.module.ir_module import ModelInfo, StatePort
from microtir.support.arrays import Array
from microtir.support.encoding import c_comment
from microtir.tir.memory_plan import STATE_IDENTITY_BYTES, StateLayout

_VERSION, _VERSION_WITH_SUM = 1, 2
"""Versions of the format in which the bytes of a state are saved."""

HEADER_BYTES = 8
"""Version and identity before the values that are saved; the latter may be combined with a sum."""


@dataclass(frozen=True, slots=True)
class Member:
    """A state as a member of the struct.

    Args:
        port: the state.
        fill: the byte that its initial value consists of, or None.
        lines: what its initial value repeats as lines of an initialiser, where that are several
            bytes.
        repeats: how often, if not once.
        period: how many elements are repeated.
    """

    port: StatePort
    fill: int | None
    lines: tuple[str, ...]
    repeats: int = 0
    period: int = 0

    @property
    def name(self) -> str:
        return self.port.c_name

    @property
    def c_type(self) -> str:
        return C_TYPES[self.port.type.dtype]

    @property
    def elements(self) -> int:
        return self.port.type.elements


def _members(program: CProgram) -> list[Member]:
    return [_member(port) for port in program.states]


def identity(program: CProgram) -> str:
    """Return a number that differs between models: what was saved of one fits no other.

    It is that of the model file, of the integers that were made of it, and of its states, and not
    of the code: what was saved outlives an update that changes nothing but how the model is
    compiled.
    """
    model = program.model
    assert model is not None, "functions keep no state"
    digest = hashlib.sha256(f"{model.source_sha256}{model.quantised_sha256}".encode())
    for port in program.states:
        digest.update(f"{port.name} {port.type}".encode())
        assert port.initial is not None, "only what was lowered is printed"
        digest.update(port.initial.tobytes())
    return f"0x{digest.hexdigest()[:8]}"


def layout(program: CProgram) -> StateLayout:
    """Return where the members of the struct lie."""
    return StateLayout.of([(port.alignment, port.type.bytes) for port in program.states])


def saved_size(program: CProgram) -> int:
    """Return the bytes that a state is saved as."""
    return HEADER_BYTES + sum(port.type.bytes for port in program.states)


def _struct(program: CProgram) -> str:
    """Return the type of the state."""
    whole, end = layout(program), STATE_IDENTITY_BYTES
    # Not every CPU aligns by the size of an element, and the layout is the same on all.
    identity_text = f"{program.macro}_ALIGNED({whole.alignment}) uint32_t identity;"
    rows = [(identity_text, "/* set by the function that initialises the state */")]
    for member, offset in zip(_members(program), whole.offsets, strict=True):
        text = f"{member.c_type} {member.name}[{member.elements}];"
        if offset > end:
            text = f"{program.macro}_ALIGNED({member.port.alignment}) {text}"
        end = offset + member.port.type.bytes
        shape = "".join(f"[{extent}]" for extent in member.port.type.shape)
        title = f"'{member.port.name}': {member.port.type.dtype.value}{shape}"
        rows.append((text, f"/* {c_comment(title)} */"))
    comment = "/* What the model keeps between runs. Several instances share code and weights. */"
    return f"{comment}\n{struct_text(f'struct {program.name}_state', rows)}"


def macros(program: CProgram) -> list[tuple[str, str]]:
    """Return the macros of a state's memory, without the start of their names."""
    if not program.states:
        return []
    return [
        ("STATE_SIZE", f"{layout(program).size} /* of struct {program.name}_state */"),
        ("STATE_ALIGNMENT", str(layout(program).alignment)),
        ("STATE_SAVED_SIZE", str(saved_size(program))),
    ]


def run_checks(program: CProgram) -> list[str]:
    """Return the check that a run was given a state of this model; nothing for one without."""
    if not program.states:
        return []
    other = f"state->identity != {state_identity(program, identity(program))}"
    misaligned = f"(uintptr_t)state % {program.macro}_STATE_ALIGNMENT != 0"
    return [f"if ({misaligned} || {other}) {{", f"    return {program.macro}_{STATE_STATUS};", "}"]


def state_place(port: StatePort, model: ModelInfo) -> str:
    """Return where a run finds a state: of several values the one whose turn it is."""
    if port.turns == 1:
        return f"state->{port.c_name}"
    elements = port.type.elements // port.turns
    return f"&state->{port.c_name}[{_counter(model)} % {port.turns}u * {elements}u]"


def next_turn(model: ModelInfo) -> list[str]:
    """Return what lets the next run take the next values, where states have several."""
    turns = math.lcm(*(port.turns for port in model.states))
    if turns == 1:
        return []
    counter = _counter(model)
    return [f"{counter} = ({counter} + 1u) % {turns}u;"]


def _counter(model: ModelInfo) -> str:
    (counter,) = (port for port in model.states if port.is_counter)
    return f"state->{counter.c_name}[0]"


def _member(port: StatePort) -> Member:
    assert port.initial is not None, "only what was lowered is printed"
    data = np.frombuffer(port.initial.tobytes(), np.uint8)
    if (data == data[0]).all():
        return Member(port, int(data[0]), ())
    values = port.initial.reshape(-1)
    repeated = values[: _period(values)]
    lines = tuple(INDENT * 2 + line for line in value_lines(repeated))
    times = len(values) // len(repeated)
    return Member(port, None, lines, times if times > 1 else 0, len(repeated))


def _period(values: Array) -> int:
    """Return the least number of values that all of them repeat."""
    count, bits = len(values), np.frombuffer(values.tobytes(), f"V{values.itemsize}")
    for period in range(1, count // 2 + 1):
        if count % period == 0 and (bits[period:] == bits[:-period]).all():
            return period
    return count


def parts(draft: Draft) -> Iterator[Part]:
    """Yield the struct, and the functions that begin, save and restore it."""
    program = draft.program
    yield Part(Place.STRUCTS, _struct(program))
    values = {"name": program.name, "macro": program.macro}
    yield rendered(Place.PROTOTYPES, "state.h.j2", **values)
    yield Part(Place.SYSTEM_INCLUDES, "#include <string.h>")
    yield rendered(
        Place.STATE_FUNCTIONS,
        "state.c.j2",
        members=_members(program),
        identity=identity(program),
        version=_VERSION_WITH_SUM if has_checks(program) else _VERSION,
        header_bytes=HEADER_BYTES,
        whole=state_identity(program, identity(program)),
        sums=has_checks(program),
        status=STATE_STATUS,
        **values,
    )
