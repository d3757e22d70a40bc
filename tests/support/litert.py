"""Run a TFLite model with LiteRT's reference kernels, the yardstick where tflite-micro has none."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt


def run_litert(model: bytes, *inputs: npt.NDArray[Any]) -> list[npt.NDArray[Any]]:
    """Run one inference and return copies of all outputs.

    Raises:
        RuntimeError: LiteRT refuses the model or fails.
    """
    return run_litert_steps(model, [inputs])[0]


def run_litert_steps(
    model: bytes, steps: Sequence[Sequence[npt.NDArray[Any]]]
) -> list[list[npt.NDArray[Any]]]:
    """Run inferences one after the other, each with what the one before has left.

    Raises:
        RuntimeError: LiteRT refuses the model or fails.
    """
    from ai_edge_litert.interpreter import Interpreter, OpResolverType

    interpreter = Interpreter(
        model_content=model, experimental_op_resolver_type=OpResolverType.BUILTIN_REF
    )
    interpreter.allocate_tensors()
    results = []
    for inputs in steps:
        for detail, values in zip(interpreter.get_input_details(), inputs, strict=True):
            interpreter.set_tensor(detail["index"], values)
        interpreter.invoke()
        outputs = interpreter.get_output_details()
        results.append([np.array(interpreter.get_tensor(d["index"])) for d in outputs])
    return results
