"""Take an ONNX file apart as a container: bytes to messages that keep the rules of ONNX.

The package `onnx` checks the rules.  onnxruntime is less strict, and exporters rely on that: what
it takes for granted is said in the messages before they are checked.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING

from microtir.errors import ModelFileError, ToolError
from microtir.frontend.onnx.external_data import take_in_all
from microtir.frontend.onnx.inner_graphs import graphs_of
from microtir.frontend.onnx.local_functions import check_functions
from microtir.frontend.onnx.node_order import computed_order
from microtir.frontend.onnx.sparse_values import make_dense
from microtir.frontend.onnx.texts import check_texts
from microtir.operators.common.onnx_operands import MICROSOFT
from microtir.support.resources import install_extra

if TYPE_CHECKING:
    import onnx

EXPORT = "export the model again"

_WITHOUT_IMPORT: Mapping[str, int] = MappingProxyType({MICROSOFT: 1, "ai.onnx.ml": 3})
"""Operator sets that onnxruntime knows without being told, and their versions."""

_INITIALISERS_BY_THEMSELVES = 4  # since this version of the format they need not be inputs

_OF_ONNXRUNTIME: Mapping[str, int] = MappingProxyType({
    "SimplifiedLayerNormalization": 1 << 31, "DynamicSlice": 1 << 31, "LayerNormalization": 17,
    "MeanVarianceNormalization": 9, "ThresholdedRelu": 10,
    **dict.fromkeys(("Affine", "Crop", "ImageScaler", "ParametricSoftplus", "Scale", "ScaledTanh"),
                    10),
})  # fmt: skip
"""Operators that onnxruntime has in ONNX's own domain before the version in which ONNX has them."""


def checked_model(data: bytes, file: str, folder: Path | None) -> onnx.ModelProto:
    """Return the model, found legal by the rules of the package, with its functions expanded.

    Raises:
        ToolError: the package `onnx` is not installed.
        ModelFileError: the bytes are no ONNX model, or contradict themselves.
    """
    try:
        import onnx
        from google.protobuf.message import DecodeError, EncodeError
        from onnx import checker, inliner
    except ImportError:
        raise ToolError(
            "ONNX models are read with the package onnx, which is not installed",
            where=file,
            fix=install_extra("onnx"),
        ) from None
    if not data:  # which is a message without fields
        raise ModelFileError(
            "the file is empty", where=file, legal="an ONNX model",
            fix="export or download the model again",
        )  # fmt: skip
    try:
        model = onnx.load_model_from_string(data)
    except DecodeError:
        raise ModelFileError(
            "this is not an ONNX model: it is not a protocol buffer of ONNX",
            where=file,
            legal="a file that an exporter to ONNX wrote",
            fix=EXPORT,
        ) from None
    check_texts(model, file)
    take_in_all(model, folder, file)
    check_functions(model, file)
    try:
        if model.functions:
            model = inliner.inline_local_functions(model)
        make_dense(model, file)
        _say_what_is_understood(model)
        with_shapes = _give_shapes(model.graph)
        checker.check_model(model)
        for value in with_shapes:
            value.type.tensor_type.ClearField("shape")
    except (checker.ValidationError, EncodeError, RuntimeError, ValueError) as error:
        reason = " ".join(str(error).split())
        raise ModelFileError(
            f"it breaks a rule of ONNX: {reason[:300]}", where=file, fix=EXPORT
        ) from None
    return model


def _say_what_is_understood(model: onnx.ModelProto) -> None:
    """Write into a model what onnxruntime understands without it."""
    from onnx import TensorProto

    for entry in model.opset_import:
        entry.domain = _own(entry.domain)
    graph = model.graph
    graph.name = graph.name or "graph"
    versions = {entry.domain: entry.version for entry in model.opset_import}
    inputs = {value.name for value in graph.input}
    if any(tensor.name not in inputs for tensor in graph.initializer):
        model.ir_version = model.ir_version and max(model.ir_version, _INITIALISERS_BY_THEMSELVES)
    # What an output is follows from the nodes, and some exporters leave it to them.
    for value in graph.output:
        if value.type.WhichOneof("value") is None:
            value.type.tensor_type.elem_type = TensorProto.FLOAT
    _understand(graph, versions.get("", 0))
    used = {node.domain for inner in graphs_of(graph) for node in inner.node}
    for domain in sorted(used & _WITHOUT_IMPORT.keys() - versions.keys()):
        model.opset_import.add(domain=domain, version=_WITHOUT_IMPORT[domain])


def _understand(graph: onnx.GraphProto, version: int) -> None:
    """Write into all graphs of a model what onnxruntime understands without it.

    Args:
        graph: of the model.
        version: of ONNX's own operator set.
    """
    for inner in graphs_of(graph):
        del inner.value_info[:]  # types of values follow from the nodes, here and there
        _keep_last(inner)
        for node in inner.node:
            node.domain = _own(node.domain)
            if not node.domain and version < _OF_ONNXRUNTIME.get(node.op_type, 0):
                node.domain = MICROSOFT
        order = computed_order(inner.node)
        if order != list(range(len(order))):
            nodes = [type(node).FromString(node.SerializeToString()) for node in inner.node]
            del inner.node[:]
            inner.node.extend(nodes[place] for place in order)


def _keep_last(graph: onnx.GraphProto) -> None:
    """Leave of several initialisers of one name the last, which is the one that counts."""
    last = {tensor.name: place for place, tensor in enumerate(graph.initializer)}
    if len(last) < len(graph.initializer):
        for place in reversed(range(len(graph.initializer))):
            if last[graph.initializer[place].name] != place:
                del graph.initializer[place]


def _give_shapes(graph: onnx.GraphProto) -> list[onnx.ValueInfoProto]:
    """Give inputs and outputs shapes where they have none, and return these inputs.

    The rules ask for some shape.  That of an input which has none is not known, not even its rank.
    """
    tensors = [
        value
        for value in (*graph.input, *graph.output)
        if value.type.HasField("tensor_type") and not value.type.tensor_type.HasField("shape")
    ]
    for value in tensors:
        value.type.tensor_type.shape.SetInParent()
    outputs = {id(value) for value in graph.output}
    return [value for value in tensors if id(value) not in outputs]


def _own(domain: str) -> str:
    """Return ONNX's own domain by its shorter name."""
    return "" if domain == "ai.onnx" else domain
