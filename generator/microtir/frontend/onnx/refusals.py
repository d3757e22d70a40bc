"""Words for operators and attributes of ONNX that are not supported, and what to do."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType

from microtir.errors import ModelFileError, UnsupportedModelError
from microtir.frontend.onnx.file import FileNode
from microtir.graph.names import brief
from microtir.operators.common.onnx_operands import OnnxReader

_RANDOM = "a compiled model gives the same result every time: export it in inference mode"
_TEXT = "microtir computes on tensors of numbers: leave strings to the application"

_ADVICE: Mapping[str, str] = MappingProxyType(
    {
        "RandomNormal": _RANDOM,
        "RandomNormalLike": _RANDOM,
        "RandomUniform": _RANDOM,
        "RandomUniformLike": _RANDOM,
        "Multinomial": _RANDOM,
        "Bernoulli": _RANDOM,
        "StringNormalizer": _TEXT,
        "StringConcat": _TEXT,
        "StringSplit": _TEXT,
        "RegexFullMatch": _TEXT,
    }
)


def unknown_operator(
    node: FileNode, version: int, reader: OnnxReader | None, where: str
) -> UnsupportedModelError:
    """Return the error for an operator that microtir does not read in this version."""
    fix = _ADVICE.get(node.operator, "replace the layer, or compute it in the application")
    if reader is not None:
        return UnsupportedModelError(
            f"the operator {node.operator} of operator set {version} is not supported",
            where=where,
            legal=f"operator set {reader.since} or later",
            fix=f"export with opset_version={reader.since} or later",
        )
    domain = f" of domain {brief(node.domain)!r}" if node.domain else ""
    return UnsupportedModelError(
        f"the operator {brief(node.operator)}{domain} is not supported",
        where=where,
        legal="the operators that `microtir operators --onnx` lists",
        fix=fix,
    )


def unknown_attributes(names: Sequence[str], reader: OnnxReader, where: str) -> ModelFileError:
    """Return the error for attributes that the operator does not have."""
    return ModelFileError(
        f"it has the attribute '{brief(names[0])}'",
        where=where,
        legal=", ".join(reader.attributes) or "none",
        fix="export the model again",
    )
