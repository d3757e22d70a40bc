"""From the MODEL argument to an artifact, with what verification needs beside it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from microtir.cli.board_options import board_compiler
from microtir.cli.model import read_model
from microtir.cli.progress import Progress
from microtir.cli.refusals import with_remedies
from microtir.config import CompilationConfig
from microtir.errors import LimitError

if TYPE_CHECKING:
    from microtir.artifact import Artifact
    from microtir.graph.ir import Graph
    from microtir.ir_module import ModelInfo
    from microtir.plan.ir import Plan
    from microtir.project import BoardCompiler


@dataclass(frozen=True, slots=True)
class Built:
    """A compiled model.

    `graph` is the model as it was read, `planned` the same after the graph passes: its nodes are
    the layers of the C. `plan` says which kernel computes each, `compiler` how much code there is.
    """

    artifact: Artifact
    graph: Graph
    planned: Graph
    plan: Plan
    compiler: BoardCompiler | None

    @property
    def model(self) -> ModelInfo:
        info = self.artifact.module.model
        assert info is not None  # a frontend gave the graph
        return info


def build_model(
    model: str, config: CompilationConfig, progress: Progress, board: str | None = None
) -> Built:
    """Read and compile a model; with a board, its compiler decides on a budget of flash.

    Raises:
        LimitError: the program is too large; says what would help.
        MicrotirError: any other diagnostic of reading or compiling.
    """
    from microtir import driver
    from microtir.graph.ir import Graph
    from microtir.plan.ir import Plan

    progress.show("reading the model")
    module = read_model(model, config)
    graphs: list[Graph] = []
    plans: list[Plan] = []
    steps = [stage.name for stage in driver.pipeline(config)]
    following = dict(zip(steps, [*steps[1:], "done"], strict=True))

    def observe(stage: str, result: object) -> None:
        progress.show(f"compiling: {following[stage]}")
        if isinstance(result, Graph):
            graphs.append(result)
        if isinstance(result, Plan):
            plans.append(result)

    progress.show(f"compiling: {steps[0]}")
    compiler = board_compiler(board, config)
    try:
        artifact = driver.build(module, observe=observe, compiler=compiler)
    except LimitError as error:
        progress.show("trying what would help")
        raise with_remedies(error, module, board, compiler) from None
    read = artifact.module.graph  # with what the configuration declares of it
    assert read is not None and graphs and plans
    return Built(artifact, read, graphs[-1], plans[-1], compiler)
