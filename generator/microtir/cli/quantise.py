"""`microtir quantise` makes a float model one of integers, and says what it costs."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from microtir.cli.model import Model, model_path, unconfigured
from microtir.cli.output import write_json
from microtir.cli.progress import Progress
from microtir.cli.quantise_options import Json, Output, with_quantiser
from microtir.cli.quantised import facts_of, print_quantised
from microtir.cli.quantiser import Quantiser
from microtir.errors import ExitCode, UsageError

if TYPE_CHECKING:
    from microtir.quantise import Quantised

_SUFFIXES = (".tflite", ".onnx")


@with_quantiser
def quantise(
    model: Model,
    output: Output,
    quantiser: Quantiser,
    json: Json = None,
) -> ExitCode:
    """Makes a float model one of integers: a TFLite file or an ONNX one (QDQ).

    Error and accuracy are measured on samples that were not used for calibration.
    """
    if output.suffix not in _SUFFIXES:
        raise UsageError(
            f"the name of the file is {output.name}",
            where="microtir quantise -o",
            legal=" or ".join(f"NAME{suffix}" for suffix in _SUFFIXES),
        )
    if output.resolve() == model_path(model).resolve():
        raise UsageError(
            "it is the model itself",
            where="microtir quantise -o",
            fix="choose another name",
        )
    from microtir.host.quantised import quantised_by

    with Progress() as progress:
        progress.show("reading the model")
        graph = unconfigured(model).graph
        assert graph is not None  # a frontend gave it
        by = quantised_by(
            graph, quantiser.samples, quantiser.options, quantiser.labels, progress.show
        )
        progress.show("measuring what it costs")
        summary = by.summary()
        progress.show("writing the file")
        wider = _write(by.result, output)
    if json is not None:
        write_json(facts_of(by, summary, model_path(model), output, wider), json)
    if str(json) != "-":
        print_quantised(summary, model_path(model), output, wider)
    return ExitCode.DONE


def _write(result: Quantised, output: Path) -> tuple[str, ...]:
    """Write the file; return the weights of 4 bits that it has in 8."""
    from microtir.writers.onnx import write_onnx
    from microtir.writers.tflite import int8_instead, write_tflite

    if output.suffix == ".onnx":
        write_onnx(result.graph, output)
        return tuple(sorted(result.weights4))
    write_tflite(result.graph, output, int4=result.weights4)
    return int8_instead(result.graph, result.weights4)
