"""Options of `microtir quantise`, and what they mean."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Annotated

import typer

from microtir.cli.choice import check_choice
from microtir.errors import UsageError

if TYPE_CHECKING:
    from microtir.quantise import QuantiseOptions

WHERE = "microtir quantise"

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
_PORTS: Mapping[str, str] = MappingProxyType(
    {"layer": "LAYER", "float": "FLOAT", "int8": "INT8", "uint8": "UINT8"}
)

Data = Annotated[
    Path,
    typer.Option(
        "--data",
        metavar="FILE.npz",
        help="Samples: an array for each input by its name, whose first axis counts them. Of "
        "the only input any name will do, or an .npy file. One in five measures and does not "
        "calibrate.",
    ),
]
Output = Annotated[
    Path, typer.Option("--output", "-o", metavar="FILE.tflite|FILE.onnx", help="The file to write.")
]
Int8 = Annotated[
    bool, typer.Option("--int8", help="Activations and weights of 8 bits: the default.")
]
Int16 = Annotated[bool, typer.Option("--16x8", help="Activations of 16 bits, weights of 8.")]
WeightBits = Annotated[
    int,
    typer.Option("--weights", metavar="4|8", help="Bits of weights, where a kernel has them."),
]
LayerWidths = Annotated[
    list[str] | None,
    typer.Option(
        "--layer",
        metavar="PATTERN=int8|16x8|int4|float",
        help="The width of layers whose names fit; of several that fit the last one counts.",
    ),
]
CalibrationName = Annotated[
    str,
    typer.Option(
        "--calibration",
        metavar="|".join(_CALIBRATIONS),
        help="From the values of samples to ranges; auto takes the one of least error.",
    ),
]
Percentile = Annotated[
    float,
    typer.Option("--percentile", metavar="P", help="Of the values that a range holds."),
]
InputType = Annotated[
    str,
    typer.Option("--inputs", metavar="|".join(_PORTS), help="The type of real inputs."),
]
OutputType = Annotated[
    str,
    typer.Option("--outputs", metavar="|".join(_PORTS), help="The type of real outputs."),
]
RoundingWork = Annotated[
    float,
    typer.Option(
        "--adaround",
        metavar="WORK",
        help="Rounds weights so that outputs are nearer, with so many billions of operations; 90 "
        "take some 30 seconds.",
    ),
]
Labels = Annotated[
    str | None,
    typer.Option(
        "--labels",
        metavar="NAME",
        help="The array of the file that says what is right: classes, or numbers of the output.",
        show_default="labels or y, if there is one",
    ),
]
Json = Annotated[
    Path | None,
    typer.Option("--json", metavar="FILE", help="Writes the figures as JSON; - is stdout."),
]

SamplesFirst = Annotated[
    Path | None,
    typer.Option(
        "--quantise",
        metavar="FILE.npz",
        help="Makes a float model int8 by these samples first; `microtir quantise` has more.",
    ),
]


def width_of(*, int8: bool, int16: bool, weights: int) -> str:
    """Return the width of all layers that flags name.

    Raises:
        UsageError: they name two, or another number of bits.
    """
    if weights not in (4, 8):
        raise UsageError(f"weights of {weights} bits", where=f"{WHERE} --weights", legal="4 or 8")
    chosen = [name for name, is_asked in (("--int8", int8), ("--16x8", int16)) if is_asked]
    if len(chosen) > 1 or (int16 and weights == 4):
        other = "--int8" if len(chosen) > 1 else "--weights 4"
        raise UsageError(
            f"--16x8 and {other} are two widths",
            where=WHERE,
            fix="give one of them, and --layer for the others",
        )
    return "16x8" if int16 else "int4" if weights == 4 else "int8"


def options_of(
    width: str,
    layers: Sequence[str],
    calibration: str,
    percentile: float,
    ports: tuple[str, str],
    adaround: float,
) -> QuantiseOptions:
    """Return the options of the quantiser.

    Args:
        width: of all layers that no pattern names.
        layers: patterns with their widths, as they are typed.
        calibration: its name.
        percentile: of the values that a range holds.
        ports: the types of inputs and outputs.
        adaround: billions of operations for adaptive rounding.

    Raises:
        UsageError: one of them is not legal.
    """
    from microtir.quantise import Calibration, LayerWidth, PortType, QuantiseOptions, Width

    check_choice("calibration", calibration, _CALIBRATIONS, f"{WHERE} --calibration")
    for flag, port in zip(("--inputs", "--outputs"), ports, strict=True):
        check_choice("type", port, _PORTS, f"{WHERE} {flag}")
    widths = []
    for text in layers:
        pattern, sign, name = text.rpartition("=")
        if not sign or not pattern:
            raise UsageError(
                f"cannot read {text!r}", where=f"{WHERE} --layer", legal="PATTERN=int8"
            )
        check_choice("width", name, _WIDTHS, f"{WHERE} --layer")
        widths.append(LayerWidth(pattern, Width[_WIDTHS[name]]))
    inputs, outputs = (PortType[_PORTS[port]] for port in ports)
    return QuantiseOptions(
        width=Width[_WIDTHS[width]],
        layers=tuple(widths),
        calibration=Calibration[_CALIBRATIONS[calibration]],
        percentile=percentile,
        inputs=inputs,
        outputs=outputs,
        rounding_work=adaround,
    )
