"""Programs that `torch.export.save` wrote give what PyTorch gave for them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from microtir import frontend
from microtir.host.tolerance import rounding_of
from microtir.host.verify import verify
from microtir.rewrite import reference
from tests.models.test_models import compile_model

TORCH = "torch"

PLAIN = (
    "activations", "attention_block", "attention_block_decomposed", "causal_tokens", "cnn_batch",
    "cnn_decomposed", "control_cond", "conv3d", "counter_buffer", "gather",
    "gru", "gru_bidirectional", "gru_decomposed", "lstm", "lstm_cell_step", "lstm_decomposed",
    "lstm_projected", "lstm_two_bidirectional", "maths", "norms", "norms_decomposed", "padding",
    "rnn_relu", "shapes", "spectral", "streaming_buffer", "super_resolution",
)  # fmt: skip

QUANTISED_TOO = (
    "autoencoder", "cnn", "conv1d_stack", "encoder_layer", "inverted_residual", "squeeze_excite",
    "tcn", "unet",
)  # fmt: skip

FORMS = ("", "_pt2e_int8", "_pt2e_tensor", "_pt2e_uint8")

NAMES = (*PLAIN, *(f"{name}{form}" for name in QUANTISED_TOO for form in FORMS))


EACH = [pytest.param(name, marks=pytest.mark.model(f"{TORCH}/{name}")) for name in NAMES]


@pytest.mark.parametrize("name", EACH)
def test_golden_outputs(models_dir: Path, name: str) -> None:
    """Outputs of each run are as near to the exact values as sums of floats are."""
    model = compile_model(models_dir / TORCH, name, suffix=".pt2")
    tolerance = rounding_of(model.graph, model.inputs.values)
    verdict = verify(model.artifact, model.planned, model.inputs, model.expected, tolerance)
    assert verdict.equal, verdict.to_dict()


@pytest.mark.model(f"{TORCH}/cnn_dynamic_batch")
def test_an_open_batch(models_dir: Path) -> None:
    """A batch whose size the program leaves open is the one that is given."""
    path = models_dir / TORCH / "cnn_dynamic_batch"
    graph = frontend.from_torch(path.with_suffix(".pt2"), dims={"s77": 2}).graph
    assert graph is not None
    with np.load(path.with_suffix(".golden.npz")) as golden:
        pairs = zip(golden["inputs"], golden["outputs"], strict=True)
        for given, wanted in pairs:
            (made,) = reference.execute(graph, {"x": given}).values()
            assert np.allclose(made, wanted, atol=1e-6)
