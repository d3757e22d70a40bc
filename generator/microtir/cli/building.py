"""Compiles the MODEL argument to an artifact, and keeps what verification needs beside it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from microtir.cli.board_options import board_compiler
from microtir.cli.model import read_model
from microtir.cli.progress import Progress
from microtir.cli.quantiser import Quantiser
from microtir.cli.width_search import note_of_search, within_of
from microtir.config import CompilationConfig
from microtir.errors import LimitError

if TYPE_CHECKING:
    from microtir.artifact import Artifact
    from microtir.cli.graph_log import GraphLog
    from microtir.graph.ir import Graph
    from microtir.host.float_samples import FloatSamples
    from microtir.host.quantised import QuantisedBySamples
    from microtir.module.ir_module import IRModule, ModelInfo
    from microtir.module.program import Program
    from microtir.profiling import BoardCompiler
    from microtir.quantise import Quantised, WidthSearch


_OF_GRAPHS = ("request", "graph", "offload", "plan")


@dataclass(frozen=True, slots=True)
class Built:
    """A compiled model.

    Args:
        artifact: its C.
        compiler: says how much code there is, if there is one.
        quantised: what made integers of a float model, if it was one.
    """

    artifact: Artifact
    compiler: BoardCompiler | None
    quantised: QuantisedBySamples | None = None

    @property
    def graph(self) -> Graph:
        """Return the model as it was read, with what the configuration declares of it."""
        graph = self.artifact.module.graph
        assert graph is not None  # a frontend gave it
        return graph

    @property
    def program(self) -> Program:
        """Return what became of it: the nodes of its graph are the layers of the C."""
        return self.artifact.module.require_program("command line")

    @property
    def model(self) -> ModelInfo:
        info = self.artifact.module.model
        assert info is not None  # a frontend gave the graph
        return info


def build_model(
    model: str,
    config: CompilationConfig,
    progress: Progress,
    board: str | None = None,
    log: GraphLog | None = None,
    quantiser: Quantiser | None = None,
) -> Built:
    """Read and compile a model; with a board, its compiler decides on a budget of flash.

    A log is told of the graph behind each pass. A quantiser makes integers of a float model first.

    Raises:
        LimitError: the program is too large; says what would help.
        UsageError: there is a loss, and no samples.
        MicrotirError: any other diagnostic of reading or compiling.
    """
    from microtir import driver
    from microtir.lowering.stages import pipeline, reading
    from microtir.rewrite.extra_passes import ExtraPasses

    progress.show("reading the model")
    stages = pipeline(config)
    module = read_model(model, config, log.behind([reading()]) if log else None)
    by = None
    if quantiser is not None:
        module, by = quantised(module, quantiser, progress)
    passes = (
        ExtraPasses(after=log.behind(stage for stage in stages if stage.name in _OF_GRAPHS))
        if log
        else None
    )
    steps = [stage.name for stage in stages]
    following = dict(zip(steps, [*steps[1:], "done"], strict=True))

    def observe(stage: str, _made: object) -> None:
        progress.show(f"compiling: {following[stage]}")

    progress.show(f"compiling: {steps[0]}")
    compiler = board_compiler(board, config)
    try:
        artifact = driver.build(module, observe=observe, compiler=compiler, passes=passes)
    except LimitError as error:
        from microtir.search.refusals import with_suggestions

        progress.show("trying what would help")
        raise with_suggestions(error, module, board, compiler) from None
    return Built(artifact, compiler, by)


def quantised(
    module: IRModule,
    quantiser: Quantiser,
    progress: Progress,
    show: Callable[[WidthSearch], None] = note_of_search,
) -> tuple[IRModule, QuantisedBySamples]:
    """Return a float model as one of integers, and what it was made by.

    Of a search over widths `show` is told, before the best that it found may be refused.
    """
    from microtir.host.quantised import quantised_by

    graph = module.graph
    assert graph is not None  # a frontend gave it
    within = within_of(module.require_config("quantise"), quantiser.max_loss, show)
    search = None
    if within is not None:

        def search(samples: FloatSamples) -> Quantised:
            return within.searched(graph, samples, quantiser.options, progress).quantised()

    by = quantised_by(
        graph, quantiser.samples, quantiser.options, quantiser.labels, progress.show, search
    )
    return replace(module, graph=by.result.graph), by
