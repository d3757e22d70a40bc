"""Gives verbs the options of quantisation, and makes one value of them."""

from __future__ import annotations

import copy
import inspect
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Annotated, Any, get_args, get_type_hints

import typer

from microtir.cli.archive import check_flags
from microtir.cli.choice import check_choice
from microtir.cli.config_options import Verb, with_parameters
from microtir.cli.panels import QUANTISE_PANEL
from microtir.cli.quantiser import Quantiser
from microtir.cli.width_search import MaxLoss, share_of
from microtir.errors import ExitCode, UsageError

if TYPE_CHECKING:
    from microtir.quantise import QuantiseOptions

_WIDTHS: Mapping[str, str] = MappingProxyType(
    {"int8": "INT8", "16x8": "INT16", "int4": "WEIGHTS4", "float": "FLOAT"}
)
_CALIBRATIONS: Mapping[str, str] = MappingProxyType(
    {
        "auto": "AUTO",
        "min-max": "MINMAX",
        "moving-average": "AVERAGE",
        "percentile": "PERCENTILE",
        "mse": "MSE",
        "entropy": "ENTROPY",
    }
)
_PORTS = ("layer", "float", "int8", "uint8")

Data = Annotated[
    Path,
    typer.Option(
        "--data",
        metavar="FILE.npz",
        help="Samples, as one array for each input, with the name of the input. The first axis "
        "counts samples. For a model with one input, any name is accepted, and so is an .npy "
        "file. Every fifth sample is not used for calibration, but to measure the error.",
    ),
]
Output = Annotated[
    Path, typer.Option("--output", "-o", metavar="FILE.tflite|FILE.onnx", help="The file to write.")
]
Int8 = Annotated[
    bool, typer.Option("--int8", help="8 bits for activations and weights (the default).")
]
Int16 = Annotated[bool, typer.Option("--16x8", help="16 bits for activations, 8 for weights.")]
WeightBits = Annotated[
    int,
    typer.Option(
        "--weights", metavar="4|8", help="Bits of each weight, where a kernel supports this."
    ),
]
LayerWidths = Annotated[
    list[str] | None,
    typer.Option(
        "--layer",
        metavar="PATTERN=int8|16x8|int4|float",
        help="Sets the width of the layers whose names match the pattern. If several patterns "
        "match, the last pattern counts.",
    ),
]
CalibrationName = Annotated[
    str,
    typer.Option(
        "--calibration",
        metavar="|".join(_CALIBRATIONS),
        help="The method that computes the range of each tensor from the samples. auto selects "
        "the method with the smallest error, for each tensor.",
    ),
]
Percentile = Annotated[
    float,
    typer.Option(
        "--percentile", metavar="P", help="Percentage of a tensor's values that its range covers."
    ),
]
InputType = Annotated[
    str,
    typer.Option("--inputs", metavar="|".join(_PORTS), help="The type of float inputs."),
]
OutputType = Annotated[
    str,
    typer.Option("--outputs", metavar="|".join(_PORTS), help="The type of float outputs."),
]
RoundingWork = Annotated[
    float,
    typer.Option(
        "--adaround",
        metavar="WORK",
        help="Rounds weights so that the errors of the outputs become smaller. The value limits "
        "the work, in billions of operations. A value of 90 takes about 30 s.",
    ),
]
Labels = Annotated[
    str | None,
    typer.Option(
        "--labels",
        metavar="NAME",
        help="The array of the file with the expected results (classes or output values).",
        show_default="labels or y, if there is one",
    ),
]
Json = Annotated[
    Path | None,
    typer.Option("--json", metavar="FILE", help="Writes the figures as JSON (- for stdout)."),
]

PricingBoard = Annotated[
    str | None,
    typer.Option(
        "--board", metavar="BOARD", help="The board for --max-loss, which sets the default target."
    ),
]
Plot = Annotated[
    Path | None,
    typer.Option(
        "--plot", metavar="FILE.svg", help="Draws the results of --max-loss: work over flash."
    ),
]

SamplesFirst = Annotated[
    Path | None,
    typer.Option(
        "--quantise",
        metavar="FILE.npz",
        help="Quantises a float model with these samples first, by default to int8.",
    ),
]

_QUANTISER = "quantiser"
_SAMPLES = "quantise"
_FLAGS: Mapping[str, tuple[str, Any, object]] = MappingProxyType({
    "int8": ("--int8", Int8, False),
    "int16": ("--16x8", Int16, False),
    "weights": ("--weights", WeightBits, 8),
    "layer": ("--layer", LayerWidths, None),
    "calibration": ("--calibration", CalibrationName, "auto"),
    "percentile": ("--percentile", Percentile, 99.99),
    "inputs": ("--inputs", InputType, "layer"),
    "outputs": ("--outputs", OutputType, "layer"),
    "adaround": ("--adaround", RoundingWork, 0.0),
    "labels": ("--labels", Labels, None),
    "max_loss": ("--max-loss", MaxLoss, None),
})  # fmt: skip
"""The options by their names in Python, with their defaults."""


