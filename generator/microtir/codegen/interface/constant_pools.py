"""Prints constant pools: sections of arrays, or bytes to which the run function takes a pointer."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from microtir.codegen.interface.parts import Draft, Part, Place, file_comment, parts_at, rendered
from microtir.codegen.interface.pools import passed_pools, run_names
from microtir.codegen.metadata import ConstantPoolData
from microtir.codegen.printer.constants import value_lines, write_arrays
from microtir.codegen.printer.layout import block_comment, struct_text
from microtir.codegen.program import CProgram
from microtir.codegen.source_file import DataFile, SourceFile
from microtir.config.pools import ConstantPoolInfo
from microtir.support.code_templates import render
from microtir.support.encoding import c_comment
from microtir.support.names import constants_macro
from microtir.tir.memory_plan import POOL_IDENTITY_BYTES, PlannedConstants


@dataclass(frozen=True, slots=True)
class ConstantPool:
    """A pool of constant arrays, by its names in C.

    `macro` is what the macros about it begin with, and for one that is passed the macro that
    declares memory for it; then `name` is the parameter that takes a pointer to it, `member` its
    name among pools.
    """

    number: int
    name: str
    member: str
    macro: str
    info: ConstantPoolInfo
    plan: PlannedConstants

    @property
    def size(self) -> int:
        """Return the bytes; nothing where no array is placed in it."""
        return self.plan.size

    @property
    def section(self) -> str:
        return self.info.pool_info_properties.section

    @property
    def is_internal(self) -> bool:
        return self.info.pool_info_properties.is_internal


@lru_cache(maxsize=4)  # every file of a program asks
def constant_pools(program: CProgram) -> tuple[ConstantPool, ...]:
    """Return the constant pools, in the order of the configuration."""
    names = run_names(program)
    for pool in passed_pools(program):
        names.reserve(pool.name)
    pools = []
    infos, plans = program.config.constant_pools, program.module.constants.pools
    for number, (info, plan) in enumerate(zip(infos, plans, strict=False)):
        macro = constants_macro(program.name, info.pool_name)
        is_internal = info.pool_info_properties.is_internal
        name = info.c_name if is_internal else names.reserve(info.c_name)
        pools.append(ConstantPool(number, name, info.c_name, macro, info, plan))
    return tuple(pools)


def passed_constant_pools(program: CProgram) -> tuple[ConstantPool, ...]:
    """Return the constant pools to which functions that read constants take pointers."""
    return tuple(pool for pool in constant_pools(program) if not pool.is_internal)


def constant_pool_data(program: CProgram, number: str) -> tuple[ConstantPoolData, ...]:
    """Return facts about the constant pools; `number` is the identity of the code."""
    return tuple(
        ConstantPoolData(
            name=pool.info.pool_name,
            size=pool.size,
            alignment=pool.plan.alignment,
            limit=pool.info.size_limit,
            section=pool.section,
            is_internal=pool.is_internal,
            file=pool_file(program, pool) if is_filled else None,
            identity=pool_identity(pool, number) if is_filled else None,
        )
        for pool in constant_pools(program)
        for is_filled in [not pool.is_internal and pool.size > 0]
    )


def pool_file(program: CProgram, pool: ConstantPool) -> str:
    """Return what the file with the bytes of a pool that is passed is called."""
    return f"{program.name}_{pool.member}.bin"


def pool_identity(pool: ConstantPool, number: str) -> str:
    """Return the first bytes of a pool, by which its code (identity `number`) knows it."""
    return f"0x{hashlib.sha256(f'{number} {pool.member}'.encode()).hexdigest()[:8]}"


def pool_bytes(program: CProgram, pool: ConstantPool, number: str) -> bytes:
    """Return what memory for a pool that is passed must hold.

    Its identity `number`, then the arrays.
    """
    data = bytearray(pool.size)
    data[:POOL_IDENTITY_BYTES] = int(number, 16).to_bytes(POOL_IDENTITY_BYTES, "little")
    write_arrays(data, (array for array in program.constants if array.pool == pool.number))
    return bytes(data)


def pool_parts(
    program: CProgram, pool: ConstantPool, number: str
) -> Iterator[tuple[str, npt.NDArray[np.uint8]]]:
    """Yield bytes of a pool cut where something begins, each part with a title for a comment."""
    data = np.frombuffer(pool_bytes(program, pool, number), np.uint8)
    starts = {0: "the identity of the code"}
    for array in program.constants:
        if array.pool == pool.number and array.offset is not None:
            users = ", ".join(array.users)
            starts[array.offset] = c_comment(f"{array.name}: {array.bytes} bytes for {users}")
    ends = [*list(starts)[1:], len(data)]
    for (start, title), end in zip(starts.items(), ends, strict=False):
        yield title, data[start:end]


def constants_struct(program: CProgram) -> str:
    """Return struct of the pools that functions read, as they hand it on; empty without pools."""
    if not program.given_pools:
        return ""
    rows = [(f"const uint8_t *{name};",) for name in program.given_pools.values()]
    return struct_text(f"struct {program.name}_constants", rows)


def given_constants(program: CProgram) -> list[str]:
    """Return statements of an entry function that make what the functions below it hand on."""
    passed = program.given_constants
    if not passed.members:
        return []
    names = ", ".join(pool.name for pool in passed_constant_pools(program) if pool.size)
    whole = f"given_{passed.name}"
    return [f"{passed.type} {whole} = {{{names}}};", f"{passed.type} *{passed.name} = &{whole};"]


def filled_pools(program: CProgram) -> list[ConstantPool]:
    """Return the pools that are passed and hold something."""
    return [pool for pool in passed_constant_pools(program) if pool.size]


def _constants_macro(program: CProgram, pool: ConstantPool) -> str:
    section = f'{program.macro}_SECTION("{pool.section}") ' if pool.section else ""
    example = f"static {pool.macro}(my_{pool.member}) = {pool.macro}_DATA;"
    lines = [
        f"Declares memory for the constant pool '{pool.plan.name}', with the initialiser of",
        f"{program.name}_constant_pools.h, for example:",
        example,
    ]
    return "\n".join([
        *block_comment(lines),
        f"#define {pool.macro}(variable) \\",
        f"    {program.macro}_ALIGNED({pool.macro}_ALIGNMENT) {section}\\",
        f"    const uint8_t variable[{pool.macro}_SIZE]",
    ])  # fmt: skip


def files(draft: Draft) -> Iterator[SourceFile]:
    """Yield what memory for constant pools that are passed is initialised with, as macros."""
    program, number = draft.program, draft.identity
    name = f"{program.name}_constant_pools.h"
    values = {
        "comment": file_comment(program, f"{name}: what constant pools hold"),
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
            for pool in filled_pools(program)
        ],
    }
    yield SourceFile(name, render("c/constant_pools.h.j2", **values))


def parts(draft: Draft) -> Iterator[Part]:
    """Yield macros that declare memory, and the struct that functions hand on."""
    program = draft.program
    macros = (_constants_macro(program, pool) for pool in filled_pools(program))
    yield from parts_at(Place.POOL_MACROS, macros)
    yield rendered(Place.BYTE_ORDER, "byte_order.c.j2")
    if not program.is_graph:  # the header of its table has the struct
        struct = constants_struct(program)
        comment = "/* The constant pools that a run is given. */"
        yield Part(Place.CONSTANTS, f"{comment}\n{struct}")


def data(draft: Draft) -> Iterator[DataFile]:
    """Yield what memory for each pool must hold."""
    for pool in filled_pools(draft.program):
        number = pool_identity(pool, draft.identity)
        yield DataFile(pool_file(draft.program, pool), pool_bytes(draft.program, pool, number))
