"""`microtir run --device micro PROJECT` runs a program that serves, on given inputs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from microtir.cli.panels import PROJECT_PANEL
from microtir.config import CompilationConfig
from microtir.config.processors import for_processors
from microtir.errors import RunError, UsageError

if TYPE_CHECKING:
    from microtir.artifact import NodeResult
    from microtir.device.session import DeviceSession, RemoteRun
    from microtir.host.samples import SampleBatch
    from microtir.module.ir_module import ModelInfo
    from microtir.projects import Project

CPU, MICRO = "cpu", "micro"
Device = Annotated[
    str,
    typer.Option(
        "--device",
        metavar=f"{CPU}|{MICRO}",
        rich_help_panel=PROJECT_PANEL,
        help="The device that runs the model, as in tvmc. With micro, MODEL is the folder of a "
        "built project of the type host_driven.",
    ),
]

Profile = Annotated[
    bool,
    typer.Option(
        "--profile",
        rich_help_panel=PROJECT_PANEL,
        help="Prints the time and checksum of each node of the graph, or of each layer. It needs "
        "--device micro.",
    ),
]
PrintTime = Annotated[
    bool,
    typer.Option(
        "--print-time",
        rich_help_panel=PROJECT_PANEL,
        help="Prints the time of the runs. It needs --device micro.",
    ),
]
Repeat = Annotated[
    int,
    typer.Option(
        "--repeat",
        metavar="N",
        min=1,
        rich_help_panel=PROJECT_PANEL,
        help="Number of measurements for each sample. Each measurement is the mean of --number "
        "runs. It needs --device micro.",
    ),
]
Number = Annotated[
    int,
    typer.Option(
        "--number",
        metavar="N",
        min=1,
        rich_help_panel=PROJECT_PANEL,
        help="Number of runs in each measurement (see --repeat).",
    ),
]
PortOption = Annotated[
    list[str] | None,
    typer.Option(
        "--project-option",
        metavar="port=PORT",
        rich_help_panel=PROJECT_PANEL,
        help="Options of tvmc for --device micro. port=PORT is the same as --port. board=BOARD "
        "must name the board of the project.",
    ),
]


@dataclass(frozen=True, slots=True)
class Times:
    """The figures about the time of runs of a project that a user asks for."""

    profile: bool
    print_time: bool
    repeat: int
    number: int

    def refuse(self, project_option: Sequence[str] | None) -> None:
        """Refuse timing without a project, since emulators count instructions instead."""
        if project_option:
            raise UsageError(
                "--project-option needs --device micro",
                where="microtir run",
                fix="add --device micro, or use --port",
            )
        for flag, is_given in (
            ("--profile", self.profile),
            ("--print-time", self.print_time),
            ("--repeat", self.repeat > 1),
            ("--number", self.number > 1),
        ):
            if is_given:
                raise UsageError(
                    f"{flag} works only with --device micro",
                    where="microtir run",
                    fix="use microtir profile, which counts instructions exactly",
                )


def served_model(project: Project) -> ModelInfo:
    """Return the model of a project, from the metadata among its files.

    Raises:
        UsageError: the project has several models, or functions instead.
        ProjectError: its metadata are gone.
    """
    from microtir.artifact import model_info

    names = _names(project)
    if len(names) != 1:
        raise UsageError(
            f"the project has {len(names)} models: {', '.join(names)}",
            where=str(project.folder),
            legal="a project with one model",
        )
    info = model_info(project.metadata()[0])
    if info is None:
        raise UsageError(f"'{names[0]}' is not a model", where=str(project.folder))
    return info


@dataclass(frozen=True, slots=True)
class ServedRun:
    """The result of a sample: outputs, ticks of each measurement, and the nodes if asked for."""

    outputs: dict[str, Any]
    ticks: tuple[float, ...]
    nodes: tuple[NodeResult, ...]

    def time_text(self) -> str:
        """Return the measurements as a line."""
        mean = sum(self.ticks) / len(self.ticks)
        if len(self.ticks) == 1:
            return f"time: {mean:.10g} ticks of the board's clock"
        ends = f"least {min(self.ticks):.10g}, most {max(self.ticks):.10g}"
        return f"time: mean {mean:.10g}, {ends} ticks of the board's clock"


def run_served(
    project: Project,
    model: ModelInfo,
    samples: SampleBatch,
    port: str | None,
    timeout: float,
    times: Times,
    *,
    wants_nodes: bool,
) -> list[ServedRun]:
    """Run every sample, as often as it is to be measured.

    Raises:
        RunError: the model returned an error status.
        MicrotirError: the program was not built, or nobody answers.
    """
    from microtir.device.session import check_models
    from microtir.projects import node_results

    nodes = project.nodes(project.models[0].name) if wants_nodes else ()
    runs: list[ServedRun] = []
    with project.transport(port, timeout) as session:
        check_models(session, _names(project))
        for number, steps in enumerate(samples.samples()):
            turns = [_turn(session, model, steps) for _ in range(times.repeat * times.number)]
            for last in turns[-1]:
                if last.status != 0:
                    raise RunError(
                        f"the model returned status {last.status} for sample {number}",
                        where=str(project.folder),
                    )
            seen = node_results(session, model, steps, turns[-1], nodes) if nodes else ()
            for step, done in enumerate(zip(*turns, strict=True)):
                starts = range(0, len(done), times.number)
                ticks = [sum(r.ticks for r in done[i : i + times.number]) for i in starts]
                means = tuple(total / times.number for total in ticks)
                runs.append(ServedRun(dict(done[-1].outputs), means, seen[step] if seen else ()))
    return runs


def _turn(
    session: DeviceSession, model: ModelInfo, steps: Sequence[Mapping[str, Any]]
) -> list[RemoteRun]:
    """Run the steps of a sample once, from the state that the model file gives."""
    if model.states:
        session.begin(0)
    return [session.run(model, step) for step in steps]


def is_debugged(project: Project) -> bool:
    """Return whether a project's model was built for the executor that reports its nodes."""
    return _configurations(project)[0].runs_observed()


def processors_of(project: Project) -> str:
    """Return the CPUs that a project's models are for, which may differ from the board's."""
    return for_processors(t for config in _configurations(project) for t in config.targets)


def _configurations(project: Project) -> list[CompilationConfig]:
    return [CompilationConfig.from_dict(known.config) for known in project.metadata()]


def served_project(path: str) -> Project:
    """Return the project in the folder that `--device micro` was given.

    Raises:
        UsageError: it is a file or an archive.
        MicrotirError: there is no project in the folder.
    """
    from microtir.projects import load_project

    folder = Path(path)
    if not folder.is_dir():
        raise UsageError(
            f"'{path}' is not a project's folder",
            where="--device micro",
            fix="create a project with `microtir micro create-project DIR ARCHIVE.tar crt`",
        )
    return load_project(folder)


def _names(project: Project) -> Sequence[str]:
    return [model.name for model in project.models]
