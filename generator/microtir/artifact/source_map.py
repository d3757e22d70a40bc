"""Leads from a line of generated C to the layer that it is part of, and to the model's file."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from microtir.codegen import Metadata
from microtir.codegen.metadata import LayerData
from microtir.codegen.printer.definitions import definitions

_PLACE = r"(?<![\w.])(?:\S*/)?{name}(?:_lib0)?\.c[:,](?: line )?(\d+)"


def is_described(source: str, metadata: Metadata) -> bool:
    """Return whether a C file has its functions in the lines in which they were generated."""
    printed = definitions(source)
    described = [(layer.function, layer.lines) for layer in metadata.layers]
    described += [(kernel.function, kernel.lines) for kernel in metadata.kernels]
    return all(printed.get(function, ()) == lines for function, lines in described)


def layers_at(metadata: Metadata, line: int) -> tuple[LayerData, ...]:
    """Return the layers that a line of the module's C file belongs to.

    That is one for a layer's function, and all that call it for a micro-kernel; none for what no
    layer is in particular.
    """
    layers = metadata.layers
    matches = [layer for layer in layers if _holds(layer.lines, line)]
    for kernel in metadata.kernels:
        if _holds(kernel.lines, line):
            matches += [layer for layer in layers if layer.function in kernel.layers]
    return tuple(matches)


def layer_text(metadata: Metadata, layer: LayerData) -> str:
    """Describe a layer: its name, its operator, and where that is in the model's file."""
    file = metadata.model.file if metadata.model else metadata.module_name
    return f"{layer.name}, {layer.operator}, operator {layer.index} of {file}"


def places_in(text: str, metadata: Metadata) -> str:
    """Return what the lines of C in a tool's message mean, a line of text for each.

    Args:
        text: what a compiler, a sanitizer or a debugger said: `digits.c:120:7: error`.
        metadata: of the program.

    Returns:
        Lines that each begin with a line break, or nothing.
    """
    return "".join(f"\n{row}" for row in dict.fromkeys(_rows(text, metadata)))


def _rows(text: str, metadata: Metadata) -> Iterator[str]:
    name = metadata.module_name
    for place in re.finditer(_PLACE.format(name=re.escape(name)), text):
        layers = layers_at(metadata, int(place[1]))
        if layers:
            where = "; ".join(layer_text(metadata, layer) for layer in layers)
            yield f"{name}.c:{place[1]} is in {where}"


def _holds(lines: Sequence[int], line: int) -> bool:
    return bool(lines) and lines[0] <= line <= lines[1]
