"""Prints bodies of micro-kernels in vector intrinsics, and the functions that they share."""

from __future__ import annotations

from collections.abc import Iterable

from microtir.codegen.printer.layout import wrap
from microtir.measure.functions import native_values
from microtir.support.code_templates import render
from microtir.tir.ir import PrimFunc

SUPPORT = "kernels/vector/support/all.j2"
_MOST_PIXELS = 6  # twice as many sums leave room for weights and inputs in 16 registers
_STORED_TOGETHER = (4, 2, 1)  # pixels


def intrinsics_lines(template: str, kernel: PrimFunc, name: str, macro: str) -> list[str]:
    """Return the body of a micro-kernel; `name` and `macro` begin the identifiers of its file.

    Raises:
        TemplateError: names template and line.
    """
    values = native_values(kernel)
    return render(template, name=name, macro=macro, **values).rstrip("\n").split("\n")


def support_text(kernels: Iterable[PrimFunc], name: str, macro: str) -> str:
    """Return the functions that bodies share, behind a test for what compiler and CPU can do.

    Args:
        kernels: those of the file; what none of them calls is left out.
        name: begins the identifiers of the file.
        macro: begins its macros.
    """
    template_values = [native_values(kernel) for kernel in kernels]
    pixels = [int(values["pixels"]) for values in template_values if values["part"] == "product"]
    needed = {_MOST_PIXELS for count in pixels if count >= _MOST_PIXELS}
    needed |= {count % _MOST_PIXELS for count in pixels} - {0}
    text = render(
        SUPPORT,
        name=name,
        macro=macro,
        parts=sorted({values["part"] for values in template_values}),
        blocks=[_block(count) for count in sorted(needed)],
        rests=[_block(count) for count in sorted(needed - {_MOST_PIXELS})],
        most=str(_MOST_PIXELS) if _MOST_PIXELS in needed else "",
    )
    return "\n".join(part for line in text.rstrip("\n").split("\n") for part in wrap(line))


def _block(pixels: int) -> dict[str, object]:
    """Return what the template is given for a block of neighbouring pixels."""
    groups, first = [], 0
    while first < pixels:
        count = next(n for n in _STORED_TOGETHER if n <= pixels - first)
        # Vectors are packed by fours: a smaller group fills up with its own.
        members = [first + n % count for n in range(_STORED_TOGETHER[0])]
        results = ", ".join(f"result{member}" for member in members)
        groups.append({"first": str(first), "pixels": str(count), "results": results})
        first += count
    return {"pixels": str(pixels), "numbers": [str(n) for n in range(pixels)], "groups": groups}
