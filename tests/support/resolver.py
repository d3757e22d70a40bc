"""Operators of tflite-micro's resolver with the types that its reference kernels take.

Types are those of the first input that is no index, as cases of operators have them; WEIGHTS4
stands for int8 with weights of four bits.  They were found by asking the wheel.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

WEIGHTS4 = "int4"

_F = ("float32",)
_B = ("bool",)
_F8 = ("float32", "int8")
_F816 = (*_F8, "int16")
_F832 = (*_F8, "int32")
_MOVED = (*_F816, "int32")
_COMPARED = (*_F832, "int64")
_ALL = ("float32", "int8", "int16", "int32", "int64", "uint8", "uint32", "bool")


def _of(types: tuple[str, ...], names: str) -> dict[str, tuple[str, ...]]:
    return dict.fromkeys(names.split(), types)


BUILT_IN: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        **_of((*_F816, WEIGHTS4), "CONV_2D DEPTHWISE_CONV_2D FULLY_CONNECTED"),
        **_of(_F816, "TRANSPOSE_CONV BATCH_MATMUL UNIDIRECTIONAL_SEQUENCE_LSTM"),
        **_of(_F8, "SVDF EMBEDDING_LOOKUP"),
        **_of(_MOVED, "ADD SUB MUL SQUARED_DIFFERENCE"),
        **_of((*_MOVED, "int64"), "MINIMUM MAXIMUM"),
        **_of(_F832, "DIV"),
        **_of(_F8, "ADD_N ELU HARD_SWISH LOG_SOFTMAX L2_NORMALIZATION CUMSUM"),
        **_of(_F816, "ABS RSQRT RELU RELU6 LEAKY_RELU PRELU LOGISTIC TANH SOFTMAX"),
        **_of(_F, "NEG SQRT SIN COS LOG EXP SQUARE ROUND CEIL FLOOR FLOOR_DIV FLOOR_MOD"),
        **_of((*_COMPARED, "bool"), "EQUAL NOT_EQUAL"),
        **_of(_COMPARED, "GREATER GREATER_EQUAL LESS LESS_EQUAL ZEROS_LIKE"),
        **_of(_B, "LOGICAL_AND LOGICAL_OR LOGICAL_NOT REDUCE_ALL"),
        **_of(_F816, "SELECT_V2 MEAN SUM AVERAGE_POOL_2D MAX_POOL_2D"),
        **_of(_F8, "REDUCE_MAX REDUCE_MIN ARG_MAX ARG_MIN RESIZE_BILINEAR"),
        **_of(_F816, "RESIZE_NEAREST_NEIGHBOR EXPAND_DIMS TRANSPOSE"),
        **_of(_F, "L2_POOL_2D"),
        **_of((*_MOVED, "uint32", "bool"), "CAST"),
        **_of((*_MOVED, "uint8"), "QUANTIZE"),
        **_of(("int8", "int16", "uint8"), "DEQUANTIZE"),
        **_of((*_MOVED, "int64", "bool"), "CONCATENATION"),
        **_of((*_MOVED, "int64"), "PACK"),
        **_of(_MOVED, "UNPACK SPLIT SPLIT_V PAD PADV2 DYNAMIC_UPDATE_SLICE"),
        **_of((*_MOVED, "bool"), "SLICE STRIDED_SLICE"),
        **_of(_F8, "GATHER GATHER_ND MIRROR_PAD DEPTH_TO_SPACE SPACE_TO_DEPTH"),
        **_of(_F8, "BATCH_TO_SPACE_ND SPACE_TO_BATCH_ND"),
        **_of(_ALL, "RESHAPE SQUEEZE BROADCAST_TO SHAPE"),
        **_of((*_MOVED, "int64", "uint8", "bool"), "REVERSE_V2"),
        **_of(("int32", "int64"), "BROADCAST_ARGS"),
        **_of(_F832, "FILL"),
        **_of(_B, "IF WHILE"),
        **_of(_F816, "ASSIGN_VARIABLE READ_VARIABLE"),
        **_of((), "CALL_ONCE VAR_HANDLE"),
    }
)
"""The built-in operators: all that the resolver of the wheel knows."""


CUSTOM: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "CIRCULAR_BUFFER": ("int8",),
        "TFLM_DECODE": (*_MOVED, "int64", "bool"),
        "TFLite_Detection_PostProcess": _F,
        "ethos-u": (),  # an empty entry without that hardware
        **_of(("int16",), "SignalWindow SignalFramer SignalStacker SignalDelay"),
        **_of(("int16",), "SignalFftAutoScale SignalEnergy"),
        "SignalOverlapAdd": ("float32", "int16"),
        **_of(("float32", "int16", "int32"), "SignalRfft SignalIrfft"),
        **_of(("uint32",), "SignalFilterBank SignalFilterBankSpectralSubtraction SignalPCAN"),
        "SignalFilterBankSquareRoot": ("uint64",),
        "SignalFilterBankLog": ("uint32",),
    }
)
"""The custom operators."""
