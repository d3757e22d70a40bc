"""`microtir run --device micro PROJECT`: a program that serves, on given inputs."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from microtir.errors import RunError, UsageError

if TYPE_CHECKING:
    from microtir.host.samples import Samples
    from microtir.ir_module import ModelInfo
    from microtir.project import Project

CPU, MICRO = "cpu", "micro"
Device = Annotated[
    str,
    typer.Option(
        "--device",
        metavar=f"{CPU}|{MICRO}",
        help="As tvmc has it: with micro, MODEL is the folder of a project that was built and "
        "answers a computer (project_type=host_driven).",
    ),
]


def served_model(project: Project) -> ModelInfo:
    """The model of a project, from the metadata among its files.

    Raises:
        UsageError: the project has several models, or its metadata are gone.
    """
    from microtir.artifact import METADATA_FILE, model_info

    names = [model.name for model in project.models]
    if len(names) != 1:
        raise UsageError(
            f"the project has {len(names)} models: {', '.join(names)}",
            where=str(project.folder),
            legal="a project with one model",
        )
    for path in sorted(project.folder.rglob(METADATA_FILE)):
        facts = json.loads(path.read_text(encoding="utf-8"))
        if facts.get("module_name") == names[0]:
            info = model_info(facts)
            if info is not None:
                return info
    raise UsageError(
        f"the metadata of '{names[0]}' are not among its files",
        where=str(project.folder),
        fix="generate the project again",
    )


def run_served(
    project: Project, model: ModelInfo, samples: Samples, port: str | None, timeout: float
) -> list[dict[str, Any]]:
    """Outputs of every sample.

    Raises:
        RunError: the model returned an error status.
        MicrotirError: the program was not built, or nobody answers.
    """
    from microtir.project.session import check_models

    found: list[dict[str, Any]] = []
    with project.transport(port, timeout) as session:
        check_models(session, _names(project))
        for number, sample in enumerate(samples.values):
            result = session.run(model, sample)
            if result.status != 0:
                raise RunError(
                    f"the model returned status {result.status} for sample {number}",
                    where=str(project.folder),
                )
            found.append(dict(result.outputs))
    return found


def served_project(path: str) -> Project:
    """The project in the folder that `--device micro` was given.

    Raises:
        UsageError: it is a file or an archive.
        MicrotirError: there is no project in the folder.
    """
    from microtir.project import load_project

    folder = Path(path)
    if not folder.is_dir():
        raise UsageError(
            f"'{path}' is no project's folder",
            where="--device micro",
            fix="make one: microtir micro create-project DIR ARCHIVE.tar crt",
        )
    return load_project(folder)


def _names(project: Project) -> Sequence[str]:
    return [model.name for model in project.models]
