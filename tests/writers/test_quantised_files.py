"""Models that were quantised here, as files: tflite-micro computes the bits of our reference."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from microtir.frontend import from_tflite
from microtir.quantise import QuantiseOptions, Width, quantise
from microtir.quantise.runs import stored
from microtir.rewrite.reference import execute_steps
from microtir.writers import tflite_bytes
from tests.models.test_exported import EACH
from tests.support.same_graph import canonical
from tests.support.tflm import run_tflm_sequence

# Float models that tflite-micro runs once they are quantised: all kinds of layers, and states.
MODELS = (
    "autoencoder_transpose_float32", "dense_sequence_batch_none_float32", "lstm_unrolled_float32",
    "mobilenet_float32", "squeeze_excite_float32", "streaming_variables_float32",
    "tcn_causal_dilated_float32", "two_inputs_two_outputs_float32", "unet_transpose_float32",
)  # fmt: skip


OTHER_WIDTHS = {
    Width.INT16: ("mobilenet_float32", "squeeze_excite_float32"),
    Width.WEIGHTS4: ("mobilenet_float32", "dense_sequence_batch_none_float32"),
}
CASES = [
    pytest.param(entry.values[0], width, marks=entry.marks)
    for width, names in {Width.INT8: MODELS, **OTHER_WIDTHS}.items()
    for entry in EACH
    if entry.values[0] in names
]


@pytest.mark.parametrize(("name", "width"), CASES)
def test_tflite_micro_computes_the_same(models_dir: Path, name: str, width: Width) -> None:
    """The file is read as the graph that was quantised, and has its bits over three runs."""
    graph = from_tflite(models_dir / "exported" / f"{name}.tflite").graph
    assert graph is not None
    rng = np.random.default_rng(1)
    samples = {t.name: rng.normal(0, 1, (6, *t.shape)).astype(np.float32) for t in graph.arguments}
    result = quantise(graph, samples, QuantiseOptions(width=width))
    model = tflite_bytes(result.graph, int4=result.weights4)
    again = from_tflite(model, name=graph.name).graph
    assert again is not None and canonical(again) == canonical(result.graph)
    steps = [
        {t.name: stored(samples[t.name][run], t.type) for t in result.graph.arguments}
        for run in range(3)
    ]
    names = [tensor.name for tensor in result.graph.results]
    runs = run_tflm_sequence(model, [list(step.values()) for step in steps], len(names))
    for outputs, wanted in zip(runs, execute_steps(result.graph, steps), strict=True):
        for name_, values in zip(names, outputs, strict=True):
            np.testing.assert_array_equal(values, wanted[name_])
