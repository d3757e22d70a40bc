"""Runs a model on a board as a function of its inputs: generates, builds, starts and asks it."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from microtir.artifact import Artifact, GraphNode, NodeResult, graph_nodes
from microtir.boards.board import Board, ProjectType
from microtir.boards.errors import BoardError, ProjectError
from microtir.device.session import RUN_TIMEOUT, DeviceSession, RemoteRun, check_models
from microtir.errors import RunError
from microtir.ir_module import ModelInfo
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
) -> list[Mapping[str, Array]]:
    """Run a model on a board, once for each sample.

    Args:
        artifact: a compiled model.
        board: emulated, unless a port is given.
        samples: inputs by the model's names.
        port: serial port of the real board, which is flashed first.
        timeout: seconds of one inference.

    Returns:
        The outputs of each sample, by the model's names.

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
        done = [_run(session, model, number, sample) for number, sample in enumerate(samples)]
        return [result.outputs for result in done]


def run_nodes(
    artifact: Artifact,
    board: Board,
    samples: Sequence[Mapping[str, Array]],
    *,
    port: str | None = None,
    timeout: float = RUN_TIMEOUT,
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
        for number, sample in enumerate(samples):
            done = _run(session, model, number, sample)
            results.append((done.outputs, node_results(session, model, sample, done, nodes)))
    return results


def node_results(
    session: DeviceSession,
    model: ModelInfo,
    sample: Mapping[str, Array],
    done: RemoteRun,
    nodes: Sequence[GraphNode],
) -> tuple[NodeResult, ...]:
    """Return what the nodes of a program's first model do with a sample.

    Args:
        session: a conversation with the program.
        model: its ports.
        sample: arrays by the names of the inputs.
        done: the run of the sample, which has the ticks; another one gives the tensors.
        nodes: those of the model, in their order.

    Raises:
        EmulatorError: the program does not answer, or refuses.
    """
    tensors = session.layer_tensors(model, sample)
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
        raise ProjectError(f"'{artifact.metadata.module_name}' is no model", where="run_samples")
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
    session: DeviceSession, model: ModelInfo, number: int, sample: Mapping[str, Array]
) -> RemoteRun:
    result = session.run(model, sample)
    if result.status != 0:
        raise RunError(
            f"the model returned status {result.status} for sample {number}",
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
        fix="take an emulated board with the same CPU, or run a project on this one: "
        f"`microtir micro create-project --board {board.name}`",
    )
