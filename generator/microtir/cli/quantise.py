"""`microtir quantise` makes a float model one of integers, and says what it costs."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Annotated

import typer

from microtir.cli.choice import check_choice
from microtir.cli.model import Model, model_path, unconfigured
from microtir.cli.output import write_json
from microtir.cli.progress import Progress
from microtir.cli.quantised import facts_of, print_quantised
from microtir.errors import ExitCode, UsageError

if TYPE_CHECKING:
    from microtir.graph.ir import Graph
    from microtir.host.float_samples import FloatSamples
    from microtir.quantise import Quantised, QuantiseOptions
    from microtir.quantise.cost import Cost

_WHERE = "microtir quantise"
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
_SUFFIX = ".tflite"


def quantise(
    model: Model,
    data: Annotated[
        Path,
        typer.Option(
            "--data",
            metavar="FILE.npz",
            help="Samples: an array for each input by its name, whose first axis counts them. Of "
            "the only input any name will do, or an .npy file. One in five measures and does not "
            "calibrate.",
        ),
    ],
    output: Annotated[
        Path, typer.Option("--output", "-o", metavar="FILE.tflite", help="The file to write.")
    ],
    int8: Annotated[
        bool, typer.Option("--int8", help="Activations and weights of 8 bits: the default.")
    ] = False,
    int16: Annotated[
        bool, typer.Option("--16x8", help="Activations of 16 bits, weights of 8.")
    ] = False,
    weights: Annotated[
        int,
        typer.Option("--weights", metavar="4|8", help="Bits of weights, where a kernel has them."),
    ] = 8,
    layer: Annotated[
        list[str] | None,
        typer.Option(
            "--layer",
            metavar="PATTERN=int8|16x8|int4|float",
            help="The width of layers whose names fit; of several that fit the last one counts.",
        ),
    ] = None,
    calibration: Annotated[
        str,
        typer.Option(
            "--calibration",
            metavar="|".join(_CALIBRATIONS),
            help="From the values of samples to ranges; auto takes the one of least error.",
        ),
    ] = "auto",
    percentile: Annotated[
        float,
        typer.Option("--percentile", metavar="P", help="Of the values that a range holds."),
    ] = 99.99,
    inputs: Annotated[
        str,
        typer.Option("--inputs", metavar="|".join(_PORTS), help="The type of real inputs."),
    ] = "layer",
    outputs: Annotated[
        str,
        typer.Option("--outputs", metavar="|".join(_PORTS), help="The type of real outputs."),
    ] = "layer",
    adaround: Annotated[
        float,
        typer.Option(
            "--adaround",
            metavar="SECONDS",
            help="Time for rounding weights so that outputs are nearer.",
        ),
    ] = 0.0,
    labels: Annotated[
        str | None,
        typer.Option(
            "--labels",
            metavar="NAME",
            help="The array of the file that says what is right: classes, or numbers of the "
            "output.",
            show_default="labels or y, if there is one",
        ),
    ] = None,
    json: Annotated[
        Path | None,
        typer.Option("--json", metavar="FILE", help="Writes the figures as JSON; - is stdout."),
    ] = None,
) -> ExitCode:
    """Makes a float model one of integers: a TFLite file with the same bits in tflite-micro.

    Error and accuracy are measured on samples that were not used for calibration.
    """
    if output.suffix != _SUFFIX:
        raise UsageError(
            f"the name of the file is {output.name}", where=f"{_WHERE} -o", legal=f"NAME{_SUFFIX}"
        )
    if output.resolve() == model_path(model).resolve():
        raise UsageError("it is the model itself", where=f"{_WHERE} -o", fix="choose another name")
    options = _options(
        _width(int8=int8, int16=int16, weights=weights), layer or [], calibration, percentile,
        (inputs, outputs), adaround,
    )  # fmt: skip
    with Progress() as progress:
        progress.show("reading the model")
        module = unconfigured(model)
        assert module.graph is not None
        result, samples, measured = quantised_graph(
            module.graph, data, options, labels, progress, is_measured=True
        )
        assert measured is not None
        progress.show("writing the file")
        wider = _write(result, output)
    facts = facts_of(result, measured, samples, model_path(model), output, wider)
    if json is not None:
        write_json(facts, json)
    if str(json) != "-":
        print_quantised(result, measured, facts)
    return ExitCode.DONE


def quantised_graph(
    graph: Graph,
    data: Path,
    options: QuantiseOptions,
    labels: str | None,
    progress: Progress,
    *,
    is_measured: bool,
) -> tuple[Quantised, FloatSamples, Cost | None]:
    """Quantise a graph by the samples of a file, and measure what it costs, if that is asked for.

    Raises:
        DataFileError: the file is damaged, or lacks an array.
        UsageError: samples do not fit, or no layer has a form in integers.
    """
    from microtir.host.float_samples import read_float_samples
    from microtir.quantise import quantise as quantise_graph
    from microtir.quantise.cost import cost

    progress.show("reading the samples")
    samples = read_float_samples(data, graph, labels)
    progress.show("calibrating and quantising")
    result = quantise_graph(graph, samples.inputs, options)
    if not is_measured:
        return result, samples, None
    progress.show("measuring what it costs")
    return result, samples, cost(result, samples.inputs, options.holdout, samples.labels)


def _write(result: Quantised, output: Path) -> tuple[str, ...]:
    """Write the file; return the weights of 4 bits that it has in 8."""
    from microtir.writers.tflite import int8_instead, write_tflite

    write_tflite(result.graph, output, int4=result.weights4)
    return int8_instead(result.graph, result.weights4)


def _width(*, int8: bool, int16: bool, weights: int) -> str:
    if weights not in (4, 8):
        raise UsageError(f"weights of {weights} bits", where=f"{_WHERE} --weights", legal="4 or 8")
    chosen = [name for name, is_asked in (("--int8", int8), ("--16x8", int16)) if is_asked]
    if len(chosen) > 1 or (int16 and weights == 4):
        other = "--int8" if len(chosen) > 1 else "--weights 4"
        raise UsageError(
            f"--16x8 and {other} are two widths",
            where=_WHERE,
            fix="give one of them, and --layer for the others",
        )
    return "16x8" if int16 else "int4" if weights == 4 else "int8"


def _options(
    width: str,
    layers: list[str],
    calibration: str,
    percentile: float,
    ports: tuple[str, str],
    adaround: float,
) -> QuantiseOptions:
    from microtir.quantise import Calibration, LayerWidth, PortType, QuantiseOptions, Width

    check_choice("calibration", calibration, _CALIBRATIONS, f"{_WHERE} --calibration")
    for flag, port in zip(("--inputs", "--outputs"), ports, strict=True):
        check_choice("type", port, _PORTS, f"{_WHERE} {flag}")
    widths = []
    for text in layers:
        pattern, sign, name = text.rpartition("=")
        if not sign or not pattern:
            raise UsageError(
                f"cannot read {text!r}", where=f"{_WHERE} --layer", legal="PATTERN=int8"
            )
        check_choice("width", name, _WIDTHS, f"{_WHERE} --layer")
        widths.append(LayerWidth(pattern, Width[_WIDTHS[name]]))
    inputs, outputs = (PortType[_PORTS[port]] for port in ports)
    return QuantiseOptions(
        width=Width[_WIDTHS[width]],
        layers=tuple(widths),
        calibration=Calibration[_CALIBRATIONS[calibration]],
        percentile=percentile,
        inputs=inputs,
        outputs=outputs,
        rounding_seconds=adaround,
    )
