"""`microtir quantise` makes a float model one of integers, and says what it costs."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from microtir.cli.building import quantised
from microtir.cli.model import Model, model_path, read_model
from microtir.cli.output import write_json
from microtir.cli.progress import Progress
from microtir.cli.quantise_options import Json, Output, Plot, PricingBoard, with_quantiser
from microtir.cli.quantised import Stored, facts_of, print_quantised
from microtir.cli.quantiser import Quantiser
from microtir.cli.width_search import draw_search, facts_of_search, print_search
from microtir.config import CompilationConfig
from microtir.config.processors import for_processors
from microtir.errors import ExitCode, UsageError

if TYPE_CHECKING:
    from microtir.quantise import Quantised, WidthSearch

_WHERE = "microtir quantise"
_SUFFIXES = (".tflite", ".onnx")


@with_quantiser
def quantise(
    model: Model,
    config: CompilationConfig,
    output: Output,
    quantiser: Quantiser,
    json: Json = None,
    board: PricingBoard = None,
    plot: Plot = None,
) -> ExitCode:
    """Quantises a float model to integers, and writes a TFLite file or an ONNX file (QDQ).

    It measures error and accuracy on samples that were not used for calibration.
    """
    _check_output(model, output)
    is_of_search = board is not None or plot is not None or config.budget.known()
    if quantiser.max_loss is None and is_of_search:
        raise UsageError(
            "budgets, --board and --plot need a search for widths", where=_WHERE,
            fix="add --max-loss 1%"
        )  # fmt: skip
    is_shown = str(json) != "-"
    searches: list[WidthSearch] = []

    def show(search: WidthSearch) -> None:
        searches.append(search)
        if plot is not None:
            name = model_path(model).stem
            draw_search(search, f"widths of {name} {for_processors(config.targets)}", plot)
        if is_shown:
            print_search(search)

    with Progress() as progress:
        progress.show("reading the model")
        _, by = quantised(read_model(model, config), quantiser, progress, show)
        progress.show("measuring what it costs")
        summary = by.summary()
        progress.show("writing the file")
        stored = _write(by.result, output)
    facts = facts_of(by, summary, model_path(model), output, stored)
    for search in searches:
        facts["search"] = facts_of_search(search)
    if json is not None:
        write_json(facts, json)
    if is_shown:
        print_quantised(summary, model_path(model), output, stored)
    return ExitCode.DONE


def _check_output(model: str, output: Path) -> None:
    """Refuse the name of a file that cannot be written."""
    if output.suffix not in _SUFFIXES:
        raise UsageError(
            f"the suffix of the output file {output.name} is not known",
            where=f"{_WHERE} -o",
            legal=" or ".join(f"NAME{suffix}" for suffix in _SUFFIXES),
        )
    if output.resolve() == model_path(model).resolve():
        raise UsageError(
            "the output would replace the model", where=f"{_WHERE} -o", fix="choose another name"
        )


def _write(result: Quantised, output: Path) -> Stored:
    """Write the file; return what it stores otherwise than the graph computes it."""
    from microtir.writers.onnx import floats_instead, write_onnx
    from microtir.writers.tflite import int8_instead, write_tflite

    if output.suffix == ".onnx":
        write_onnx(result.graph, output)
        return Stored(tuple(sorted(result.weights4)), floats_instead(result.graph))
    write_tflite(result.graph, output, int4=result.weights4)
    return Stored(int8_instead(result.graph, result.weights4))
