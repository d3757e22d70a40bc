"""Programs that `torch.export.save` wrote give what PyTorch gave for them."""

from __future__ import annotations

from pathlib import Path

import pytest

from microtir.host.tolerance import rounding_of
from microtir.host.verify import verify
from tests.models.test_models import compile_model

TORCH = "torch"

PLAIN = (
    "activations", "attention_block", "attention_block_decomposed", "causal_tokens", "cnn_batch",
    "cnn_decomposed", "control_cond", "conv3d", "counter_buffer", "gather",
    "gru", "gru_bidirectional", "gru_decomposed", "lstm", "lstm_decomposed",
    "lstm_two_bidirectional", "maths", "norms", "norms_decomposed", "padding",
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
