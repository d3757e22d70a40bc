"""Prints the functions of a source file, with what they need of it and of the header."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Mapping

from microtir.codegen.interface.devices import driver_prototypes
from microtir.codegen.interface.parts import Draft, Part, Place, parts_at, rendered
from microtir.codegen.printer.externs import prototype
from microtir.codegen.printer.functions import merges
from microtir.codegen.printer.helpers import (
    HELPERS,
    IN_PARTS,
    NUMBERS,
    SHARED_PARTS,
    Helper,
    with_dependencies,
)
from microtir.codegen.printer.intrinsics import support_text
from microtir.codegen.printer.layout import WIDTH, block_comment
from microtir.codegen.program import CProgram
from microtir.config import CompilationConfig, Feature
from microtir.measure.functions import has_intrinsics
from microtir.support.code_templates import render
from microtir.tir.analysis.long_products import copies_products, has_short_products

_VECTORS = "Armv8.1-M with integer vectors"
_DSP = "Thumb-2 with the DSP extension"


def body_parts(draft: Draft) -> Iterator[Part]:
    """Yield the functions, and what they and all parts of interfaces need."""
    program, macro = draft.program, draft.program.macro
    has_bodies = any(map(has_intrinsics, program.assembly))
    body_macro = f"{macro}_{'VECTORS' if has_bodies else 'ASSEMBLY'}"
    yield from _floats(draft)
    cpu, condition = _assembly(program) if program.assembly and not has_bodies else ("", "")
    values = {"name": program.name, "macro": macro, "stacks": draft.stacks, "cpu": cpu}
    yield rendered(Place.STACK, "stack.h.j2", condition=condition, **values)
    if any(map(merges, program.functions)):
        yield rendered(Place.KERNELS, "shared.c.j2", macro=macro)
    if condition:
        yield rendered(Place.KERNELS, "assembly.c.j2", condition=condition, **values)
    prototypes = [*driver_prototypes(program), *map(prototype, program.externs)]
    if prototypes:
        lines = ["/* C functions that are defined elsewhere. */", *(f"{p};" for p in prototypes)]
        yield Part(Place.EXTERNS, "\n".join(lines))
    yield from _helpers(draft, has_bodies, body_macro)
    yield from parts_at(Place.FUNCTIONS, (b.commented(body_macro) for b in draft.bodies))


def _floats(draft: Draft) -> Iterator[Part]:
    """Yield what is included for numbers, and how floats are rounded, where there are some."""
    requirements, macro = (draft.requirements, draft.twin_requirements), draft.program.macro
    fuses = any(r.fuses_floats for r in requirements)
    if any(r.math for r in requirements):
        yield Part(Place.SYSTEM_INCLUDES, "#include <math.h>")
    elif fuses:
        include = "#if !defined(__GNUC__)\n#include <math.h>\n#endif"
        yield Part(Place.SYSTEM_INCLUDES, include)
    yield Part(Place.SYSTEM_INCLUDES, "#include <stddef.h>")
    if any(r.floats for r in requirements):
        fused = "a product and its sum are rounded once where the code says fused_multiply_add"
        said = f"{fused}, and by themselves elsewhere" if fuses else "each is rounded by itself"
        text = f"Products and sums of floats: {said}."
        text += " Outputs are the same bits in all modes of compilers."
        comment = block_comment(textwrap.wrap(text, WIDTH - 6))
        lines = [*comment, f"#define {macro}_FUSED_MULTIPLY_ADD {int(fuses)}"]
        yield Part(Place.FLOATS, "\n".join(lines))
        yield rendered(Place.SETTINGS, "floats.j2")
    if any(r.double for r in requirements):
        yield rendered(Place.TYPES, "double.c.j2", name=draft.program.name)


def _helpers(draft: Draft, has_bodies: bool, body_macro: str) -> Iterator[Part]:
    """Yield functions that others call; what only twins of assembly call is not always compiled."""
    program = draft.program
    if has_bodies:
        text = support_text(program.assembly, program.name, program.macro)
        yield Part(Place.HELPERS, text)
    known = draft.requirements.helpers
    table = _table(program.config)
    helpers = with_dependencies(known, table)
    yield from parts_at(Place.HELPERS, map(helper_text, helpers))
    every = with_dependencies(known | draft.twin_requirements.helpers, table)
    twins = [helper_text(helper) for helper in every if helper not in helpers]
    if twins:
        text = "\n\n".join([*twins, "#endif"])
        yield Part(Place.HELPERS, f"#if !defined({body_macro})\n{text}")


def _table(config: CompilationConfig) -> Mapping[str, Helper]:
    if not has_short_products(config.primary_target()):
        return HELPERS
    return IN_PARTS if copies_products(config) else SHARED_PARTS


def helper_text(helper: Helper) -> str:
    """Return the C of a helper function."""
    return render(helper.template, helper=helper, numbers=NUMBERS).rstrip("\n")


def _assembly(program: CProgram) -> tuple[str, str]:
    """Return the CPU of lists of instructions, and when a compiler makes code for it."""
    natives = [f.kernel.native for f in program.assembly if f.kernel and f.kernel.native]
    rescalings = (native.values.get("rescaling") for native in natives)
    has_floats = any(isinstance(r, Mapping) and r.get("in_float") is True for r in rescalings)
    needs = {native.needs for native in natives}
    has_floats |= not needs.isdisjoint((Feature.FPU, Feature.MVE_FLOAT))
    cpu, test = _DSP, "defined(__ARM_FEATURE_DSP) && defined(__thumb2__)"
    if not needs.isdisjoint((Feature.MVE, Feature.MVE_FLOAT)):
        cpu = _VECTORS
        test = f"defined(__ARM_FEATURE_MVE) && (__ARM_FEATURE_MVE & {2 if has_floats else 1})"
    lines = [f"{test} && !defined(__ARM_BIG_ENDIAN)"]
    lines += ["&& defined(__ARM_FP) && (__ARM_FP & 4)"] * has_floats
    lines.append("&& (defined(__clang__) || (defined(__GNUC__) && __GNUC__ >= 8))")
    return cpu, " \\\n    ".join(lines)