def with_quantiser(verb: Verb) -> Verb:
    """Give a verb with a parameter `quantiser` the options of quantisation.

    A verb that always quantises takes the samples by `--data`, one whose parameter may be None by
    `--quantise`; the short help of that one has no other of these options.
    """
    hints = get_type_hints(verb, include_extras=True)
    parameters: list[inspect.Parameter] = []
    for name, one in inspect.signature(verb).parameters.items():
        if name != _QUANTISER:
            parameters.append(
                one.replace(annotation=hints[name], kind=inspect.Parameter.KEYWORD_ONLY)
            )
            continue
        is_needed = one.default is inspect.Parameter.empty
        samples = Data if is_needed else SamplesFirst
        parameters.append(_parameter(_SAMPLES, samples, one.default, is_hidden=False))
        parameters += [
            _parameter(flag, annotation, default, is_hidden=not is_needed)
            for flag, (_, annotation, default) in _FLAGS.items()
        ]

    def command(**arguments: Any) -> ExitCode:
        samples = arguments.pop(_SAMPLES)
        flags = {name: arguments.pop(name) for name in _FLAGS}
        return verb(quantiser=_quantiser(samples, flags), **arguments)

    return with_parameters(command, verb, parameters)


def _parameter(
    name: str, annotation: Any, default: object, *, is_hidden: bool
) -> inspect.Parameter:
    """Return an option as a parameter; a hidden one stands in a panel of the whole help."""
    type_, option = get_args(annotation)
    if is_hidden:
        option = copy.copy(option)
        option.rich_help_panel = QUANTISE_PANEL
    kind = inspect.Parameter.KEYWORD_ONLY
    return inspect.Parameter(name, kind, default=default, annotation=Annotated[type_, option])


def _quantiser(samples: Path | None, flags: Mapping[str, Any]) -> Quantiser | None:
    """Return what flags ask for; None without samples.

    Raises:
        UsageError: a flag is not legal, or of no use without samples.
    """
    if samples is None:
        for name, (flag, _, default) in _FLAGS.items():
            if flags[name] != default:
                raise UsageError(
                    f"{flag} has no effect without --quantise", where=flag,
                    fix="add --quantise samples.npz",
                )  # fmt: skip
        return None
    width = _width_of(int8=flags["int8"], int16=flags["int16"], weights=flags["weights"])
    max_loss = None if flags["max_loss"] is None else share_of(flags["max_loss"])
    if max_loss is not None and width != "int8":
        raise UsageError(
            "--16x8 and --weights cannot be combined with --max-loss, which chooses widths",
            where="--max-loss",
            fix="leave out these options, or set the width of single layers with --layer"
        )  # fmt: skip
    return Quantiser(samples, flags["labels"], _options_of(width, flags), max_loss)


def check_one_model(quantiser: Quantiser | None, models: Sequence[str]) -> None:
    """Refuse samples for several models, or for an archive, which is compiled already.

    Raises:
        UsageError: says what to do.
    """
    check_flags(models[0], {"quantise": quantiser})
    if quantiser is not None and len(models) > 1:
        raise UsageError(
            "--quantise can be used with only one model", where="--quantise",
            fix="quantise each model to a file first, with `microtir quantise`"
        )  # fmt: skip


def _width_of(*, int8: bool, int16: bool, weights: int) -> str:
    """Return the width of all layers that flags name.

    Raises:
        UsageError: they name two, or another number of bits.
    """
    if weights not in (4, 8):
        raise UsageError(f"--weights is {weights} bits", where="--weights", legal="4 or 8")
    if int16 and (int8 or weights == 4):
        other = "--int8" if int8 else "--weights 4"
        raise UsageError(
            f"--16x8 and {other} set different widths for the same layers",
            where="--16x8",
            fix="use only one of the two options, and --layer for the layers that differ",
        )
    return "16x8" if int16 else "int4" if weights == 4 else "int8"


def _options_of(width: str, flags: Mapping[str, Any]) -> QuantiseOptions:
    """Return the options of the quantiser.

    Args:
        width: of all layers that no pattern names.
        flags: as they are typed.

    Raises:
        UsageError: one of them is not legal.
    """
    from microtir.quantise import Calibration, LayerWidth, PortType, QuantiseOptions, Width

    check_choice("calibration", flags["calibration"], _CALIBRATIONS, "--calibration")
    for name in ("inputs", "outputs"):
        check_choice("type", flags[name], _PORTS, f"--{name}")
    widths = []
    for text in flags["layer"] or ():
        pattern, sign, name = text.rpartition("=")
        if not sign or not pattern:
            raise UsageError(f"{text!r} cannot be read", where="--layer", legal="PATTERN=int8")
        check_choice("width", name, _WIDTHS, "--layer")
        widths.append(LayerWidth(pattern, Width[_WIDTHS[name]]))
    return QuantiseOptions(
        width=Width[_WIDTHS[width]],
        layers=tuple(widths),
        calibration=Calibration[_CALIBRATIONS[flags["calibration"]]],
        percentile=flags["percentile"],
        inputs=PortType(flags["inputs"]),
        outputs=PortType(flags["outputs"]),
        rounding_work=flags["adaround"],
    )
