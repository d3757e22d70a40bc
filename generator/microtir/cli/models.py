"""`microtir check` and `inspect` say what a model is, and whether it can be compiled."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated

import typer

from microtir.cli.board_options import LimitingBoard
from microtir.cli.float_layers import float_parts, write_float_parts, write_rounded_rows
from microtir.cli.int8_forecast import forecast, write_forecast
from microtir.cli.model import Model, model_path, model_problems, read_model, unconfigured
from microtir.cli.output import cell, facts, shape, write, write_json, write_table
from microtir.cli.progress import Progress
from microtir.cli.stored_as_is import changed_values, write_changed_values
from microtir.cli.value_names import named_outputs, write_named_outputs
from microtir.config import CompilationConfig
from microtir.config.processors import for_processors
from microtir.errors import ExitCode, MicrotirError, ModelFileError

if TYPE_CHECKING:
    from microtir.frontend.causes import Cause
    from microtir.frontend.inspect import LayerSummary, ModelSummary, TensorSummary
    from microtir.module.ir_module import IRModule

AsJson = Annotated[bool, typer.Option("--json", help="Prints the result as JSON.")]


def check(
    model: Model,
    config: CompilationConfig,
    board: LimitingBoard = None,
    as_json: AsJson = False,
) -> ExitCode:
    """Lists all problems of a model, grouped by cause, with a fix for each cause.

    Problems are operators and types that cannot be compiled, an exceeded budget, and a memory of
    the board that is too small. For a quantised ONNX model, check also lists the layers that are
    computed in floats, with the reason. For a float model, it estimates the savings of int8. It
    also lists operators that change the scale of integers without rescaling them, and outputs
    that are strings in the model and indices in C. Exit status 1 means that there are problems.
    Exit status 3 means that the file is damaged or cannot be read.
    """
    from microtir import frontend

    path = model_path(model)
    lowered, problems = _planned(model, config, board)
    if not as_json and len(problems) == 1 and isinstance(problems[0], ModelFileError):
        raise problems[0]
    problems = tuple(problem.for_command_line() for problem in problems)
    causes = frontend.causes(problems)
    parts = () if lowered is None else float_parts(model, lowered)
    changed = () if lowered is None else changed_values(lowered)
    named = () if lowered is None else named_outputs(lowered)
    int8 = None if lowered is None else forecast(lowered)
    processors = for_processors(config.targets)
    if as_json:
        write_json({
            "model": path.name,
            "targets": [str(target) for target in config.targets],
            "ok": not problems,
            "problems": [*map(_problem, problems)],
            "causes": [_cause(cause, problems) for cause in causes],
            "float_layers": [asdict(part) for part in parts],
            "changed_values": [asdict(one) for one in changed],
            "named_outputs": [asdict(one) for one in named],
            "as_int8": None if int8 is None else asdict(int8),
        })  # fmt: skip
    elif problems:
        _write_causes(path.name, processors, causes)
    else:
        assert lowered is not None and lowered.model is not None
        memory = lowered.model.memory
        # An operator that adds up row by row has a second function, which finishes.
        layers = {f.origin.index for f in lowered.functions if f.origin is not None}
        write(
            f"{path.name}: no problems, {len(layers)} layers, "
            f"{cell(memory.workspace_size)} bytes of workspace, {processors}"
            f"{f', fits {board}' if board else ''}"
        )
        write_rounded_rows(lowered)
        write_float_parts(path.name, parts)
        write_changed_values(path.name, changed)
        write_named_outputs(named)
        write_forecast(path.name, int8)
    return max((problem.exit_code for problem in problems), default=ExitCode.DONE)


def _planned(
    model: str, config: CompilationConfig, board: str | None
) -> tuple[IRModule | None, tuple[MicrotirError, ...]]:
    """Return the planned model, or None, and every problem on the way there."""
    from microtir import driver

    with Progress() as progress:
        progress.show("reading the model")
        problems = model_problems(model)
        if problems:
            return None, problems
        module = read_model(model, config)
        try:
            progress.show("planning the memory")
            lowered = driver.lower(module)
        except MicrotirError as error:
            return None, (error,)
        if board is None:
            return lowered, ()
        from microtir.search.refusals import too_large

        progress.show("looking for room on the board")
        return lowered, too_large(module, config, board)


def _write_causes(file: str, processors: str, causes: Sequence[Cause]) -> None:
    """Print each cause with its fix, then every place where it shows."""
    total = sum(len(cause.problems) for cause in causes)
    noun = "problem" if total == 1 else "problems"
    of_causes = "" if len(causes) == total else f", {len(causes)} cause{'s' * (len(causes) > 1)}"
    write(f"{file}: {total} {noun}{of_causes}, {processors}")
    for cause in causes:
        if len(cause.problems) == 1:
            write(f"\n{cause.problems[0]}")
            continue
        write(f"\n{cause.what}")
        for label, text in (("expected:", cause.legal), ("fix:", cause.fix)):
            if text:
                write(f"  {label:<9} {text}")
        for problem in cause.problems:
            where = "the model" if problem.where == file else str(problem.where)
            where = where.removeprefix(f"{file}: ")
            legal = f" (expected: {problem.legal})" if cause.legal is None and problem.legal else ""
            write(f"  - {where}" if cause.is_one else f"  - {where}: {problem.what}{legal}")


def _cause(cause: Cause, problems: Sequence[MicrotirError]) -> dict[str, object]:
    """Return a cause with the positions of its problems in the list of all."""
    numbers = {id(problem): number for number, problem in enumerate(problems)}
    return {
        "what": cause.what,
        "legal": cause.legal,
        "fix": cause.fix,
        "problems": [numbers[id(problem)] for problem in cause.problems],
    }


def _problem(problem: MicrotirError) -> dict[str, str | None]:
    return {
        "where": problem.where,
        "what": problem.what,
        "legal": problem.legal,
        "fix": problem.fix,
    }


def inspect(model: Model, as_json: AsJson = False) -> ExitCode:
    """Shows the layers of a model and their work.

    MACs are the multiply-accumulates of one inference. Parameters are counted in elements.
    """
    from microtir import frontend

    summary = frontend.inspect(unconfigured(model))
    if as_json:
        write_json(asdict(summary))
        return ExitCode.DONE
    facts(_model_facts(model_path(model).name, summary))
    write("")
    write_table(
        ("#", "layer", "operator", "output", "type", "scale", "zero", "parameters", "MACs"),
        [_layer_row(layer) for layer in summary.layers],
        right=("#", "parameters", "MACs", "zero"),
    )
    return ExitCode.DONE


def _model_facts(file: str, summary: ModelSummary) -> list[tuple[str, object]]:
    return [
        ("model", f"{file}, {cell(summary.source_bytes)} bytes"),
        ("sha-256", summary.source_sha256),
        *(("input", _tensor(tensor)) for tensor in summary.inputs),
        *(("output", _tensor(tensor)) for tensor in summary.outputs),
        ("layers", len(summary.layers)),
        ("parameters", f"{cell(summary.parameters)} in {cell(summary.parameter_bytes)} bytes"),
        ("MACs", summary.macs),
    ]


def _tensor(tensor: TensorSummary) -> str:
    text = f"{tensor.name}: {tensor.dtype} {shape(tensor.shape)}"
    if len(tensor.scales) == 1:
        text += f", scale {tensor.scales[0]:.6g}, zero point {tensor.zero_points[0]}"
    return text


def _layer_row(layer: LayerSummary) -> tuple[object, ...]:
    output = layer.outputs[0]
    is_whole = len(output.scales) == 1
    return (
        layer.index if layer.index >= 0 else None,
        layer.name,
        layer.source_operator,
        ", ".join(shape(tensor.shape) for tensor in layer.outputs),
        output.dtype,
        f"{output.scales[0]:.6g}" if is_whole else "",
        output.zero_points[0] if is_whole else None,
        layer.parameters or None,
        layer.macs or None,
    )
