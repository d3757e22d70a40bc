"""onnxruntime's normalisations by the root of the mean square, as its exporters write them."""

from __future__ import annotations

import numpy as np
import pytest
from onnx import TensorProto, helper

from microtir.errors import MicrotirError
from microtir.frontend import from_onnx
from microtir.rewrite.reference import execute
from tests.support.onnx_models import Array, model_of, run_onnxruntime, typed

pytestmark = pytest.mark.tools

DOMAINS = {"com.microsoft": 1}
X = np.random.default_rng(0).normal(size=(1, 3, 8)).astype(np.float32)
CONSTANTS = {
    "scale": np.linspace(0.5, 2, 8, dtype=np.float32),
    "bias": np.linspace(-1, 1, 8, dtype=np.float32),
}


def check(model: bytes, inputs: dict[str, Array]) -> None:
    """The graph computes what onnxruntime does."""
    graph = from_onnx(model).graph
    assert graph is not None
    got = execute(graph, inputs)
    for name, want in zip(got, run_onnxruntime(model, inputs), strict=True):
        np.testing.assert_allclose(got[name], want, rtol=1e-5, atol=1e-6)


def test_rows_over_their_root() -> None:
    """SimplifiedLayerNormalization is RMSNormalization, said to be ONNX's, which has none."""
    node = helper.make_node("SimplifiedLayerNormalization", ["x", "scale"], ["y"], epsilon=1e-3)
    check(model_of([node], [typed("x", X)], ["y"], CONSTANTS), {"x": X})


@pytest.mark.parametrize("more", [[], ["bias"]])
def test_sums_over_their_root(more: list[str]) -> None:
    """A layer that adds first gives the sum as well, for the next one to add to."""
    node = helper.make_node(
        "SkipSimplifiedLayerNormalization", ["x", "skip", "scale", *more], ["y", "", "", "sum"],
        domain="com.microsoft", epsilon=1e-5,
    )  # fmt: skip
    inputs = {"x": X, "skip": X[:, ::-1] * 2}
    given = [typed(name, array) for name, array in inputs.items()]
    check(model_of([node], given, ["y", "sum"], CONSTANTS, domains=DOMAINS), inputs)


def test_what_training_needs_is_refused() -> None:
    """Its outputs are not computed."""
    node = helper.make_node(
        "SkipSimplifiedLayerNormalization", ["x", "x", "scale"], ["y", "mean"],
        domain="com.microsoft",
    )  # fmt: skip
    mean = helper.make_tensor_value_info("mean", TensorProto.FLOAT, None)
    with pytest.raises(MicrotirError, match="which has no elements"):
        from_onnx(model_of([node], [typed("x", X)], [mean], CONSTANTS, domains=DOMAINS))
