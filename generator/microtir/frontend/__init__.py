"""Model files into the graph IR, and what can be said about them."""

from microtir.frontend.causes import Cause, causes
from microtir.frontend.inspect import inspect
from microtir.frontend.keras import from_keras
from microtir.frontend.model_file import check, float_layers, read_model
from microtir.frontend.onnx import from_onnx
from microtir.frontend.tflite import from_tflite, signatures
from microtir.frontend.torch import from_torch
from microtir.rewrite.imports.float_layers import FloatLayer

__all__ = [
    "Cause",
    "FloatLayer",
    "causes",
    "check",
    "float_layers",
    "from_keras",
    "from_onnx",
    "from_tflite",
    "from_torch",
    "inspect",
    "read_model",
    "signatures",
]
