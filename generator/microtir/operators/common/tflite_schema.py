"""Declare what readers of TFLite operators need of the file's schema (version 3)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import IntEnum
from functools import cache
from types import MappingProxyType
from typing import Any, ClassVar, get_type_hints


class TfliteType(IntEnum):
    """Element types of tensors."""

    FLOAT32 = 0
    FLOAT16 = 1
    INT32 = 2
    UINT8 = 3
    INT64 = 4
    BOOL = 6
    INT16 = 7
    INT8 = 9
    FLOAT64 = 10
    UINT64 = 12
    RESOURCE = 13
    UINT32 = 15
    UINT16 = 16
    INT4 = 17


class Padding(IntEnum):
    """The treatment of the border by a windowed operator."""

    SAME = 0
    VALID = 1


class TfliteActivation(IntEnum):
    """Activation fused into an operator."""

    NONE = 0
    RELU = 1
    RELU_N1_TO_1 = 2
    RELU6 = 3
    TANH = 4
    SIGN_BIT = 5


class WeightsFormat(IntEnum):
    """Order of the weights of a FULLY_CONNECTED operator."""

    DEFAULT = 0
    SHUFFLED_4X16_INT8 = 1


class BuiltinOperator(IntEnum):
    """Operator codes of the schema.

    Attributes:
        table: number of its table of options in the union `BuiltinOptions`; 0 is no table.
        table_name: of it in the schema.
    """

    table: int
    table_name: str

    def __new__(cls, code: int, table: int = 0, table_name: str = "") -> BuiltinOperator:
        member = int.__new__(cls, code)
        member._value_, member.table, member.table_name = code, table, table_name
        return member

    ADD = 0, 11, "AddOptions"
    AVERAGE_POOL_2D = 1, 5, "Pool2DOptions"
    CONCATENATION = 2, 10, "ConcatenationOptions"
    CONV_2D = 3, 1, "Conv2DOptions"
    DEPTHWISE_CONV_2D = 4, 2, "DepthwiseConv2DOptions"
    DEPTH_TO_SPACE = 5, 94, "DepthToSpaceOptions"
    DEQUANTIZE = 6, 38, "DequantizeOptions"
    EMBEDDING_LOOKUP = 7
    FLOOR = 8
    FULLY_CONNECTED = 9, 8, "FullyConnectedOptions"
    HASHTABLE_LOOKUP = 10
    L2_NORMALIZATION = 11, 12, "L2NormOptions"
    L2_POOL_2D = 12, 5, "Pool2DOptions"
    LOCAL_RESPONSE_NORMALIZATION = 13
    LOGISTIC = 14
    LSH_PROJECTION = 15
    LSTM = 16
    MAX_POOL_2D = 17, 5, "Pool2DOptions"
    MUL = 18, 21, "MulOptions"
    RELU = 19
    RELU_N1_TO_1 = 20
    RELU6 = 21
    RESHAPE = 22, 17, "ReshapeOptions"
    RESIZE_BILINEAR = 23, 15, "ResizeBilinearOptions"
    RNN = 24
    SOFTMAX = 25, 9, "SoftmaxOptions"
    SPACE_TO_DEPTH = 26, 19, "SpaceToDepthOptions"
    SVDF = 27, 6, "SVDFOptions"
    TANH = 28
    CONCAT_EMBEDDINGS = 29
    SKIP_GRAM = 30
    CALL = 31
    CUSTOM = 32
    EMBEDDING_LOOKUP_SPARSE = 33
    PAD = 34, 22, "PadOptions"
    UNIDIRECTIONAL_SEQUENCE_RNN = 35
    GATHER = 36, 23, "GatherOptions"
    BATCH_TO_SPACE_ND = 37, 24, "BatchToSpaceNDOptions"
    SPACE_TO_BATCH_ND = 38, 25, "SpaceToBatchNDOptions"
    TRANSPOSE = 39, 26, "TransposeOptions"
    MEAN = 40, 27, "ReducerOptions"
    SUB = 41, 28, "SubOptions"
    DIV = 42, 29, "DivOptions"
    SQUEEZE = 43, 30, "SqueezeOptions"
    UNIDIRECTIONAL_SEQUENCE_LSTM = 44, 71, "UnidirectionalSequenceLSTMOptions"
    STRIDED_SLICE = 45, 32, "StridedSliceOptions"
    BIDIRECTIONAL_SEQUENCE_RNN = 46
    EXP = 47, 33, "ExpOptions"
    TOPK_V2 = 48, 34, "TopKV2Options"
    SPLIT = 49, 35, "SplitOptions"
    LOG_SOFTMAX = 50, 36, "LogSoftmaxOptions"
    DELEGATE = 51
    BIDIRECTIONAL_SEQUENCE_LSTM = 52
    CAST = 53, 37, "CastOptions"
    PRELU = 54
    MAXIMUM = 55, 39, "MaximumMinimumOptions"
    ARG_MAX = 56, 40, "ArgMaxOptions"
    MINIMUM = 57, 39, "MaximumMinimumOptions"
    LESS = 58, 41, "LessOptions"
    NEG = 59, 42, "NegOptions"
    PADV2 = 60, 43, "PadV2Options"
    GREATER = 61, 44, "GreaterOptions"
    GREATER_EQUAL = 62, 45, "GreaterEqualOptions"
    LESS_EQUAL = 63, 46, "LessEqualOptions"
    SELECT = 64, 47, "SelectOptions"
    SLICE = 65, 48, "SliceOptions"
    SIN = 66
    TRANSPOSE_CONV = 67, 49, "TransposeConvOptions"
    SPARSE_TO_DENSE = 68
    TILE = 69, 51, "TileOptions"
    EXPAND_DIMS = 70, 52, "ExpandDimsOptions"
    EQUAL = 71, 53, "EqualOptions"
    NOT_EQUAL = 72, 54, "NotEqualOptions"
    LOG = 73
    SUM = 74, 27, "ReducerOptions"
    SQRT = 75
    RSQRT = 76
    SHAPE = 77, 55, "ShapeOptions"
    POW = 78, 56, "PowOptions"
    ARG_MIN = 79, 57, "ArgMinOptions"
    FAKE_QUANT = 80
    REDUCE_PROD = 81, 27, "ReducerOptions"
    REDUCE_MAX = 82, 27, "ReducerOptions"
    PACK = 83, 59, "PackOptions"
    LOGICAL_OR = 84, 60, "LogicalOrOptions"
    ONE_HOT = 85
    LOGICAL_AND = 86, 62, "LogicalAndOptions"
    LOGICAL_NOT = 87, 63, "LogicalNotOptions"
    UNPACK = 88, 64, "UnpackOptions"
    REDUCE_MIN = 89, 27, "ReducerOptions"
    FLOOR_DIV = 90, 65, "FloorDivOptions"
    REDUCE_ANY = 91, 27, "ReducerOptions"
    SQUARE = 92, 66, "SquareOptions"
    ZEROS_LIKE = 93, 67, "ZerosLikeOptions"
    FILL = 94, 68, "FillOptions"
    FLOOR_MOD = 95, 72, "FloorModOptions"
    RANGE = 96, 73, "RangeOptions"
    RESIZE_NEAREST_NEIGHBOR = 97, 74, "ResizeNearestNeighborOptions"
    LEAKY_RELU = 98, 75, "LeakyReluOptions"
    SQUARED_DIFFERENCE = 99, 76, "SquaredDifferenceOptions"
    MIRROR_PAD = 100, 77, "MirrorPadOptions"
    ABS = 101, 78, "AbsOptions"
    SPLIT_V = 102, 79, "SplitVOptions"
    UNIQUE = 103
    CEIL = 104
    REVERSE_V2 = 105, 81, "ReverseV2Options"
    ADD_N = 106, 82, "AddNOptions"
    GATHER_ND = 107, 83, "GatherNdOptions"
    COS = 108, 84, "CosOptions"
    WHERE = 109, 85, "WhereOptions"
    RANK = 110, 86, "RankOptions"
    ELU = 111
    REVERSE_SEQUENCE = 112
    MATRIX_DIAG = 113
    QUANTIZE = 114, 89, "QuantizeOptions"
    MATRIX_SET_DIAG = 115
    ROUND = 116
    HARD_SWISH = 117, 91, "HardSwishOptions"
    IF = 118, 92, "IfOptions"
    WHILE = 119, 93, "WhileOptions"
    NON_MAX_SUPPRESSION_V4 = 120, 95, "NonMaxSuppressionV4Options"
    NON_MAX_SUPPRESSION_V5 = 121, 96, "NonMaxSuppressionV5Options"
    SCATTER_ND = 122, 97, "ScatterNdOptions"
    SELECT_V2 = 123, 98, "SelectV2Options"
    DENSIFY = 124, 99, "DensifyOptions"
    SEGMENT_SUM = 125
    BATCH_MATMUL = 126, 101, "BatchMatMulOptions"
    PLACEHOLDER_FOR_GREATER_OP_CODES = 127
    CUMSUM = 128, 102, "CumsumOptions"
    CALL_ONCE = 129, 103, "CallOnceOptions"
    BROADCAST_TO = 130, 104, "BroadcastToOptions"
    RFFT2D = 131
    CONV_3D = 132, 106, "Conv3DOptions"
    IMAG = 133
    REAL = 134
    COMPLEX_ABS = 135
    HASHTABLE = 136
    HASHTABLE_FIND = 137
    HASHTABLE_IMPORT = 138
    HASHTABLE_SIZE = 139
    REDUCE_ALL = 140, 27, "ReducerOptions"
    CONV_3D_TRANSPOSE = 141
    VAR_HANDLE = 142, 111, "VarHandleOptions"
    READ_VARIABLE = 143, 112, "ReadVariableOptions"
    ASSIGN_VARIABLE = 144, 113, "AssignVariableOptions"
    BROADCAST_ARGS = 145
    RANDOM_STANDARD_NORMAL = 146
    BUCKETIZE = 147
    RANDOM_UNIFORM = 148
    MULTINOMIAL = 149
    GELU = 150, 116, "GeluOptions"
    DYNAMIC_UPDATE_SLICE = 151, 117, "DynamicUpdateSliceOptions"
    RELU_0_TO_1 = 152
    UNSORTED_SEGMENT_PROD = 153
    UNSORTED_SEGMENT_MAX = 154
    UNSORTED_SEGMENT_SUM = 155
    ATAN2 = 156, 122, "ATan2Options"
    UNSORTED_SEGMENT_MIN = 157
    SIGN = 158, 123, "SignOptions"
    BITCAST = 159
    BITWISE_XOR = 160
    RIGHT_SHIFT = 161
    STABLEHLO_LOGISTIC = 162
    STABLEHLO_ADD = 163
    STABLEHLO_DIVIDE = 164
    STABLEHLO_MULTIPLY = 165
    STABLEHLO_MAXIMUM = 166
    STABLEHLO_RESHAPE = 167
    STABLEHLO_CLAMP = 168
    STABLEHLO_CONCATENATE = 169
    STABLEHLO_BROADCAST_IN_DIM = 170
    STABLEHLO_CONVOLUTION = 171
    STABLEHLO_SLICE = 172
    STABLEHLO_CUSTOM_CALL = 173
    STABLEHLO_REDUCE = 174
    STABLEHLO_ABS = 175
    STABLEHLO_AND = 176
    STABLEHLO_COSINE = 177
    STABLEHLO_EXPONENTIAL = 178
    STABLEHLO_FLOOR = 179
    STABLEHLO_LOG = 180
    STABLEHLO_MINIMUM = 181
    STABLEHLO_NEGATE = 182
    STABLEHLO_OR = 183
    STABLEHLO_POWER = 184
    STABLEHLO_REMAINDER = 185
    STABLEHLO_RSQRT = 186
    STABLEHLO_SELECT = 187
    STABLEHLO_SUBTRACT = 188
    STABLEHLO_TANH = 189
    STABLEHLO_SCATTER = 190
    STABLEHLO_COMPARE = 191
    STABLEHLO_CONVERT = 192
    STABLEHLO_DYNAMIC_SLICE = 193
    STABLEHLO_DYNAMIC_UPDATE_SLICE = 194
    STABLEHLO_PAD = 195
    STABLEHLO_IOTA = 196
    STABLEHLO_DOT_GENERAL = 197
    STABLEHLO_REDUCE_WINDOW = 198
    STABLEHLO_SORT = 199
    STABLEHLO_WHILE = 200
    STABLEHLO_GATHER = 201
    STABLEHLO_TRANSPOSE = 202
    DILATE = 203
    STABLEHLO_RNG_BIT_GENERATOR = 204
    REDUCE_WINDOW = 205
    STABLEHLO_COMPOSITE = 206
    STABLEHLO_SHIFT_LEFT = 207
    STABLEHLO_CBRT = 208


@dataclass(frozen=True, slots=True)
class Options:
    """Base of the option tables, and the options of an operator whose table has no fields.

    Attributes:
        first_slot: FlatBuffer slot of the first field; the others follow in order.
    """

    first_slot: ClassVar[int] = 0


@dataclass(frozen=True, slots=True)
class FusedOptions(Options):
    """Options of operators that have a fused activation alone."""

    activation: TfliteActivation = TfliteActivation.NONE


@cache
def types_of(kind: type[Options]) -> Mapping[str, Any]:
    """Return the annotations of a class; resolving them takes longer than reading a table."""
    return MappingProxyType(get_type_hints(kind))
