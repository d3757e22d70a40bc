"""Reads the MODEL argument: the path of a model file, or a bundled example."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Annotated

import typer

from microtir import resources
from microtir.cli.choice import check_choice
from microtir.config.names import module_name_from
from microtir.errors import UsageError

if TYPE_CHECKING:
    from microtir.config import CompilationConfig
    from microtir.ir_module import IRModule

EXAMPLE = "example:"


@dataclass(frozen=True, slots=True)
class Example:
    """A model that comes with microtir, and its test set with outputs of tflite-micro."""

    model: str
    golden: str


EXAMPLES: Mapping[str, Example] = MappingProxyType(
    {"digits": Example("digits/digits_int8.tflite", "digits/digits_test.npz")}
)

_EXAMPLE_NAMES = " or ".join(EXAMPLE + name for name in EXAMPLES)
Model = Annotated[
    str,
    typer.Argument(
        metavar="MODEL", help=f"A .tflite file, or {_EXAMPLE_NAMES}.", show_default=False
    ),
]
ModelOrArchive = Annotated[
    str,
    typer.Argument(
        metavar="MODEL",
        help=f"A .tflite file, an archive in Model Library Format, or {_EXAMPLE_NAMES}.",
        show_default=False,
    ),
]


def model_path(model: str) -> Path:
    """Return the file that a MODEL argument names; it need not exist.

    Raises:
        UsageError: there is no such example.
    """
    example = _example(model)
    return Path(model) if example is None else resources.example(example.model)


def golden_path(model: str) -> Path | None:
    """Return the golden file that comes with an example; None for a file.

    Raises:
        UsageError: there is no such example.
    """
    example = _example(model)
    return None if example is None else resources.example(example.golden)


def module_name(model: str) -> str:
    """Return the name of the generated module: from the file's name without suffix."""
    return module_name_from(model_path(model).stem)


def _example(model: str) -> Example | None:
    if not model.startswith(EXAMPLE):
        return None
    name = model.removeprefix(EXAMPLE)
    check_choice("example", model, [EXAMPLE + known for known in EXAMPLES], "MODEL")
    return EXAMPLES[name]


def read_model(model: str, config: CompilationConfig) -> IRModule:
    """Return the model as a module with its configuration.

    Raises:
        MicrotirError: the file cannot be read, or the model is not supported.
    """
    from microtir import frontend

    if model.endswith(".tar"):
        raise UsageError(
            "an archive is compiled already, and is no model file",
            where=model,
            legal="archives are taken by `microtir run` and `microtir micro create-project`",
        )
    return frontend.from_tflite(model_path(model)).with_configuration(config)
