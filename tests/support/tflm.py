"""Run a TFLite model with tflite-micro's reference kernels, the yardstick of int8 results."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

ARENA_BYTES = 1 << 20


def run_tflm(
    model: bytes, *inputs: npt.NDArray[Any], outputs: int = 1, arena_bytes: int = ARENA_BYTES
) -> list[npt.NDArray[Any]]:
    """Run one inference and return copies of the first `outputs` outputs.

    Raises:
        RuntimeError: tflite-micro refuses the model or fails; its log goes to stderr.
    """
    from tflite_micro import runtime

    interpreter = runtime.Interpreter.from_bytes(model, arena_size=arena_bytes)
    for index, values in enumerate(inputs):
        interpreter.set_input(values, index)
    interpreter.invoke()
    return [np.array(interpreter.get_output(index)) for index in range(outputs)]


def run_tflm_steps(
    model: bytes, steps: Iterable[npt.NDArray[Any]], arena_bytes: int = ARENA_BYTES
) -> list[npt.NDArray[Any]]:
    """Run a model of one input and one output again and again; return the output of each run."""
    from tflite_micro import runtime

    interpreter = runtime.Interpreter.from_bytes(model, arena_size=arena_bytes)
    outputs = []
    for values in steps:
        interpreter.set_input(values, 0)
        interpreter.invoke()
        outputs.append(np.array(interpreter.get_output(0)))
    return outputs


def run_tflm_sequence(
    model: bytes,
    steps: Iterable[Sequence[npt.NDArray[Any]]],
    outputs: int = 1,
    arena_bytes: int = ARENA_BYTES,
) -> list[list[npt.NDArray[Any]]]:
    """Run a model of several inputs and outputs again and again; return the outputs of each run."""
    from tflite_micro import runtime

    interpreter = runtime.Interpreter.from_bytes(model, arena_size=arena_bytes)
    results = []
    for step in steps:
        for index, values in enumerate(step):
            interpreter.set_input(values, index)
        interpreter.invoke()
        results.append([np.array(interpreter.get_output(index)) for index in range(outputs)])
    return results
