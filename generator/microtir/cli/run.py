"""`microtir run` runs the compiled C on given inputs."""

from __future__ import annotations

import io
import math
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from microtir.cli import board_options, run_project
from microtir.cli.archive import one_program
from microtir.cli.choice import check_choice, check_exclusive
from microtir.cli.model import ModelOrArchive
from microtir.cli.models import AsJson
from microtir.cli.nodes import (
    DumpTensors,
    dumped,
    has_nodes,
    node_facts,
    print_nodes,
    run_nodes,
)
from microtir.cli.output import shape, write, write_json, write_table
from microtir.cli.progress import Progress
from microtir.cli.project_options import SERIAL_OPTIONS, list_options, serial_port
from microtir.cli.verify import Sanitize, Seed, Steps, made_up_steps
from microtir.config import CompilationConfig
from microtir.config.processors import for_processors, run_here
from microtir.errors import ExitCode, UsageError
from microtir.support.files import replace_file

if TYPE_CHECKING:
    from microtir.artifact import Artifact, NodeResult
    from microtir.graph.ir import Quantization
    from microtir.host.samples import SampleBatch
    from microtir.host.verify import Runner
    from microtir.module.ir_module import ModelInfo
    from microtir.projects import Project

_FILLS = ("zeros", "ones", "random")
Inputs = Annotated[
    Path | None,
    typer.Option(
        "--inputs",
        "-i",
        metavar="FILE.npz|.npy",
        help="Arrays with the names and the shapes of the inputs. An additional "
        "first axis counts samples. For a model with a state, a second axis can count time steps, "
        "which are consecutive runs.",
    ),
]
FillMode = Annotated[
    str | None,
    typer.Option(
        "--fill-mode",
        metavar="|".join(_FILLS),
        help="Generates stored values (integers) if --inputs is missing. Default: random.",
    ),
]
Outputs = Annotated[
    Path | None,
    typer.Option(
        "--outputs", "-o", metavar="FILE.npz", help="Writes the outputs as arrays by name."
    ),
]
PrintTop = Annotated[
    int | None,
    typer.Option(
        "--print-top", metavar="N", min=1, help="Prints the N largest values of each output."
    ),
]


def run(
    model: ModelOrArchive,
    config: CompilationConfig,
    inputs: Inputs = None,
    fill_mode: FillMode = None,
    outputs: Outputs = None,
    print_top: PrintTop = None,
    steps: Steps = None,
    seed: Seed = 0,
    sanitize: Sanitize = False,
    as_json: AsJson = False,
    board: board_options.MaybeBoard = None,
    port: board_options.Port = None,
    timeout: board_options.Timeout = 300.0,
    device: run_project.Device = run_project.CPU,
    dump_tensors: DumpTensors = None,
    profile: run_project.Profile = False,
    print_time: run_project.PrintTime = False,
    repeat: run_project.Repeat = 1,
    number: run_project.Number = 1,
    project_option: run_project.PortOption = None,
    listing: Annotated[bool, list_options(SERIAL_OPTIONS)] = False,
) -> ExitCode:
    """Runs a model's C code, on this machine or on a board."""
    assert not listing  # the option ends the program
    _check(inputs, fill_mode, steps, device)
    times = run_project.Times(profile, print_time, repeat, number)
    if device == run_project.MICRO:
        _refuse_board(board, sanitize)
        project = run_project.served_project(model)
        port = serial_port(project_option, project) or port
        info = run_project.served_model(project)
        where = f"{run_project.processors_of(project)} on {project.board.name}"
        samples = _samples(info, inputs, fill_mode, seed, steps)
        wants_nodes = profile or dump_tensors is not None or run_project.is_debugged(project)
        runs = _on_project(project, info, samples, port, timeout, times, wants_nodes)
    else:
        times.refuse(project_option)
        board_options.check_board_options("microtir run", board, port, sanitize=sanitize)
        with Progress() as progress:
            artifact = one_program(model, config, progress, board)
            info = _model(artifact)
            where = _where(artifact, board)
            samples = _samples(info, inputs, fill_mode, seed, steps)
            progress.show("compiling and running the C")
            if has_nodes(artifact, sanitize, dump_tensors):
                runs = _Runs(*run_nodes(artifact, samples, board, port, timeout))
            else:
                run_there = board_options.board_runner(artifact, board, port, timeout)
                runs = _Runs(_results(artifact, samples, run_there, sanitize))
    _save_all(runs, samples, outputs, dump_tensors)
    if as_json:
        write_json(_json(runs, samples, print_top))
    else:
        write(f"{info.source_file or info.name} {where}")
        unit = "ticks" if device == run_project.MICRO or board else "nanoseconds"
        _print_runs(info, runs, samples, print_top, unit, print_time=print_time)
    return ExitCode.DONE


