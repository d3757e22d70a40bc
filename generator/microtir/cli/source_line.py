"""`microtir explain FILE.c:LINE`: the layer that a line of generated C belongs to."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, cast

from microtir.cli.output import facts, write_json
from microtir.errors import ExitCode, UsageError

if TYPE_CHECKING:
    from microtir.artifact import Metadata


def explain_line(source: Path, line: int, *, as_json: bool) -> ExitCode:
    """Print the layers of a line, as a debugger or a compiler names it; 1 if it is no layer's.

    Raises:
        UsageError: the file is not the main file of a model with its metadata beside it.
    """
    from microtir.artifact import layer_text, layers_at

    metadata = _metadata(source)
    layers = layers_at(metadata, line)
    if as_json:
        write_json(list(layers))
    elif layers:
        facts([("layer", layer_text(metadata, layer)) for layer in layers])
    else:
        facts([("layer", f"none: {source.name}:{line} is in what all layers share")])
    return ExitCode.DONE if layers else ExitCode.ANSWER_IS_NO


def _metadata(source: Path) -> Metadata:
    from microtir.artifact import METADATA_FILE

    path = source.with_name(METADATA_FILE)
    try:
        found = cast("Metadata", json.loads(path.read_text(encoding="utf-8")))
        name = found["module_name"]
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        raise UsageError(
            f"there is no {METADATA_FILE} of a model beside it",
            where=str(source),
            fix="name the C file in the folder that `microtir compile -o` wrote",
        ) from None
    if source.name != f"{name}.c":
        raise UsageError(
            f"the layers of '{name}' are in {name}.c", where=str(source), legal=f"{name}.c"
        )
    return found
