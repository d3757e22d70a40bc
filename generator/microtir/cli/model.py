"""Reads the MODEL argument: the path of a model file, or a bundled example."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Annotated

import typer

from microtir.cli.choice import check_choice
from microtir.errors import MicrotirError, UsageError
from microtir.support import resources
from microtir.support.names import module_name_from

if TYPE_CHECKING:
    from microtir.config import CompilationConfig, PassConfig
    from microtir.module.ir_module import IRModule
    from microtir.rewrite.extra_passes import GraphFunction

EXAMPLE = "example:"
READING = "#"
"""Separator of a model file and the words about it: its signature, or extents."""

_DIM = re.compile(r"(.+)=(?:(\d{1,9})\.\.)?(\d{1,9})")
_SHAPES = re.compile(r"([^,\[\]]+):\[([0-9., ]*)\](?:,|$)")
_EXTENT = re.compile(r"(?:(\d{1,9})\.\.)?(\d{1,9})")


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
        metavar="MODEL",
        help="A .tflite, .onnx, .keras or .pt2 file, FILE#NAME for one signature, or"
        f" {_EXAMPLE_NAMES}.",
        show_default=False,
    ),
]
ModelOrArchive = Annotated[
    str,
    typer.Argument(
        metavar="MODEL",
        help="A .tflite, .onnx, .keras or .pt2 file, an archive in Model Library Format, or"
        f" {_EXAMPLE_NAMES}.",
        show_default=False,
    ),
]


def model_path(model: str) -> Path:
    """Return the file that a MODEL argument names; it need not exist.

    Raises:
        UsageError: there is no such example.
    """
    example = _example(model)
    return _file(model)[0] if example is None else resources.example(example.model)


@dataclass(frozen=True, slots=True)
class Reading:
    """The text of a MODEL argument behind a `#`, beside the file.

    A name is a signature of a TFLite file; NAME=EXTENT or NAME=1..MOST a dimension, and
    INPUT:[1,2,3] the shape of an input, which may have a range, several of them joined by `&`.
    """

    signature: str | None = None
    dims: Mapping[str, int | range] = field(default_factory=dict)
    input_shapes: Mapping[str, tuple[int | range, ...]] = field(default_factory=dict)

    @property
    def has_range(self) -> bool:
        """Return whether each run is told an extent."""
        extents = chain(self.dims.values(), *self.input_shapes.values())
        return any(isinstance(extent, range) for extent in extents)


def reading_of(model: str) -> Reading:
    """Return what a MODEL argument says beside the file.

    Raises:
        UsageError: a part of it is neither.
    """
    said = _file(model)[1]
    if said is None or not any(map(_is_extents, said.split("&"))):
        return Reading(said)
    dims: dict[str, int | range] = {}
    shapes: dict[str, tuple[int | range, ...]] = {}
    for part in said.split("&"):
        if not _is_extents(part):
            raise UsageError(
                f"the extents {part!r} cannot be read",
                where="MODEL",
                legal="NAME=16 for a dimension, or INPUT:[1,3,32,32] for the shape of an input",
            )
        if (dim := _DIM.fullmatch(part)) is not None:
            dims[dim[1]] = _extent(dim[2], dim[3])
        for name, extents in _SHAPES.findall(part):
            shapes[name] = tuple(_extent(*bounds) for bounds in _extents(extents))
    return Reading(None, dims, shapes)


def _is_extents(part: str) -> bool:
    """Return whether a text says the extent of a dimension, or shapes as tvmc has them."""
    return bool(_DIM.fullmatch(part)) or _is_shapes(part)


def _is_shapes(text: str) -> bool:
    shapes = tuple(_SHAPES.finditer(text))
    is_whole = bool(text) and "".join(match.group() for match in shapes) == text
    return is_whole and all(None not in _matches(match[2]) for match in shapes)


def _matches(extents: str) -> list[re.Match[str] | None]:
    """Return the extents of a shape, as they are written; None for what is none."""
    return [_EXTENT.fullmatch(part.strip()) for part in extents.split(",") if part.strip()]


def _extents(extents: str) -> list[tuple[str | None, str]]:
    return [(match[1], match[2]) for match in _matches(extents) if match is not None]


def _extent(least: str | None, most: str) -> int | range:
    """Return an extent, or a range of them, as it is written."""
    return int(most) if least is None else range(int(least), int(most) + 1)


def with_reading(
    model: str, signature: str | None, dims: Sequence[str], input_shapes: str | None
) -> str:
    """Return the MODEL argument with what flags say of its file.

    Raises:
        UsageError: an extent or a shape cannot be read.
    """
    for dim in dims:
        if not _DIM.fullmatch(dim):
            raise UsageError(f"cannot read {dim!r}", where="--dim", legal="NAME=16, or NAME=1..8")
    if input_shapes is not None and not _is_shapes(input_shapes):
        legal = "NAME:[1,3,32,32], or NAME:[1..8,3,32,32], with commas between several"
        raise UsageError(f"cannot read {input_shapes!r}", where="--input-shapes", legal=legal)
    said = [part for part in (signature, *dims, input_shapes) if part is not None]
    return f"{model}{READING}{'&'.join(said)}" if said else model


def _file(model: str) -> tuple[Path, str | None]:
    """Return the file and what is said beside it; a file may have the sign in its name."""
    path, sign, said = model.rpartition(READING)
    if not sign or Path(model).exists():
        return Path(model), None
    return Path(path), said


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


def read_model(
    model: str,
    config: CompilationConfig,
    after: Mapping[str, Sequence[GraphFunction]] | None = None,
) -> IRModule:
    """Return the model as a module with its configuration.

    Raises:
        MicrotirError: the file cannot be read, or the model is not supported.
    """
    if model.endswith(".tar"):
        raise UsageError(
            "an archive is already compiled, and is not a model file",
            where=model,
            legal="a model file; `microtir run` and `microtir package` accept archives",
        )
    return unconfigured(model, config.pass_config, after).with_configuration(config)


def with_batch_count(config: CompilationConfig, models: Sequence[str]) -> CompilationConfig:
    """Return the configuration whose runs are told how many entries of a batch there are.

    It is the same where no model has a range for a dimension.

    Raises:
        UsageError: the executor has no place for a number.
    """
    if not any(reading_of(model).has_range for model in models):
        return config
    if config.is_graph():
        raise UsageError(
            "a dimension has a range, but calls of a graph executor cannot pass the number of "
            "batch entries",
            where="--dim, --input-shapes",
            legal="a range with --executor aot, or a single extent",
        )
    return config.with_(executor=config.executor.with_options({"batch-count": True}))


def unconfigured(
    model: str,
    pass_config: PassConfig | None = None,
    after: Mapping[str, Sequence[GraphFunction]] | None = None,
) -> IRModule:
    """Return the model as a module without a configuration.

    The passes over it have options, and functions behind them.

    Raises:
        MicrotirError: the file cannot be read, or the model is not supported.
    """
    from microtir import frontend

    said = reading_of(model)
    return frontend.read_model(
        model_path(model), signature=said.signature, dims=said.dims,
        input_shapes=said.input_shapes, pass_config=pass_config, after=after,
    )  # fmt: skip


def model_problems(model: str) -> tuple[MicrotirError, ...]:
    """Return every problem that keeps a model from being read."""
    from microtir import frontend

    said = reading_of(model)
    return frontend.check(
        model_path(model), signature=said.signature, dims=said.dims, input_shapes=said.input_shapes
    )
