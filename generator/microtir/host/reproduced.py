"""Find the options with which a comparison that failed would succeed."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice

import numpy as np

from microtir.config import Numerics
from microtir.errors import UnsupportedModelError
from microtir.graph.ir import Graph
from microtir.host.compare import Comparison
from microtir.host.samples import SampleBatch
from microtir.host.tolerance import Values
from microtir.rewrite import reference
from microtir.rewrite.requests.numerics import ChooseNumerics, rescales_as_onnx

HALF_PRECISION = 0.01
"""Share of the largest output that a model in float16 may differ by from one in float32."""

_RUNS = 64  # that are computed in numpy before an answer

_FOR_TFLITE = (Numerics.TFLM, Numerics.TFLITE_REF)
_FOR_ONNX = (Numerics.ONNXRUNTIME, Numerics.PT2E, Numerics.TFLM)


def numerics_that_reproduce(
    graph: Graph, inputs: SampleBatch, expected: Sequence[Values], chosen: Numerics
) -> Numerics | None:
    """Return other numerics that give the expected outputs of the first runs; None if none do.

    Args:
        graph: as it was read.
        inputs: of each run.
        expected: the outputs of each run.
        chosen: the numerics of the C, which are not tried.
    """
    if graph.stream is not None or graph.counted:
        return None
    candidates = _FOR_ONNX if rescales_as_onnx(graph) else _FOR_TFLITE
    return next(
        (n for n in candidates if n is not chosen and _gives(n, graph, inputs, expected)), None
    )


def _gives(
    numerics: Numerics, graph: Graph, inputs: SampleBatch, expected: Sequence[Values]
) -> bool:
    try:
        other = ChooseNumerics(numerics)(graph)
    except UnsupportedModelError:
        return False  # the reference has no such layer
    runs = (
        outputs for sample in inputs.samples() for outputs in reference.execute_steps(other, sample)
    )
    return all(
        all(np.array_equal(outputs[name], array) for name, array in wanted.items())
        for outputs, wanted in zip(islice(runs, _RUNS), expected, strict=False)
    )


def is_half_precision(comparison: Comparison, expected: Sequence[Values]) -> bool:
    """Return whether floats alone differ, by no more than `HALF_PRECISION` allows.

    Args:
        comparison: of the outputs with those that were expected.
        expected: the reference outputs of each run.
    """
    for difference in comparison.differences:
        run = difference.sample * (comparison.steps or 1) + (difference.step or 0)
        array = expected[run][difference.output]
        if array.dtype.kind != "f":
            return False
        largest = float(np.abs(array[np.isfinite(array)]).max(initial=0.0))
        if not difference.max_abs_error <= HALF_PRECISION * largest:
            return False
    return bool(comparison.differences)
