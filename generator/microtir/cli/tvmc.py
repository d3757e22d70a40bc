"""Defines the options of `tvmc compile` that are not part of a configuration."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Annotated

import typer

from microtir.errors import UsageError

if TYPE_CHECKING:
    from microtir.ir_module import ModelInfo

ModelFormat = Annotated[
    str,
    typer.Option("--model-format", metavar="tflite", help="As tvmc has it: the model's format."),
]
InputShapes = Annotated[
    str | None,
    typer.Option(
        "--input-shapes",
        metavar="NAME:[N,…],…",
        help="As tvmc has it: shapes of inputs, which must be those of the model.",
    ),
]
TFLITE = "tflite"
_SHAPE = re.compile(r"([^:,\[\]]+(?::\d+)?):\[([0-9, ]*)\](?:,|$)")


def check_input_shapes(text: str | None, model: ModelInfo) -> None:
    """Refuse shapes that are not the model's: its file fixes them.

    Raises:
        UsageError: a malformed text, an input that does not exist, or another shape.
    """
    if text is None:
        return
    shapes = {port.name: list(port.type.shape) for port in model.inputs}
    legal = ",".join(f"{name}:{shape}" for name, shape in shapes.items()).replace(" ", "")
    given = _SHAPE.findall(text)
    if "".join(match.group() for match in _SHAPE.finditer(text)) != text:
        raise UsageError(f"cannot read '{text}'", where="--input-shapes", legal=legal)
    for name, extents in given:
        if shapes.get(name) != [int(extent) for extent in extents.split(",") if extent.strip()]:
            what = f"has the shape {shapes[name]}" if name in shapes else "is no input of the model"
            raise UsageError(
                f"'{name}' {what}",
                where="--input-shapes",
                legal=legal,
                fix="convert the model anew with the shape that you want",
            )
