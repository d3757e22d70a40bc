"""Models in ONNX for tests, and onnxruntime as their oracle."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import onnx
from onnx import helper, numpy_helper

from microtir.config import PassConfig

Array = npt.NDArray[Any]

IR_VERSION = 10
OPSET = 21
REPLAY = PassConfig({"tir.replay_each_pass": True})
"""A model is computed before and after each pass that its reading takes."""


def typed(name: str, values: Array | tuple[Any, ...], dtype: Any = np.float32) -> Any:
    """Return an input or output: of an array's type, or of a shape's, whose names are open."""
    if isinstance(values, tuple):
        return helper.make_tensor_value_info(
            name, helper.np_dtype_to_tensor_dtype(np.dtype(dtype)), values
        )
    number = helper.np_dtype_to_tensor_dtype(values.dtype)
    return helper.make_tensor_value_info(name, number, values.shape)


def model_of(
    nodes: Sequence[Any],
    inputs: Sequence[Any],
    outputs: Sequence[str | Any],
    constants: Mapping[str, Array] | None = None,
    opset: int = OPSET,
    domains: Mapping[str, int] | None = None,
) -> bytes:
    """Return a model; an output that is a name is of floats, of a shape that is not said."""
    results = [
        helper.make_tensor_value_info(output, onnx.TensorProto.FLOAT, None)
        if isinstance(output, str)
        else output
        for output in outputs
    ]
    held = [numpy_helper.from_array(array, name) for name, array in (constants or {}).items()]
    graph = helper.make_graph(list(nodes), "made", list(inputs), results, initializer=held)
    sets = [helper.make_opsetid(name, n) for name, n in {"": opset, **(domains or {})}.items()]
    model = helper.make_model(graph, opset_imports=sets, ir_version=IR_VERSION)
    return bytes(model.SerializeToString())


def ml_model_of(
    nodes: Sequence[Any], inputs: Sequence[Any], outputs: Sequence[str | Any], version: int = 4
) -> bytes:
    """Return a model with operators of ai.onnx.ml."""
    return model_of(nodes, inputs, outputs, domains={"ai.onnx.ml": version})


def ml_node(operator: str, outputs: Sequence[str] = ("y",), **attributes: Any) -> Any:
    """Return a node of ai.onnx.ml that takes the input x."""
    return helper.make_node(operator, ["x"], list(outputs), domain="ai.onnx.ml", **attributes)


def with_inferred_outputs(model: bytes) -> bytes:
    """Return a model that says of what type its outputs are, as onnxruntime wants it."""
    read = onnx.load_model_from_string(model)
    return bytes(onnx.shape_inference.infer_shapes(read).SerializeToString())


def run_onnxruntime(model: bytes, inputs: Mapping[str, Array]) -> list[Array]:
    """Return the outputs that onnxruntime computes, with its graph optimisations off."""
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.log_severity_level = 4
    session = onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])
    return [np.asarray(output) for output in session.run(None, dict(inputs))]
