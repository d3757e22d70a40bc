"""Prints checksums of weights and states, by which a program notices that memory was damaged.

They are CRC-32 (IEEE 802.3, reflected) over bytes as they lie in memory.  The sum of a state is
combined with its identity, so that it takes no memory of its own.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator

import numpy as np

from microtir.codegen.interface.parts import Draft, Part, Place, rendered
from microtir.codegen.interface.weights import linked
from microtir.codegen.printer.constants import ConstantArray
from microtir.codegen.program import WEIGHTS_STATUS, CProgram
from microtir.config.enums import FaultChecks
from microtir.support.arrays import Array

_POLYNOMIAL = 0xEDB88320
_ONES = 0xFFFFFFFF


def has_checks(program: CProgram) -> bool:
    """Return whether a program checks its memory."""
    return program.config.fault_checks is not FaultChecks.NONE


def checks_before(program: CProgram, functions: set[str]) -> list[str]:
    """Return the statements that compare the weights of layers, before a run computes these.

    Args:
        program: whose options say whether a run compares them.
        functions: names of the layers.
    """
    if program.config.fault_checks not in (FaultChecks.LAYERS, FaultChecks.TENSORS):
        return []
    of_layers = [n for n, array in enumerate(linked(program)) if functions & set(array.users)]
    return [
        line
        for number in of_layers
        for line in (
            f"if ({program.name}_is_damaged({number}) != 0) {{",
            f"    return {program.macro}_{WEIGHTS_STATUS};",
            "}",
        )
    ]


def state_identity(program: CProgram, identity: str) -> str:
    """Return the C expression of what a state that is whole has as its identity."""
    plain = f"UINT32_C({identity})"
    return f"{program.name}_state_sum(state)" if has_checks(program) else plain


def next_identity(program: CProgram) -> list[str]:
    """Return the statement with which a run ends that has changed its state."""
    if not (has_checks(program) and program.states):
        return []
    return [f"state->identity = {program.name}_state_sum(state);"]


def parts(draft: Draft) -> Iterator[Part]:
    """Yield the checksum, and the function that compares the weights."""
    program = draft.program
    values = {"name": program.name, "macro": program.macro, "status": WEIGHTS_STATUS}
    arrays = linked(program)
    if arrays or program.states:
        yield rendered(Place.HELPERS, "checksum.c.j2", rows=_step_rows(), **values)
    sums = [(array.name, *_sums(array)) for array in arrays]
    yield rendered(Place.PROTOTYPES, "check_weights.h.j2", arrays=sums, **values)
    yield rendered(Place.OPERATORS, "check_weights.c.j2", arrays=sums, count=len(sums), **values)


def _step_rows() -> list[str]:
    """Return what each half of a byte contributes to a checksum, as four lines of C."""
    values = []
    for step in range(16):
        for _ in range(4):
            step = step >> 1 ^ _POLYNOMIAL * (step & 1)
        values.append(f"UINT32_C(0x{step:08x})")
    return [", ".join(values[first : first + 4]) for first in range(0, 16, 4)]


def _sums(array: ConstantArray) -> tuple[str, str]:
    """Return the checksums of an array in memory, of little and of big endian CPUs."""
    values = _as_compiled(array.data)
    little, big = values.dtype.newbyteorder("<"), values.dtype.newbyteorder(">")
    return _sum(values.astype(little)), _sum(values.astype(big))


def _as_compiled(values: Array) -> Array:
    """Return values whose NaN have the bits of the macro NAN, by which they are printed."""
    if values.dtype.kind != "f":
        return values
    return np.where(np.isnan(values), values.dtype.type(np.nan), values)


def _sum(values: Array) -> str:
    return f"0x{zlib.crc32(values.tobytes()) ^ _ONES:08x}"
