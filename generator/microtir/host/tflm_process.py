"""Runs tflite-micro on samples, as a program: some models end the process that it runs in.

An interpreter runs all steps of a sequence, and the next sequence has another one: `Reset` of
tflite-micro does not run again what gives variables their first values.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from microtir.graph.ir import Array
from microtir.host.child_process import REASON, REFUSED

MODEL, INPUTS, OUTPUTS = "model.tflite", "inputs.npz", "outputs.npz"
ARENA_BYTES = 1 << 25
"""More than any model for a microcontroller needs; untouched pages cost nothing."""


def key(run: int, index: int) -> str:
    """Return the name of an array in INPUTS and OUTPUTS."""
    return f"{run}.{index}"


def save(path: Path, arrays: Mapping[str, Any]) -> None:
    """Write arrays by name."""
    np.savez(path, **arrays)


def _run(folder: Path) -> None:
    from tflite_micro import runtime

    model = (folder / MODEL).read_bytes()
    interpreter = None
    results: dict[str, Array] = {}
    with np.load(folder / INPUTS) as stored:
        counts = np.asarray(stored["counts"])
        # Of a model without a state no run begins a sequence, but for the first.
        runs, inputs, outputs, steps = (int(count) for count in counts)
        for run in range(runs):
            if interpreter is None or (steps and run % steps == 0):
                interpreter = runtime.Interpreter.from_bytes(model, arena_size=ARENA_BYTES)
            for index in range(inputs):
                interpreter.set_input(stored[key(run, index)], index)
            interpreter.invoke()
            for index in range(outputs):
                results[key(run, index)] = np.array(interpreter.get_output(index))
    save(folder / OUTPUTS, results)


def main(folder: Path) -> int:
    """Run every sample of INPUTS; 0, or REFUSED with the reason in a file."""
    try:
        _run(folder)
    except (ImportError, RuntimeError, ValueError) as error:
        (folder / REASON).write_text(str(error), encoding="utf-8")
        return REFUSED
    return 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
