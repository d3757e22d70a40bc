"""`microtir explain FILE.c:LINE` names the layer that a line of generated C belongs to."""

from __future__ import annotations

import re
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

from microtir.cli.output import facts, write_json
from microtir.errors import ExitCode, MicrotirError, UsageError

if TYPE_CHECKING:
    from microtir.artifact import Metadata


def explain_line(source: Path, number: str, *, as_json: bool) -> ExitCode:
    """Print the layers of a line, as a debugger or a compiler names it; 1 if it is not a layer's.

    Raises:
        UsageError: the file is not the main file of a model with its metadata beside it, or does
            not have this line.
    """
    from microtir.artifact import layer_text, layers_at

    metadata = _metadata(source)
    line = _line(source, number, metadata)
    layers = layers_at(metadata, line)
    if as_json:
        write_json([asdict(layer) for layer in layers])
    elif layers:
        facts([("layer", layer_text(metadata, layer)) for layer in layers])
    else:
        facts([("layer", f"none: {source.name}:{line} is in code that all layers share")])
    return ExitCode.DONE if layers else ExitCode.ANSWER_IS_NO


def _line(source: Path, number: str, metadata: Metadata) -> int:
    """Return the number of a line that the file has, as it was generated."""
    from microtir.artifact import is_described

    try:
        text = source.read_text("utf-8")
    except (OSError, ValueError) as error:
        raise UsageError(
            f"the file cannot be read: {error}",
            where=str(source),
            fix="name a line of a file that `microtir compile` wrote",
        ) from None
    if not is_described(text, metadata):
        raise UsageError(
            "the file was edited after it was generated, so its lines do not match",
            where=str(source),
            fix="compile the model again, and name a line of the new file",
        )
    last = len(text.splitlines())
    is_number = re.fullmatch("[0-9]{1,9}", number) is not None
    if not is_number or not 1 <= int(number) <= last:
        raise UsageError(
            f"the file has no line {number[:40]!r}", where=str(source), legal=f"lines 1 to {last}"
        )
    return int(number)


def _metadata(source: Path) -> Metadata:
    from microtir.artifact import METADATA_FILE, read_metadata

    path = source.with_name(METADATA_FILE)
    try:
        metadata = read_metadata(path.read_bytes())
        name = metadata.module_name
    except (OSError, ValueError, MicrotirError):
        raise UsageError(
            f"the folder of the file does not contain the {METADATA_FILE} of a model",
            where=str(source),
            fix="name the C file in the folder that `microtir compile -o` wrote",
        ) from None
    if source.name != f"{name}.c":
        raise UsageError(
            f"the layers of '{name}' are in {name}.c", where=str(source), legal=f"{name}.c"
        )
    return metadata
