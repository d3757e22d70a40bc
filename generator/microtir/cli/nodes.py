"""Prints what `microtir run` saw of the nodes of a graph that was built for debugging."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from microtir.cli.output import write, write_table
from microtir.cli.panels import PROJECT_PANEL
from microtir.errors import UsageError

if TYPE_CHECKING:
    from microtir.artifact import Artifact, NodeResult
    from microtir.host.samples import SampleBatch

DumpTensors = Annotated[
    Path | None,
    typer.Option(
        "--dump-tensors",
        metavar="FILE.npz",
        rich_help_panel=PROJECT_PANEL,
        help="Writes the outputs of every node of the graph. The option needs --executor debug or "
        "--device micro.",
    ),
]


def has_nodes(artifact: Artifact, sanitize: bool, dump: Path | None) -> bool:
    """Return whether a run reports its nodes.

    Raises:
        UsageError: tensors are wanted and are not to be had.
    """
    config = artifact.module.require_config("microtir run")
    debug = config.runs_observed()
    if dump is not None and (sanitize or not debug):
        raise UsageError(
            "the outputs of nodes are available only with a debug executor and without sanitizers",
            where="--dump-tensors",
            fix="leave out --sanitize" if debug else "add --executor debug",
        )
    return debug and not sanitize


def run_nodes(
    artifact: Artifact, samples: SampleBatch, board: str | None, port: str | None, timeout: float
) -> tuple[list[dict[str, Any]], list[tuple[NodeResult, ...]]]:
    """Run the samples, on the board if there is one, and return outputs and nodes of each."""
    runs: Sequence[tuple[Mapping[str, Any], tuple[NodeResult, ...]]]
    if board is None:
        from microtir import host

        program, runs = host.load(artifact), []
        for steps in samples.samples():
            program.reset()
            runs += [program.run_nodes(step) for step in steps]
    else:
        from microtir.boards import load_board
        from microtir.projects import run_nodes

        chosen = load_board(board)
        runs = run_nodes(
            artifact, chosen, samples.values, port=port, timeout=timeout, steps=samples.steps or 1
        )
    return [dict(outputs) for outputs, _ in runs], [nodes for _, nodes in runs]


def print_nodes(nodes: Sequence[NodeResult], clock: str) -> None:
    """Print the table of one run."""
    total = sum(node.ticks for node in nodes)
    rows = [
        [
            number,
            node.ticks,
            f"{100 * node.ticks / total:.1f}" if total else "",
            " ".join(f"{tensor.checksum:08x}" for tensor in node.tensors),
            node.name,
        ]
        for number, node in enumerate(nodes)
    ]
    write_table(("node", clock, "%", "checksum", "name"), rows, right=("node", clock, "%"))
    write(f"{len(nodes)} nodes, {total} {clock}")


def node_facts(nodes: Sequence[NodeResult]) -> list[dict[str, object]]:
    """Return the nodes of a run as JSON values."""
    return [
        {
            "name": node.name,
            "ticks": node.ticks,
            "checksums": [tensor.checksum for tensor in node.tensors],
        }
        for node in nodes
    ]


def dumped(runs: Sequence[Sequence[NodeResult]], steps: int | None) -> dict[str, Any]:
    """Return every tensor as an array of one dimension, by sample, step if any, and node."""
    import numpy as np

    def named(run: int) -> str:
        return f"sample{run}" if steps is None else f"sample{run // steps}_step{run % steps}"

    return {
        f"{named(run)}_node{number}_tensor{index}": np.frombuffer(tensor.data, tensor.dtype)
        for run, nodes in enumerate(runs)
        for number, node in enumerate(nodes)
        for index, tensor in enumerate(node.tensors)
    }
