"""Reference outputs that do not come from a file: computed by something else than the C."""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from typing import Any

import numpy as np

from microtir.errors import ToolError, UsageError
from microtir.graph import reference
from microtir.graph.ir import Array, Graph
from microtir.host.samples import Samples

TFLM_ARENA_BYTES = 1 << 25
"""More than any model for a microcontroller needs; untouched pages cost nothing."""


class Oracle(Enum):
    """Who computes the reference outputs."""

    REFERENCE = "reference"  # microtir's own numpy semantics of the graph
    TFLM = "tflm"  # tflite-micro's reference kernels
    LITERT = "litert"
    ONNXRUNTIME = "onnxruntime"


BUILT = (Oracle.REFERENCE, Oracle.TFLM)


def check_oracle(oracle: Oracle) -> None:
    """Refuse an oracle that is not built, or not installed, before anything costly is done.

    Raises:
        UsageError: it is not built yet.
        ToolError: it needs a package that is not installed.
    """
    if oracle not in BUILT:
        raise UsageError(
            f"the oracle '{oracle.value}' is not built yet",
            where="--oracle",
            legal=", ".join(built.value for built in BUILT),
            fix="use one of these, or compare with a file: --golden FILE.npz",
        )
    if oracle is Oracle.TFLM:
        _tflm_runtime()


def expected_outputs(oracle: Oracle, graph: Graph, model: bytes, samples: Samples) -> Samples:
    """Reference outputs of each sample.

    Args:
        oracle: who computes them.
        graph: the model as the frontend read it.
        model: the model file.
        samples: inputs.

    Raises:
        UsageError: the oracle is not built yet.
        ToolError: the oracle is not installed, or refuses the model.
    """
    check_oracle(oracle)
    if oracle is Oracle.TFLM:
        return _tflm(graph, model, samples)
    return Samples(tuple(reference.execute(graph, inputs) for inputs in samples.values))


def _tflm_runtime() -> Any:
    """The interpreter class of the optional package, which ships no types."""
    try:
        from tflite_micro import runtime
    except ImportError:
        raise ToolError(
            "the oracle 'tflm' needs the package tflite-micro, which is not installed",
            where="--oracle",
            fix='pip install "microtir[test]" (Linux on x86-64), or use --oracle reference',
        ) from None
    return runtime.Interpreter


def _tflm(graph: Graph, model: bytes, samples: Samples) -> Samples:
    try:
        interpreter = _tflm_runtime().from_bytes(model, arena_size=TFLM_ARENA_BYTES)
        return Samples(tuple(_invoke(interpreter, graph, inputs) for inputs in samples.values))
    except (RuntimeError, ValueError) as error:
        raise ToolError(
            f"tflite-micro cannot run the model: {error}",
            where="--oracle tflm",
            fix="its own message is above; use --oracle reference for what it does not support",
        ) from None


def _invoke(interpreter: Any, graph: Graph, inputs: Mapping[str, Array]) -> dict[str, Array]:
    for index, tensor in enumerate(graph.inputs):
        interpreter.set_input(inputs[tensor.name], index)
    interpreter.invoke()
    return {
        tensor.name: np.array(interpreter.get_output(index))
        for index, tensor in enumerate(graph.outputs)
    }
