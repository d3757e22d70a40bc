"""Defines the options of `tvmc compile` that are not part of a configuration."""

from __future__ import annotations

from typing import Annotated

import typer

ModelFormat = Annotated[
    str,
    typer.Option("--model-format", metavar="tflite", help="The format of the model, as for tvmc."),
]
TFLITE = "tflite"