def _where(artifact: Artifact, board: str | None) -> str:
    """Return for which processor a program was compiled, and where it ran."""
    targets = artifact.module.require_config("run").targets
    return run_here(targets) if board is None else f"{for_processors(targets)} on {board}"


@dataclass(frozen=True, slots=True)
class _Runs:
    """The results of all samples: outputs, nodes where they are visible, and times."""

    outputs: list[dict[str, Any]]
    nodes: list[tuple[NodeResult, ...]] = field(default_factory=list)
    times: list[str] = field(default_factory=list)


def _on_project(
    project: Project,
    info: ModelInfo,
    samples: SampleBatch,
    port: str | None,
    timeout: float,
    times: run_project.Times,
    wants_nodes: bool,
) -> _Runs:
    """Run samples on a program that serves them."""
    with Progress() as progress:
        progress.show(f"running on {project.board.title}")
        runs = run_project.run_served(
            project, info, samples, port, timeout, times, wants_nodes=wants_nodes
        )
    return _Runs(
        [run.outputs for run in runs],
        [run.nodes for run in runs if run.nodes],
        [run.time_text() for run in runs],
    )


def _json(runs: _Runs, samples: SampleBatch, top: int | None) -> object:
    """Return outputs by their names, or outputs and nodes: a list, of sequences one for each."""
    results: list[object] = [_facts(result, top) for result in runs.outputs]
    if runs.nodes:
        results = [
            {"outputs": result, "nodes": node_facts(nodes)}
            for result, nodes in zip(results, runs.nodes, strict=True)
        ]
    count = samples.steps
    if count is None:
        return results
    return [results[first : first + count] for first in range(0, len(results), count)]


def _refuse_board(board: str | None, sanitize: bool) -> None:
    """Refuse a board beside a project, which has its own, and beside sanitizers."""
    for flag, is_given in (("--board", board is not None), ("--sanitize", sanitize)):
        if is_given:
            raise UsageError(
                f"{flag} cannot be used with --device micro",
                where="microtir run",
                fix="leave out the option",
            )


def _model(artifact: Artifact) -> ModelInfo:
    """Return facts of the model; an archive may hold a user's functions instead."""
    info = artifact.module.model
    if info is None:
        raise UsageError(
            f"'{artifact.metadata.module_name}' contains only functions, and no model to run",
            where="microtir run",
            fix="call the functions from Python with microtir.host.load",
        )
    return info


def _results(
    artifact: Artifact, samples: SampleBatch, run_there: Runner | None, sanitize: bool
) -> list[dict[str, Any]]:
    """Return the outputs of every sample, from the board if there is one."""
    from microtir import host

    if run_there is not None:
        return [dict(outputs) for outputs in run_there(samples)]
    from microtir.host.sequences import run_samples

    return run_samples(host.load(artifact, sanitize=sanitize), samples)


