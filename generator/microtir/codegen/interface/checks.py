"""Prints the checks of what an application passes, before anything is computed.

The C is compiled for whatever the application has: how a type is aligned is asked of its compiler,
where a number of the generator would refuse tensors that are fine on AVR, or on m68k.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from microtir.codegen.interface.constant_pools import passed_constant_pools
from microtir.codegen.interface.pools import passed_pools, workspace_pools
from microtir.codegen.interface.state import run_checks
from microtir.codegen.printer.c_types import integer_literal
from microtir.codegen.printer.expressions import Requirements
from microtir.codegen.printer.helpers import misalignment_test
from microtir.codegen.printer.names import ScopedNames
from microtir.codegen.program import PARAMETERS_STATUS, CProgram
from microtir.module.ir_module import ModelInfo, Port
from microtir.tir.ir import Buffer, PrimFunc, Var


def model_checks(program: CProgram, model: ModelInfo, requirements: Requirements) -> list[str]:
    """Return what is checked before a model runs: pointers, alignments, places."""
    pools = passed_pools(program)
    used = [pool for pool in pools if pool.size]
    structs = ["inputs", "outputs", *["state"] * bool(program.states)]
    structs += [pool.name for pool in used]
    structs += _constant_pointers(program)
    members = [_pointer(port) for port in model.ports]
    status = f"{program.macro}_ERROR_WORKSPACE_ALIGNMENT"
    aligned = [
        _check(f"(uintptr_t){pool.name} % {pool.macro}_ALIGNMENT != 0", status) for pool in used
    ]
    what = (
        "nothing is placed in it"
        if any(p.size for p in workspace_pools(program))
        else ("this model needs none")
    )
    return [
        *(f"(void){pool.name}; /* {what} */" for pool in pools if not pool.size),
        *null_check(program, structs),
        *null_check(program, members),
        *(line for check in aligned for line in check),
        *_place_checks(program, model),
        *_tensor_checks(program, model, requirements),
        *run_checks(program),
        *constant_checks(program),
        *_count_check(program),
    ]


def _count_check(program: CProgram) -> list[str]:
    """Return the check of how many entries of the batch there are."""
    if not program.has_count:
        return []
    outside = f"count < 1 || count > {program.entry.images}"
    return _check(outside, f"{program.macro}_ERROR_ARGUMENT_RANGE")


def _pointer(port: Port) -> str:
    """Return what must be set for a tensor.

    Where it is, or the function that hands over its rows.
    """
    member = f"{port.kind.value}s->{port.c_name}"
    return member if port.row_bytes is None else f"{member}.move"


def _constant_pointers(program: CProgram) -> list[str]:
    """Return the pointers to constants that a run reads."""
    if program.has_external_params:
        return ["parameters"]
    return [pool.name for pool in passed_constant_pools(program) if pool.size]


def constant_checks(program: CProgram) -> list[str]:
    """Return checks that the constants are those that this code was generated with."""
    status = f"{program.macro}_{PARAMETERS_STATUS}"
    if program.has_external_params:
        # Without the size, weights behind the end of a shorter file would be read.
        size = f"((const uint32_t *)parameters)[2] != {program.macro}_PARAMETERS_SIZE"
        foreign = _foreign("parameters", 1, f"{program.macro}_PARAMETERS")
        return _check(f"{foreign} || {size}", status)
    lines = []
    for pool in passed_constant_pools(program):
        if pool.size:
            lines += _check(_foreign(pool.name, 0, pool.macro), status)
        else:
            lines.append(f"(void){pool.name}; /* no constant is placed in it */")
    return lines


def _foreign(pointer: str, word: int, macro: str) -> str:
    """Return the condition that constants are misaligned or have another identity."""
    other = f"((const uint32_t *){pointer})[{word}] != {macro}_IDENTITY"
    return f"(uintptr_t){pointer} % {macro}_ALIGNMENT != 0 || {other}"


def _place_checks(program: CProgram, model: ModelInfo) -> list[str]:
    """Return checks that tensors are where the plan has them.

    None if the caller has other memory.
    """
    pools, places = workspace_pools(program), []
    for port in model.ports:
        if port.offset is not None:
            place = f"(const uint8_t *){pools[port.pool].name}"
            place += f" + {port.offset}" if port.offset else ""
            places.append(f"(const uint8_t *){port.kind.value}s->{port.c_name} != {place}")
    return _check(" || ".join(places), f"{program.macro}_ERROR_TENSOR_PLACE") if places else []


def _tensor_checks(program: CProgram, model: ModelInfo, requirements: Requirements) -> list[str]:
    """Return the check that tensors are aligned for their elements; nothing where bytes do.

    What lies in the workspace is at a place that the plan has aligned, and rows have no place.
    """
    conditions = [
        _misaligned(buffer, _pointer(port), requirements)
        for port, buffer in zip(model.ports, program.entry.params, strict=False)
        if port.offset is None and port.row_bytes is None and isinstance(buffer, Buffer)
    ]
    return _alignment_check(program, conditions)


def argument_checks(
    program: CProgram, function: PrimFunc, names: ScopedNames, requirements: Requirements
) -> list[str]:
    """Return what is checked before a function of a user's program runs."""
    pointers = [names.of(p) for p in function.params if isinstance(p, Buffer)]
    takes_constants = program.takes_constants(function)
    pointers += _constant_pointers(program) if takes_constants else []
    lines = null_check(program, pointers)
    misaligned = []
    for parameter in function.params:
        name = names.of(parameter)
        if isinstance(parameter, Var):
            condition = " || ".join(_outside(parameter, name))
            lines += _check(condition, f"{program.macro}_ERROR_ARGUMENT_RANGE") if condition else []
        else:
            misaligned.append(_misaligned(parameter, name, requirements))
    lines += _alignment_check(program, misaligned)
    return [*lines, *(constant_checks(program) if takes_constants else [])]


def _misaligned(buffer: Buffer, pointer: str, requirements: Requirements) -> str:
    """Return the condition that a tensor is not aligned; nothing where it may lie anywhere."""
    if buffer.alignment > buffer.dtype.bytes:
        return f"(uintptr_t){pointer} % {buffer.alignment} != 0"
    if buffer.dtype.bytes == 1:
        return ""
    test = misalignment_test(buffer.dtype)
    requirements.helpers.add(test)
    return f"{test}({pointer})"


def _alignment_check(program: CProgram, conditions: Sequence[str]) -> list[str]:
    condition = " || ".join(filter(None, conditions))
    return _check(condition, f"{program.macro}_ERROR_TENSOR_ALIGNMENT") if condition else []


def null_check(program: CProgram, pointers: Sequence[str]) -> list[str]:
    """Return the check that no pointer is NULL; nothing where there is none."""
    condition = " || ".join(f"{pointer} == NULL" for pointer in pointers)
    return _check(condition, f"{program.macro}_ERROR_NULL_POINTER") if pointers else []


def _check(condition: str, status: str) -> list[str]:
    return [f"if ({condition}) {{", f"    return {status};", "}"]


def _outside(var: Var, name: str) -> Iterator[str]:
    """Yield conditions under which a scalar is outside its declared range."""
    # A comparison that a type can never meet warns.
    if var.low is not None and var.low > var.dtype.min:
        yield f"{name} < {integer_literal(var.low, var.dtype)}"
    if var.high is not None and var.high < var.dtype.max:
        yield f"{name} > {integer_literal(var.high, var.dtype)}"
