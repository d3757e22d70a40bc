"""Words for operators and types that are not supported: the format's name, and what to do.

The names of tensor types come from the package `tflite`, which is imported for refusals only:
reading a supported model never needs it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType

from microtir.errors import UnsupportedModelError, nearest
from microtir.frontend.tflite_file import FileOperator
from microtir.graph.names import brief
from microtir.operators.common.tflite_schema import BuiltinOperator

_STATE = "convert a model without state"
_RECURRENT = "use LSTM layers, or unroll the recurrent layer"

_EDGE_TPU = "edgetpu-custom-op"

_ADVICE: Mapping[str, str] = MappingProxyType(
    {
        "RNN": _RECURRENT,
        "UNIDIRECTIONAL_SEQUENCE_RNN": _RECURRENT,
    }
)


def operator_title(operator: FileOperator) -> str:
    """Return the format's name of an operator."""
    if operator.custom_name:
        return f"CUSTOM {brief(operator.custom_name)!r}"
    try:
        return BuiltinOperator(operator.code).name
    except ValueError:
        return f"operator code {operator.code}"


def type_advice(number: int) -> str:
    """Return what to do about a tensor type that is not supported."""
    title = type_title(number)
    if title == "FLOAT16":
        return (
            "convert the model as float32 (without tf.float16 in target_spec.supported_types),"
            " or with full integer quantisation to int8"
        )
    if title in ("RESOURCE", "VARIANT"):
        return _STATE
    return "convert the model as float32, or with full integer quantisation to int8"


def type_title(number: int) -> str:
    """Return the format's name of a tensor type."""
    import tflite

    return _name_in(tflite.TensorType, number) or f"number {number}"


def unknown_operator(
    operator: FileOperator, where: str, custom: Sequence[str] = ()
) -> UnsupportedModelError:
    """Return the error for an operator that microtir lacks; `custom` are those of the user."""
    if operator.custom_name == _EDGE_TPU:
        return UnsupportedModelError(
            "the model is compiled for an Edge TPU, whose program no other processor runs",
            where=where,
            legal="models as they were before Google's edgetpu_compiler",
            fix="compile the file that edgetpu_compiler read, without '_edgetpu' in its name",
        )
    if operator.custom_name:
        return UnsupportedModelError(
            f"the custom operator {brief(operator.custom_name)!r} is not supported",
            where=where,
            legal=", ".join(("operators of the TFLite schema", *map(repr, custom))),
            fix=nearest(operator.custom_name, custom)
            or "convert the model with built-in operators only, or give the operator to "
            "from_tflite (docs/custom-operators.md)",
        )
    title = operator_title(operator)
    return UnsupportedModelError(
        f"the operator {title} is not supported",
        where=where,
        legal="the operators that `microtir operators` lists",
        fix=_ADVICE.get(title, "replace the layer, or compute it in the application"),
    )


def _name_in(names: type, number: int) -> str:
    return next((str(name) for name, value in vars(names).items() if value == number), "")
