"""Prints constants that are arrays of the code: a header and a source of their own."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator

from microtir.codegen.flash import flash_readers
from microtir.codegen.interface.constant_pools import constant_pools
from microtir.codegen.interface.parts import Draft, Part, Place, file_comment
from microtir.codegen.printer.constants import ConstantArray, value_lines
from microtir.codegen.printer.layout import INDENT, WIDTH, block_comment
from microtir.codegen.program import CProgram
from microtir.codegen.source_file import SourceFile
from microtir.support.code_templates import render


def linked(program: CProgram) -> list[ConstantArray]:
    """Return the constants that are arrays of the code."""
    return [array for array in program.constants if array.offset is None]


def _section(program: CProgram) -> str:
    """Return the macro that places an array; nothing where no section is asked for."""
    if not any(pool.section for pool in constant_pools(program) if pool.is_internal):
        return ""
    macro = f"{program.macro}_CONSTANT_SECTION"
    return render("c/section.h.j2", macro=macro, what="array").rstrip("\n")


def files(draft: Draft) -> Iterator[SourceFile]:
    """Yield the header and the source of the arrays."""
    program = draft.program
    arrays = linked(program)
    pools = constant_pools(program)
    values = {
        "name": program.name,
        "macro": program.macro,
        "fingerprint": draft.fingerprint,
        "section": _section(program),
        "flash_readers": flash_readers(program),
        "includes": ["#include <math.h>", ""] * any(a.needs_math_header for a in arrays),
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
        comment = file_comment(program, f"{name}: constants, {title} {program.name}.c")
        yield SourceFile(name, render(f"c/weights.{suffix}.j2", comment=comment, **values))


def parts(draft: Draft) -> Iterator[Part]:
    """Yield the header of the arrays."""
    yield Part(Place.CONSTANT_INCLUDES, f'#include "{draft.program.name}_weights.h"')
