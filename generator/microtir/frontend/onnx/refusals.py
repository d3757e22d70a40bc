"""Words for operators and attributes of ONNX that are not supported, and what to do."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType

from microtir.errors import ExportProblem, ModelFileError, UnsupportedModelError
from microtir.frontend.onnx.file import FileNode
from microtir.frontend.support import Advice
from microtir.graph.names import brief
from microtir.operators.common.onnx_ml import ML
from microtir.operators.common.onnx_operands import OnnxReader

_CAST = "put a Cast to one of the expected types before it, or export the model in float32"
_BETWEEN_FLOATS = f"quantise with quant_format=QuantFormat.QDQ; or {_CAST}"

ONNX_ADVICE = Advice(
    scales="quantise the model again with quant_format=QuantFormat.QDQ",
    sixteen_bits=_BETWEEN_FLOATS,
    unsigned_bytes=_BETWEEN_FLOATS,
    types=_CAST,
)

_RANDOM = "a compiled model gives the same result every time: export it in inference mode"
_TEXT = "microtir computes on tensors of numbers: leave strings to the application"

_TRAINING = "a compiled model does not learn: export it without the steps of its training"

_ADVICE: Mapping[str, str] = MappingProxyType(
    {
        "ImageDecoder": "microtir computes on pixels: decode images in the application",
        "Adagrad": _TRAINING,
        "Adam": _TRAINING,
        "Momentum": _TRAINING,
        "Gradient": _TRAINING,
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
            fix=f"export with operator set {reader.since} or later",
            export=ExportProblem.OLD_OPERATOR_SET,
            export_value=str(reader.since),
        )
    domain = f" of domain {brief(node.domain)!r}" if node.domain else ""
    return UnsupportedModelError(
        f"the operator {brief(node.operator)}{domain} is not supported",
        where=where,
        legal="the operators that `microtir operators --onnx` lists",
        fix=fix,
        export=_export_problem(node),
    )


def _export_problem(node: FileNode) -> ExportProblem | None:
    """Return what about the export gives such operators, if it is not the model itself."""
    if _ADVICE.get(node.operator) == _RANDOM:
        return ExportProblem.TRAINING_MODE
    if node.domain == "com.microsoft":
        return ExportProblem.FUSED_OPERATOR
    return ExportProblem.OWN_DOMAIN if node.domain not in ("", ML) else None


def unknown_attributes(names: Sequence[str], reader: OnnxReader, where: str) -> ModelFileError:
    """Return the error for attributes that the operator does not have."""
    return ModelFileError(
        f"it has the attribute '{brief(names[0])}'",
        where=where,
        legal=", ".join(reader.attributes) or "none",
        fix="export the model again",
    )
