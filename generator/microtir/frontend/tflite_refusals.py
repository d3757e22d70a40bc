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

_DYNAMIC = "convert the model with a fixed batch and fixed shapes, so that it computes no shapes"
_STATE = "convert a model without state"
_RECURRENT = "unroll the recurrent layer, or use convolutions over time"
_CONTROL = "convert the model without control flow and with a single signature"
_HOST = "leave the operator out of the model and do its work in the application"

_ADVICE: Mapping[str, str] = MappingProxyType(
    {
        "ARG_MAX": _HOST,
        "ARG_MIN": _HOST,
        "ASSIGN_VARIABLE": _STATE,
        "BATCH_MATMUL": "use fully connected layers with constant weights",
        "CALL_ONCE": _CONTROL,
        "CONV_3D": "use two-dimensional convolutions",
        "DIV": "multiply by the reciprocal",
        "ELU": "use RELU, LEAKY_RELU or HARD_SWISH",
        "FILL": _DYNAMIC,
        "IF": _CONTROL,
        "L2_POOL_2D": "use AVERAGE_POOL_2D or MAX_POOL_2D",
        "MIRROR_PAD": "pad with a constant (PAD)",
        "PACK": "use EXPAND_DIMS and CONCATENATION; " + _DYNAMIC,
        "READ_VARIABLE": _STATE,
        "PRELU": "use RELU or LEAKY_RELU",
        "REDUCE_MAX": "use MAX_POOL_2D over the whole image",
        "SHAPE": _DYNAMIC,
        "SPLIT_V": "use SLICE for unequal parts",
        "SQUARE": "multiply the tensor by itself (MUL)",
        "SUM": "use MEAN and a multiplication by the number of elements",
        "SVDF": "use a depthwise convolution over time",
        "TRANSPOSE_CONV": "use RESIZE_NEAREST_NEIGHBOR or RESIZE_BILINEAR and a convolution",
        "UNIDIRECTIONAL_SEQUENCE_LSTM": _RECURRENT,
        "UNPACK": "use SPLIT and SQUEEZE",
        "VAR_HANDLE": _STATE,
        "WHILE": _CONTROL,
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
