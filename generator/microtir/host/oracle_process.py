"""Runs a model on samples with code of others, as a program: some models end the process.

A session runs all steps of a sequence, and the next sequence has another one: `Reset` of
tflite-micro does not run again what gives variables their first values.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from microtir.graph.ir import Array
from microtir.host.child_process import REASON, REFUSED
from microtir.host.runtimes import RUNTIMES, Kept, Ports, Session, refusals

MODEL, INPUTS, OUTPUTS = "model", "inputs.npz", "outputs.npz"
_REQUEST = "request.json"


@dataclass(frozen=True, slots=True)
class Request:
    """The model and the inputs that the process of an oracle is to run.

    Args:
        runtime: a name in `RUNTIMES`.
        inputs: names of the arguments, in the order of the model.
        outputs: names of the results.
        runs: how many there are.
        steps: runs of a sequence; 0 where no run depends on another one.
        folder: of the model file, which may have values in other files; empty if it has none.
        counted: results of which data say how many rows there are.
        states: inputs that begin a run with what outputs were, each with its output.
        names: of the strings that results can be, by the result.
    """

    runtime: str
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    runs: int
    steps: int
    folder: str
    counted: tuple[str, ...] = ()
    states: tuple[tuple[str, str], ...] = ()
    names: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    def write(self, folder: Path) -> None:
        """Write the request for the program."""
        (folder / _REQUEST).write_text(json.dumps(asdict(self)), encoding="utf-8")

    @staticmethod
    def read(folder: Path) -> Request:
        """Return the request that was written."""
        facts = json.loads((folder / _REQUEST).read_text("utf-8"))
        names = {name: tuple(facts[name]) for name in ("inputs", "outputs", "counted")}
        states = tuple((before, after) for before, after in facts["states"])
        return Request(**{**facts, **names, "states": states})


def key(run: int, index: int) -> str:
    """Return the name of an array in INPUTS and OUTPUTS."""
    return f"{run}.{index}"


def first_key(state: str) -> str:
    """Return the name of what a state begins with in INPUTS."""
    return f"first.{state}"


def save(path: Path, arrays: Mapping[str, Any]) -> None:
    """Write arrays by name."""
    np.savez(path, **arrays)


def _run(folder: Path, request: Request) -> None:
    make, model = RUNTIMES[request.runtime], (folder / MODEL).read_bytes()
    session: Session | None = None
    results: dict[str, Array] = {}
    with np.load(folder / INPUTS) as stored:
        states = tuple(
            Kept(before, after, stored[first_key(before)]) for before, after in request.states
        )
        counted = frozenset(request.counted)
        ports = Ports(
            request.inputs, request.outputs, request.folder, counted, states, request.names
        )
        for run in range(request.runs):
            # Of a model without a state no run begins a sequence, but for the first.
            if session is None or (request.steps and run % request.steps == 0):
                session = make(model, ports)
            arrays = [stored[key(run, index)] for index in range(len(request.inputs))]
            for index, result in enumerate(session.run(arrays)):
                results[key(run, index)] = result
    save(folder / OUTPUTS, results)


def main(folder: Path) -> int:
    """Run every sample of INPUTS; 0, or REFUSED with the reason in a file."""
    request = Request.read(folder)
    try:
        _run(folder, request)
    except refusals(request.runtime) as error:
        (folder / REASON).write_text(str(error), encoding="utf-8")
        return REFUSED
    return 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
