"""`microtir evaluate` counts how often the C of a classifier is right."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from microtir.cli import board_options
from microtir.cli.building import Built, build_model
from microtir.cli.model import Model, golden_path
from microtir.cli.output import write, write_json, write_table
from microtir.cli.progress import Progress
from microtir.config import CompilationConfig
from microtir.config.processors import for_processors, run_here
from microtir.errors import ExitCode, UsageError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from microtir.host.dataset import Dataset
    from microtir.host.evaluation import Evaluation
    from microtir.host.tensors import TensorInfo
    from microtir.host.verify import Runner

_MOST_CLASSES = 20  # of which the whole matrix is shown


def evaluate(
    model: Model,
    config: CompilationConfig,
    dataset: Annotated[
        Path | None,
        typer.Option(
            "--dataset",
            metavar="FILE.npz|DIR",
            help="Labelled samples: a file with arrays `inputs` and `labels`, or a folder of .npy "
            "files for each class. Floats are quantised with the scale of the input. Example "
            "models include a dataset.",
        ),
    ] = None,
    output: Annotated[
        str | None,
        typer.Option("--output", metavar="NAME", help="The output with the scores of the classes."),
    ] = None,
    min_accuracy: Annotated[
        float | None,
        typer.Option(
            "--min-accuracy",
            metavar="A",
            min=0.0,
            max=1.0,
            help="The minimum accuracy, from 0 to 1. Exit status 1 means that it was not reached.",
        ),
    ] = None,
    json: Annotated[
        Path | None,
        typer.Option("--json", metavar="FILE", help="Writes the figures as JSON (- for stdout)."),
    ] = None,
    board: board_options.MaybeBoard = None,
    port: board_options.Port = None,
    timeout: board_options.Timeout = 300.0,
) -> ExitCode:
    """Measures the accuracy of a classifier, overall and for each class.

    The C code and the numpy reference classify the same samples. Exit status 1 means that the
    accuracy is below --min-accuracy.
    """
    where = "microtir evaluate"
    board_options.check_board_options(where, board, port)
    path = dataset or golden_path(model)
    if path is None:
        raise UsageError("a dataset is missing", where=where, legal="--dataset FILE.npz|DIR")
    with Progress() as progress:
        built = build_model(model, config, progress, board)
        run = board_options.board_runner(built.artifact, board, port, timeout)
        actual, wanted, data = _decided(built, path, output, run, progress)
    is_enough = min_accuracy is None or actual.accuracy >= min_accuracy
    if json is not None:
        write_json(_facts(actual, wanted, data), json)
    if str(json) != "-":
        targets = built.artifact.module.require_config(where).targets
        place = run_here(targets) if board is None else f"{for_processors(targets)} on {board}"
        _print(actual, wanted, data, f"{path.name}; {place}", min_accuracy)
    return ExitCode.DONE if is_enough else ExitCode.ANSWER_IS_NO


def _decided(
    built: Built, path: Path, output: str | None, run: Runner | None, progress: Progress
) -> tuple[Evaluation, Evaluation, Dataset]:
    """Return what the C and the reference decide on a dataset, and the dataset."""
    from microtir import host
    from microtir.host.dataset import read_dataset
    from microtir.host.evaluation import evaluate as decisions
    from microtir.host.oracle import Oracle, expected_outputs

    if built.model.states:
        raise UsageError(
            f"'{built.model.name}' has a state, so its samples are sequences",
            where="microtir evaluate",
            fix="compare sequences with `microtir verify`",
        )
    progress.show("compiling and running the C")
    model = host.load(built.artifact)
    chosen = _only(model.outputs, output, "output")
    data = read_dataset(path, _only(model.inputs, None, "input"))
    samples = data.samples
    outputs = run(samples) if run else [model.run(sample) for sample in samples.values]
    progress.show("running the reference")
    expected = expected_outputs(Oracle.REFERENCE, built.graph, b"", samples).values
    actual, wanted = (
        decisions(results, data.labels, chosen, data.names) for results in (outputs, expected)
    )
    return actual, wanted, data


def _only(ports: Sequence[TensorInfo], name: str | None, kind: str) -> TensorInfo:
    """Return the port that is named, or the only one."""
    named = [port for port in ports if name in port.names]
    if named:
        return named[0]
    if name is None and len(ports) == 1:
        return ports[0]
    legal = ", ".join(port.name for port in ports)
    if kind == "input":
        what = f"the model has {len(ports)} inputs, but a dataset has samples for one"
        raise UsageError(what, where="microtir evaluate", fix="use `microtir run`")
    what = f"the model has {len(ports)} outputs" if name is None else f"no output '{name}'"
    raise UsageError(what, where="microtir evaluate --output", legal=legal)


def _different(actual: Evaluation, wanted: Evaluation) -> int:
    return int((actual.decisions != wanted.decisions).sum())


def _name(data: Dataset, number: int) -> str:
    return data.names[number] if number < len(data.names) else str(number)


def _print(
    actual: Evaluation, wanted: Evaluation, data: Dataset, what: str, least: float | None
) -> None:
    of = f"{actual.right} of {len(data.labels)}"
    limit = "" if least is None or actual.accuracy >= least else f", below {least:.2%}"
    write(f"accuracy    {actual.accuracy:.2%}, {of} samples right{limit}")
    write(f"reference   {wanted.accuracy:.2%}, {_different(actual, wanted)} decided differently")
    write(f"dataset     {what}\n")
    matrix = actual.confusion()
    if actual.classes > _MOST_CLASSES:
        write(f"{actual.classes} classes: the whole matrix is in --json FILE")
        return
    names = [_name(data, number) for number in range(actual.classes)]
    rows = []
    for number, row in enumerate(matrix):
        count = int(row.sum())
        share = f"{row[number] / count:.1%}" if count else ""
        rows.append((names[number], *(n or "." for n in row.tolist()), count, share))
    columns = ("class", *(f"as {name}" for name in names), "samples", "right")
    write_table(columns, rows, right=columns[1:])


def _facts(actual: Evaluation, wanted: Evaluation, data: Dataset) -> dict[str, object]:
    return {
        "samples": len(data.labels),
        "right": actual.right,
        "accuracy": actual.accuracy,
        "reference_accuracy": wanted.accuracy,
        "decided_otherwise": _different(actual, wanted),
        "classes": [_name(data, number) for number in range(actual.classes)],
        "confusion": actual.confusion().tolist(),
    }