def _check(inputs: Path | None, fill_mode: str | None, steps: int | None, device: str) -> None:
    check_choice("device", device, (run_project.CPU, run_project.MICRO), "--device")
    check_exclusive("sources of inputs", "microtir run", inputs=inputs, fill_mode=fill_mode)
    check_exclusive("sources of inputs", "microtir run", inputs=inputs, steps=steps)
    if fill_mode is not None:
        check_choice("fill mode", fill_mode, _FILLS, "--fill-mode")


def _samples(
    info: ModelInfo, inputs: Path | None, fill_mode: str | None, seed: int, steps: int | None
) -> SampleBatch:
    from microtir.host.samples import Fill, filled, read_inputs

    if inputs is not None:
        return read_inputs(inputs, info)
    steps = made_up_steps(info, steps, "microtir run")
    samples = filled(info.inputs, 1, Fill(fill_mode or "random"), seed, steps)
    return samples if steps is not None else replace(samples, stacked=False)


def _save_all(
    runs: _Runs, samples: SampleBatch, outputs: Path | None, dump_tensors: Path | None
) -> None:
    """Write the files that were asked for."""
    if outputs is not None:
        _save(outputs, samples.stack(runs.outputs))
    if dump_tensors is not None:
        _save(dump_tensors, dumped(runs.nodes, samples.steps))


def _save(path: Path, arrays: dict[str, Any]) -> None:
    import numpy as np

    content = io.BytesIO()
    np.savez(content, **arrays)
    replace_file(path, content.getvalue())


def _print(
    info: ModelInfo, results: list[dict[str, Any]], steps: int | None, top: int | None
) -> None:
    quantizations = {port.name: port.type.quantization for port in info.outputs}
    for number, result in enumerate(results):
        if steps is not None:
            write(f"sample {number // steps} step {number % steps}")
        elif len(results) > 1:
            write(f"sample {number}")
        for name, array in result.items():
            low, high = array.min().item(), array.max().item()
            write(f"{name}: {array.dtype} {shape(array.shape)}, {low:.9g} to {high:.9g}")
            if top is not None:
                _print_top(array, quantizations[name], top)


def _print_runs(
    info: ModelInfo,
    runs: _Runs,
    samples: SampleBatch,
    top: int | None,
    unit: str,
    *,
    print_time: bool,
) -> None:
    _print(info, runs.outputs, samples.steps, top)
    for nodes in runs.nodes:
        print_nodes(nodes, unit)
    _print_times(runs, print_time)


def _print_times(runs: _Runs, wanted: bool) -> None:
    for line in runs.times if wanted else ():
        write(line)


def _print_top(array: Any, quantization: Quantization | None, top: int) -> None:
    """Print a table of the largest values, in stored and in real units."""
    is_whole = quantization is not None and not quantization.is_per_channel
    rows = []
    for index in _largest(array, top):
        value = array[index].item()
        row: list[object] = [list(index), f"{value:.9g}"]
        if quantization is not None and is_whole:
            row.append(f"{quantization.scale * (value - quantization.zero_point):.6g}")
        rows.append(row)
    columns = ("index", "value", *(("real value",) if is_whole else ()))
    write_table(columns, rows, right=("value", "real value"))


def _largest(array: Any, count: int) -> list[tuple[int, ...]]:
    """Return indices of the largest values, the first of equal ones first."""
    import numpy as np

    order = np.argsort(-array.ravel().astype(np.float64), kind="stable")[:count]
    return [tuple(int(i) for i in np.unravel_index(position, array.shape)) for position in order]


def _facts(result: dict[str, Any], top: int | None) -> dict[str, object]:
    return {
        name: {
            "shape": list(array.shape),
            "dtype": str(array.dtype),
            "values": _finite(array.tolist()),
            **({} if top is None else {"top": [list(index) for index in _largest(array, top)]}),
        }
        for name, array in result.items()
    }


def _finite(value: Any) -> Any:
    """Return nested lists with null for what JSON cannot hold."""
    if isinstance(value, list):
        return [_finite(item) for item in value]
    return value if not isinstance(value, float) or math.isfinite(value) else None
