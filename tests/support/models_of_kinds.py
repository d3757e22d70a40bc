"""Ten models of all kinds, whose C each tool that reads C looks at."""

from __future__ import annotations

from pathlib import Path

from microtir import build
from microtir.artifact import Artifact
from microtir.config import CompilationConfig, Target
from microtir.frontend import from_onnx, from_tflite
from microtir.support.resources import example

# int8, floats, hybrid, 16x8, an LSTM with a state, uint8 and ONNX, a loop, a branch, activations.
MODELS = (
    "ad01_float.tflite",
    "kws_hybrid.tflite",
    "exported/conv1d_global_max_16x8.tflite",
    "exported/lstm_fused_int8.tflite",
    "exported/mobilenet_ort_qop_u8.onnx",
    "exported/gru_while_float32.tflite",
    "exported/control_if_float32.tflite",
    "exported/autoencoder_transpose_int8.tflite",
    "exported/act_gelu_swish_mish_float32.tflite",
)
"""Files below the folder of the reference models; the tenth is the example, `digits`."""

MARKS = tuple(name.rpartition(".")[0] for name in MODELS)
"""What `pytest.mark.model` calls them."""


def of_file(path: Path) -> Artifact:
    """Compile a model for any CPU."""
    read = from_onnx if path.suffix == ".onnx" else from_tflite
    return build(read(path), Target("c"))


def digits(target: str, executor: str = "aot") -> Artifact:
    """Compile the example."""
    config = CompilationConfig.from_target(Target(target)).with_(executor=executor)
    return build(from_tflite(example("digits/digits_int8.tflite")), config)
