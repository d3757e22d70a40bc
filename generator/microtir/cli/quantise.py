"""`microtir quantise` makes a float model one of integers, and says what it costs."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from microtir.cli import quantise_options
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

_SUFFIXES = (".tflite", ".onnx")


def quantise(
    model: Model,
    data: quantise_options.Data,
    output: quantise_options.Output,
    int8: quantise_options.Int8 = False,
    int16: quantise_options.Int16 = False,
    weights: quantise_options.WeightBits = 8,
    layer: quantise_options.LayerWidths = None,
    calibration: quantise_options.CalibrationName = "auto",
    percentile: quantise_options.Percentile = 99.99,
    inputs: quantise_options.InputType = "layer",
    outputs: quantise_options.OutputType = "layer",
    adaround: quantise_options.RoundingWork = 0.0,
    labels: quantise_options.Labels = None,
    json: quantise_options.Json = None,
) -> ExitCode:
    """Makes a float model one of integers: a TFLite file or an ONNX one (QDQ).

    Error and accuracy are measured on samples that were not used for calibration.
    """
    if output.suffix not in _SUFFIXES:
        raise UsageError(
            f"the name of the file is {output.name}",
            where=f"{quantise_options.WHERE} -o",
            legal=" or ".join(f"NAME{suffix}" for suffix in _SUFFIXES),
        )
    if output.resolve() == model_path(model).resolve():
        raise UsageError(
            "it is the model itself",
            where=f"{quantise_options.WHERE} -o",
            fix="choose another name",
        )
    width = quantise_options.width_of(int8=int8, int16=int16, weights=weights)
    options = quantise_options.options_of(
        width, layer or [], calibration, percentile, (inputs, outputs), adaround
    )
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
    from microtir.writers.onnx import write_onnx
    from microtir.writers.tflite import int8_instead, write_tflite

    if output.suffix == ".onnx":
        write_onnx(result.graph, output)
        return tuple(sorted(result.weights4))
    write_tflite(result.graph, output, int4=result.weights4)
    return int8_instead(result.graph, result.weights4)
