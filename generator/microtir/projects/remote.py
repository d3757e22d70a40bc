"""Runs a model on a board as a function of its inputs: generates, builds, starts and asks it."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from microtir.artifact import Artifact, GraphNode, NodeResult, NodeTensor, graph_nodes
from microtir.boards.board import Board, ProjectType
from microtir.boards.errors import BoardError, ProjectError
from microtir.boards.search import emulated_like
from microtir.device.session import RUN_TIMEOUT, DeviceSession, RemoteRun, check_models
from microtir.errors import Fix, RunError
from microtir.module.ir_module import ModelInfo
from microtir.projects.generate import generate
from microtir.projects.options import ProjectOptions
from microtir.support.arrays import Array


def run_samples(
    artifact: Artifact,
    board: Board,
    samples: Sequence[Mapping[str, Array]],
    *,
    port: str | None = None,
    timeout: float = RUN_TIMEOUT,
    steps: int = 1,
) -> list[Mapping[str, Array]]:
    """Run a model on a board, once for each sample, or for each step of one.

    Args:
        artifact: a compiled model.
        board: emulated, unless a port is given.
        samples: inputs of each run, by the model's names.
        port: serial port of the real board, which is flashed first.
        timeout: seconds of one inference.
        steps: how many runs, one after another, a sample has.  The first begins with the state that
            the model file gives, if the model has one.

    Returns:
        The outputs of each run, by the model's names.

    Raises:
        BoardError: the board has no bare-metal project, or no emulator and no port is given;
            says so before anything is generated.
        ModelTooLargeError: the model does not fit.
        MissingToolError: a tool is not on this machine.
        BuildError: the compiler's own message.
        EmulatorError: the program does not answer.
        RunError: the model returned an error status.
    """
    with _served(artifact, board, port, timeout) as (session, model):
        return [_run(session, model, n, s, steps).outputs for n, s in enumerate(samples)]


def run_nodes(
    artifact: Artifact,
    board: Board,
    samples: Sequence[Mapping[str, Array]],
    *,
    port: str | None = None,
    timeout: float = RUN_TIMEOUT,
    steps: int = 1,
) -> list[tuple[Mapping[str, Array], tuple[NodeResult, ...]]]:
    """Run samples of a graph, and return what its nodes did, too.

    Each sample is run twice: once for the ticks, and layer by layer for the tensors, which are
    those of a node's last layer.

    Raises:
        MicrotirError: as for `run_samples`.
    """
    nodes = graph_nodes(artifact)
    results = []
    with _served(artifact, board, port, timeout) as (session, model):
        for first in range(0, len(samples), steps):
            runs = samples[first : first + steps]
            done = [_run(session, model, n, run, steps) for n, run in enumerate(runs, first)]
            seen = node_results(session, model, runs, done, nodes)
            results += [(one.outputs, of_one) for one, of_one in zip(done, seen, strict=True)]
    return results


def node_results(
    session: DeviceSession,
    model: ModelInfo,
    runs: Sequence[Mapping[str, Array]],
    done: Sequence[RemoteRun],
    nodes: Sequence[GraphNode],
) -> list[tuple[NodeResult, ...]]:
    """Return what the nodes of a program's first model do in the runs of a sample.

    Args:
        session: a conversation with the program.
        model: its ports.
        runs: of each the arrays by the names of the inputs.
        done: the same runs, which have the ticks; others give the tensors.
        nodes: those of the model, in their order.

    Raises:
        EmulatorError: the program does not answer, or refuses.
    """
    if model.states:
        session.begin(0)
    tensors = [session.layer_tensors(model, run) for run in runs]
    return [_results(nodes, *of_run) for of_run in zip(done, tensors, strict=True)]


def _results(
    nodes: Sequence[GraphNode], done: RemoteRun, tensors: Mapping[int, tuple[NodeTensor, ...]]
) -> tuple[NodeResult, ...]:
    """Return what nodes did in a run: the ticks of their layers, the tensors of the last one."""
    return tuple(
        NodeResult(
            node.name,
            sum(done.layer_ticks[layer] for layer in node.layers),
            tensors.get(node.layers[-1], ()),
        )
        for node in nodes
    )


@contextmanager
def _served(
    artifact: Artifact, board: Board, port: str | None, timeout: float
) -> Iterator[tuple[DeviceSession, ModelInfo]]:
    """Open a session with a program on the board that serves the model."""
    _check_runs_samples(board)
    model = artifact.module.model
    if model is None:
        raise ProjectError(f"'{artifact.metadata.module_name}' is not a model", where="run_samples")
    with tempfile.TemporaryDirectory(prefix="microtir-board-") as scratch:
        options = ProjectOptions(server=True)
        project = generate(
            artifact, board, ProjectType.BAREMETAL, Path(scratch) / "project", options=options
        )
        project.build()
        if port is not None:
            project.flash(port)
        with project.transport(port, timeout) as session:
            check_models(session, [artifact.metadata.module_name])
            yield session, model


def _run(
    session: DeviceSession, model: ModelInfo, number: int, sample: Mapping[str, Array], steps: int
) -> RemoteRun:
    if model.states and number % steps == 0:
        session.begin(0)
    result = session.run(model, sample)
    if result.status != 0:
        of_step = f", step {number % steps}" if steps > 1 else ""
        raise RunError(
            f"the model returned status {result.status} for sample {number // steps}{of_step}",
            where=f"{session.models[0].name}_run",
        )
    return result


def _check_runs_samples(board: Board) -> None:
    if any(support.type is ProjectType.BAREMETAL for support in board.projects):
        return
    raise BoardError(
        f"samples cannot be run on '{board.name}': it has no project of type 'baremetal'",
        where=f"{board.file}: projects",
        legal="boards with one, which `microtir boards` lists",
        fix=Fix.of(
            emulated_like(board),
            "; or run a project on this one: ",
            f"`microtir micro create-project --board {board.name}`",
        ),
    )
