"""Makes projects of models, for `micro create-project` and `compile --output-format project`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from microtir.cli.archive import is_archive, programs
from microtir.cli.building import Built, build_model
from microtir.cli.choice import check_choice
from microtir.cli.model import golden_path, module_name
from microtir.cli.output import write, write_table
from microtir.cli.progress import Progress
from microtir.cli.quantise_options import check_one_model
from microtir.cli.quantised import print_cost_below
from microtir.cli.quantiser import Quantiser
from microtir.cli.run_project import processors_of
from microtir.config import CompilationConfig
from microtir.errors import UsageError

if TYPE_CHECKING:
    from microtir.artifact import Artifact
    from microtir.boards import Board
    from microtir.graph.ir import Graph
    from microtir.projects import Project, Samples
    from microtir.quantise.summary import Summary

ProjectTypeName = Annotated[
    str | None,
    typer.Option(
        "--project-type",
        metavar="TYPE",
        help="The tool that builds the project (see `microtir boards`). Default: the board's "
        "first tool that is installed.",
    ),
]
TemplateDir = Annotated[
    Path | None,
    typer.Option(
        "--template-dir",
        metavar="DIR",
        help="A folder with templates that replace project templates of the same path.",
    ),
]
GoldenSamples = Annotated[
    Path | None,
    typer.Option(
        "--golden",
        metavar="FILE.npz",
        help="Samples that the program runs and compares, in the format of `verify --golden`. "
        "Example models include samples. Without samples, the program runs on arbitrary values.",
    ),
]
SampleCount = Annotated[
    int,
    typer.Option("--samples", metavar="N", min=1, help="Number of the golden samples to use."),
]

TogetherNames = Annotated[
    list[str] | None,
    typer.Option(
        "--together",
        metavar="NAME,NAME",
        help="Module names of models that may run at the same time, and therefore share no "
        "memory. The option may be given several times. An archive contains its own groups.",
    ),
]

DebugChecks = Annotated[
    bool,
    typer.Option(
        "--debug-checks",
        help="Checks the bytes around workspaces and states, and reports the kind and place of a "
        "fault. Only bare-metal projects on Cortex-M accept this option.",
    ),
]

DEFAULT_SAMPLES = 3


@dataclass(frozen=True, slots=True)
class CompiledModels:
    """The programs of MODEL arguments.

    Args:
        artifacts: their C.
        samples: golden ones by names of modules.
        price: what integers cost, where samples made them of a float model.
    """

    artifacts: list[Artifact]
    samples: dict[str, Samples]
    price: Summary | None


def create_project(
    models: list[str],
    config: CompilationConfig,
    output: Path,
    board: str,
    project_type: str | None,
    *,
    force: bool,
    template_dir: Path | None = None,
    golden: Path | None = None,
    samples: int = DEFAULT_SAMPLES,
    stack: int | None = None,
    definitions: Sequence[str] = (),
    together: Sequence[str] = (),
    is_server: bool = False,
    debug_checks: bool = False,
    quantiser: Quantiser | None = None,
) -> tuple[Project, Summary | None]:
    """Compile models, and write a project with all of them; return what integers cost, too.

    Raises:
        MicrotirError: any diagnostic of compiling or generating.
    """
    from microtir.boards import load_board
    from microtir.projects import ProjectOptions, generate

    chosen = load_board(board)
    if project_type is None:
        project_type = _default_type(chosen)
    types = [support.type.value for support in chosen.projects]
    check_choice("project type", project_type, types, f"--project-type of '{board}'")
    with Progress() as progress:
        compiled = compiled_models(models, config, progress, board, golden, samples, quantiser)
        progress.show("writing the project")
        project = generate(
            compiled.artifacts,
            chosen,
            project_type,
            output,
            force=force,
            options=ProjectOptions(
                samples={} if is_server else compiled.samples,
                stack=stack,
                definitions=definitions,
                together=[names.split(",") for names in together],
                server=is_server,
                debug_checks=debug_checks,
            ),
            template_dir=template_dir,
        )
        return project, compiled.price


def compiled_models(
    models: list[str],
    config: CompilationConfig,
    progress: Progress,
    board: str | None,
    golden: Path | None,
    samples: int,
    quantiser: Quantiser | None = None,
) -> CompiledModels:
    """Compile MODEL arguments, each under a name of its own, and read their golden samples.

    A quantiser makes integers of the only one first.

    Raises:
        MicrotirError: any diagnostic of reading or compiling.
    """
    check_one_model(quantiser, models)
    artifacts: list[Artifact] = []
    values: dict[str, Samples] = {}
    price = None
    for model in models:
        name = config.module_name if len(models) == 1 else module_name(model)
        named = config.with_(module_name=name)
        if is_archive(model):
            compiled, graph = programs(model, named, progress), None
        else:
            built = build_model(model, named, progress, board, quantiser=quantiser)
            compiled, graph = (built.artifact,), built.graph
            price = _price(built, progress)
        artifacts += compiled
        file = golden or golden_path(model)
        if file is not None:
            values[compiled[0].metadata.module_name] = _samples(file, compiled[0], graph, samples)
    return CompiledModels(artifacts, values, price)


def _default_type(board: Board) -> str:
    """Return the first type that can be built here; say what the types before it lack."""
    from microtir.projects import default_type

    choice = default_type(board)
    if choice.missing:
        kinds = ", ".join(kind.value for kind, _ in choice.missing)
        reasons = "; ".join(missing.what for _, missing in choice.missing)
        write(
            f"skipped the project types {kinds}: {reasons}\n"
            "  --project-type selects one anyway, and its build says what to install\n"
        )
    return choice.type.value


def _price(built: Built, progress: Progress) -> Summary | None:
    """Return what integers cost that samples made; None where there were none."""
    if built.quantised is None:
        return None
    progress.show("measuring what it costs")
    return built.quantised.summary()


def _samples(file: Path, artifact: Artifact, graph: Graph | None, count: int) -> Samples:
    """Return the first samples of a golden file, as the program takes them."""
    from microtir.host.samples import read_golden
    from microtir.host.tolerance import HYBRID_PLAUSIBLE, largest_share, rounding_of
    from microtir.projects import Samples

    model = artifact.module.model
    if model is None:
        raise UsageError("a golden file needs a model, and the archive has none", where=str(file))
    inputs, outputs = (sample.first(count) for sample in read_golden(file, model))
    # Whether the weights of a float model are int8, and what is exact, an archive does not say.
    rtol = HYBRID_PLAUSIBLE
    if graph is not None:
        rtol = largest_share(outputs.values, rounding_of(graph, inputs.values, inputs.steps))
    return Samples(inputs.stack(inputs.values), outputs.stack(outputs.values), rtol)


def print_project(project: Project, price: Summary | None = None) -> None:
    """Write what was made, what to do with it, and what integers cost."""
    from microtir.boards import Label

    board, kind = project.board, project.type
    label = board.support(kind).label
    names = ", ".join(model.name for model in project.models)
    what = f"{kind.value} project for {board.title}"
    write(f"{names} -> {project.folder}, {processors_of(project)}: {what}\n")
    steps = [("README.md", "how to build, flash and read it")]
    if project.build_step is not None:
        steps.append((f"microtir micro build {project.folder}", "builds it"))
    if label is Label.EXECUTED:
        steps.append((f"microtir micro run {project.folder}", "runs it in the emulator"))
    write_table(("next", ""), steps)
    if price is not None:
        print_cost_below(price)
