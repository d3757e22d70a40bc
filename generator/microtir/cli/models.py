"""`microtir check` and `microtir inspect`: what a model is, and whether it can be compiled."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated

import typer

from microtir.cli.model import Model, model_path
from microtir.cli.output import cell, facts, shape, write, write_json, write_table
from microtir.cli.progress import Progress
from microtir.config import CompilationConfig
from microtir.config.processors import for_processors
from microtir.errors import ExitCode, MicrotirError, ModelFileError

if TYPE_CHECKING:
    from microtir.frontend.inspect import LayerSummary, ModelSummary, TensorSummary
    from microtir.ir_module import IRModule

AsJson = Annotated[bool, typer.Option("--json", help="Prints the same facts as JSON.")]


def check(model: Model, config: CompilationConfig, as_json: AsJson = False) -> ExitCode:
    """Lists all problems of a model, each with a fix.

    A model that can be read is planned, too: an exceeded budget is a problem. Exit status 1 means
    that there are problems.
    """
    from microtir import driver, frontend

    path = model_path(model)
    lowered: IRModule | None = None
    with Progress() as progress:
        progress.show("reading the model")
        problems = frontend.check(path)
        if not problems:
            module = frontend.from_tflite(path).with_configuration(config)
            try:
                progress.show("planning the memory")
                lowered = driver.lower(module)
            except MicrotirError as error:
                problems = (error,)
    unreadable = [problem for problem in problems if isinstance(problem, ModelFileError)]
    if unreadable:
        raise unreadable[0]
    processors = for_processors(config.targets)
    if as_json:
        facts_of_all = {"model": path.name, "targets": [str(target) for target in config.targets]}
        found = {"ok": not problems, "problems": [*map(_problem, problems)]}
        write_json({**facts_of_all, **found})
    elif problems:
        noun = "problem" if len(problems) == 1 else "problems"
        write(f"{path.name}: {len(problems)} {noun}, {processors}")
        for problem in problems:
            write(f"\n{problem}")
    else:
        assert lowered is not None and lowered.model is not None
        memory = lowered.model.memory
        # An operator that adds up row by row has a second function, which finishes.
        layers = {f.origin.index for f in lowered.functions if f.origin is not None}
        write(
            f"{path.name}: no problems, {len(layers)} layers, "
            f"{cell(memory.workspace_size)} bytes of workspace, {processors}"
        )
    return max((problem.exit_code for problem in problems), default=ExitCode.DONE)


def _problem(problem: MicrotirError) -> dict[str, str | None]:
    return {
        "where": problem.where,
        "what": problem.what,
        "legal": problem.legal,
        "fix": problem.fix,
    }


def inspect(model: Model, as_json: AsJson = False) -> ExitCode:
    """Shows the layers of a model and their work.

    MACs are multiply-accumulates of one inference; parameters are counted in elements.
    """
    from microtir import frontend

    summary = frontend.inspect(frontend.from_tflite(model_path(model)))
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
        layer.index,
        layer.name,
        layer.source_operator,
        ", ".join(shape(tensor.shape) for tensor in layer.outputs),
        output.dtype,
        f"{output.scales[0]:.6g}" if is_whole else "",
        output.zero_points[0] if is_whole else None,
        layer.parameters or None,
        layer.macs or None,
    )
