"""Find the function by which ONNX itself defines an operator, as nodes of other operators."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from microtir.dtype import DType
from microtir.frontend.onnx.file import FileBody, FileNode, FileReader
from microtir.graph.ir import Tensor
from microtir.operators.common.onnx_operands import AttributeValue

if TYPE_CHECKING:
    import onnx

_TYPE_NUMBERS: Mapping[DType, int] = {
    DType.FLOAT32: 1, DType.UINT8: 2, DType.INT8: 3, DType.UINT16: 4, DType.INT16: 5,
    DType.INT32: 6, DType.INT64: 7, DType.BOOL: 9, DType.FLOAT64: 11, DType.UINT32: 12,
    DType.UINT64: 13,
}  # fmt: skip


def definition_of(
    node: FileNode, opsets: Mapping[str, int], inputs: Sequence[Tensor | None], reader: FileReader
) -> tuple[FileBody, Mapping[str, int]] | None:
    """Return what a node stands for, and the operator sets of that; None if ONNX does not say it.

    Args:
        node: of the file.
        opsets: versions of operator sets, by domain.
        inputs: of the node; the definition may depend on their types and shapes.
        reader: of the file.
    """
    import onnx
    from onnx import defs

    newest = defs.onnx_opset_version()
    version = min(opsets.get("", newest), newest)
    try:
        schema: Any = defs.get_schema(node.operator, opsets.get(node.domain, 1), node.domain)
    except defs.SchemaError:
        return None
    call = onnx.NodeProto(op_type=node.operator, domain=node.domain)
    call.input.extend(node.inputs)
    call.output.extend(node.outputs)
    attributes = _attributes(node.attributes, schema)
    call.attribute.extend(attributes[name] for name in node.attributes if name in attributes)
    if schema.has_context_dependent_function:
        known = schema.context_dependent_function_opset_versions
        types = [_type_of(tensor).SerializeToString() for tensor in inputs]
        data = schema.get_context_dependent_function_with_opset_version(
            _newest(known, version), call.SerializeToString(), types
        )
    elif schema.has_function:
        known = schema.function_opset_versions
        data = schema.get_function_with_opset_version(_newest(known, version))
    else:
        return None
    function = onnx.FunctionProto.FromString(data)
    _resolve(function.node, attributes)
    body = FileBody(
        nodes=tuple(reader.node(node.index, inner) for inner in function.node),
        inputs=tuple(function.input),
        outputs=tuple(function.output),
        constants={},
    )
    own = {opset.domain: opset.version for opset in function.opset_import}
    return body, {"": version, **own}


def _newest(known: Sequence[int], version: int) -> int:
    return max((number for number in known if number <= version), default=max(known))


def _attributes(
    values: Mapping[str, AttributeValue], schema: Any
) -> dict[str, onnx.AttributeProto]:
    """Return the attributes of a node, with those that it leaves out as they are by default."""
    from onnx import helper, numpy_helper

    own_attributes = {
        name: attribute.default_value
        for name, attribute in schema.attributes.items()
        if attribute.default_value.type
    }
    for name, value in values.items():
        if isinstance(value, np.ndarray):
            own_attributes[name] = helper.make_attribute(name, numpy_helper.from_array(value))
        elif isinstance(value, FileBody):
            own_attributes[name] = helper.make_attribute(name, value.message)
        elif value != ():
            own_attributes[name] = helper.make_attribute(name, value)
    return own_attributes


def _type_of(tensor: Tensor | None) -> onnx.TypeProto:
    from onnx import TypeProto, helper

    if tensor is None:
        return TypeProto()
    return helper.make_tensor_type_proto(_TYPE_NUMBERS[tensor.dtype], tensor.shape)


def _resolve(
    nodes: Sequence[onnx.NodeProto], attributes: Mapping[str, onnx.AttributeProto]
) -> None:
    """Replace each attribute that refers to one of the call; what nothing gives is left out."""
    for node in nodes:
        resolved = []
        for attribute in node.attribute:
            for graph in (attribute.g, *attribute.graphs):
                _resolve(graph.node, attributes)
            value = attributes.get(attribute.ref_attr_name)
            if attribute.ref_attr_name and value is not None:
                name = attribute.name
                attribute.CopyFrom(value)
                attribute.name = name
            if not attribute.ref_attr_name or value is not None:
                resolved.append(attribute)
        copies = [
            type(attribute).FromString(attribute.SerializeToString()) for attribute in resolved
        ]
        del node.attribute[:]
        node.attribute.extend(copies)
