"""The part of the TFLite file schema (version 3) that microtir writes: enums and option tables.

Numbers come from the public schema of the format.  Each option table is one frozen dataclass
with its fields in the order of the schema, so that the writer needs no generated code: a field's
type tells how it is stored.
"""

# Without postponed annotations: the writer reads the types of the fields.

from collections.abc import Mapping
from dataclasses import dataclass
from enum import IntEnum
from types import MappingProxyType
from typing import ClassVar

SCHEMA_VERSION = 3
FILE_IDENTIFIER = b"TFL3"


class TensorType(IntEnum):
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
    UINT32 = 15
    UINT16 = 16


class Padding(IntEnum):
    """How a windowed operator treats the border."""

    SAME = 0
    VALID = 1


class Activation(IntEnum):
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
    """Operator codes that the writer knows the option table and the versions of."""

    ADD = 0
    AVERAGE_POOL_2D = 1
    CONCATENATION = 2
    CONV_2D = 3
    DEPTHWISE_CONV_2D = 4
    DEQUANTIZE = 6
    FULLY_CONNECTED = 9
    LOGISTIC = 14
    MAX_POOL_2D = 17
    MUL = 18
    RELU = 19
    RELU_N1_TO_1 = 20
    RELU6 = 21
    RESHAPE = 22
    RESIZE_BILINEAR = 23
    SOFTMAX = 25
    TANH = 28
    PAD = 34
    GATHER = 36
    TRANSPOSE = 39
    MEAN = 40
    SUB = 41
    SQUEEZE = 43
    STRIDED_SLICE = 45
    SPLIT = 49
    LOG_SOFTMAX = 50
    CAST = 53
    MAXIMUM = 55
    MINIMUM = 57
    PADV2 = 60
    SLICE = 65
    EXPAND_DIMS = 70
    SHAPE = 77
    REDUCE_PROD = 81
    PACK = 83
    FLOOR_DIV = 90
    RESIZE_NEAREST_NEIGHBOR = 97
    LEAKY_RELU = 98
    QUANTIZE = 114
    HARD_SWISH = 117


@dataclass(frozen=True, slots=True)
class Options:
    """Base of the option tables, and the options of an operator that has no table.

    Attributes:
        union_type: number of the table in the union `BuiltinOptions`; 0 is no table.
        first_slot: FlatBuffer slot of the first field; the others follow in order.
    """

    union_type: ClassVar[int] = 0
    first_slot: ClassVar[int] = 0


@dataclass(frozen=True, slots=True)
class Conv2DOptions(Options):
    """Options of CONV_2D."""

    union_type: ClassVar[int] = 1
    padding: Padding = Padding.SAME
    stride_w: int = 1
    stride_h: int = 1
    activation: Activation = Activation.NONE
    dilation_w: int = 1
    dilation_h: int = 1
    quantized_bias_type: TensorType = TensorType.FLOAT32


@dataclass(frozen=True, slots=True)
class DepthwiseConv2DOptions(Options):
    """Options of DEPTHWISE_CONV_2D."""

    union_type: ClassVar[int] = 2
    padding: Padding = Padding.SAME
    stride_w: int = 1
    stride_h: int = 1
    depth_multiplier: int = 1
    activation: Activation = Activation.NONE
    dilation_w: int = 1
    dilation_h: int = 1


@dataclass(frozen=True, slots=True)
class Pool2DOptions(Options):
    """Options of AVERAGE_POOL_2D and MAX_POOL_2D."""

    union_type: ClassVar[int] = 5
    padding: Padding = Padding.SAME
    stride_w: int = 1
    stride_h: int = 1
    filter_w: int = 1
    filter_h: int = 1
    activation: Activation = Activation.NONE


@dataclass(frozen=True, slots=True)
class FullyConnectedOptions(Options):
    """Options of FULLY_CONNECTED."""

    union_type: ClassVar[int] = 8
    activation: Activation = Activation.NONE
    weights_format: WeightsFormat = WeightsFormat.DEFAULT
    keep_num_dims: bool = False
    asymmetric_quantize_inputs: bool = False
    quantized_bias_type: TensorType = TensorType.FLOAT32


@dataclass(frozen=True, slots=True)
class SoftmaxOptions(Options):
    """Options of SOFTMAX."""

    union_type: ClassVar[int] = 9
    beta: float = 1.0


@dataclass(frozen=True, slots=True)
class ConcatenationOptions(Options):
    """Options of CONCATENATION."""

    union_type: ClassVar[int] = 10
    axis: int = 0
    activation: Activation = Activation.NONE


@dataclass(frozen=True, slots=True)
class AddOptions(Options):
    """Options of ADD."""

    union_type: ClassVar[int] = 11
    activation: Activation = Activation.NONE
    pot_scale_int16: bool = True


@dataclass(frozen=True, slots=True)
class ResizeBilinearOptions(Options):
    """Options of RESIZE_BILINEAR; slots 0 and 1 of the table are deprecated."""

    union_type: ClassVar[int] = 15
    first_slot: ClassVar[int] = 2
    align_corners: bool = False
    half_pixel_centers: bool = False


@dataclass(frozen=True, slots=True)
class ReshapeOptions(Options):
    """Options of RESHAPE; an empty `new_shape` leaves the shape to the second input."""

    union_type: ClassVar[int] = 17
    new_shape: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class MulOptions(Options):
    """Options of MUL."""

    union_type: ClassVar[int] = 21
    activation: Activation = Activation.NONE


@dataclass(frozen=True, slots=True)
class PadOptions(Options):
    """Options of PAD (none)."""

    union_type: ClassVar[int] = 22


@dataclass(frozen=True, slots=True)
class GatherOptions(Options):
    """Options of GATHER."""

    union_type: ClassVar[int] = 23
    axis: int = 0
    batch_dims: int = 0


@dataclass(frozen=True, slots=True)
class TransposeOptions(Options):
    """Options of TRANSPOSE (none)."""

    union_type: ClassVar[int] = 26


@dataclass(frozen=True, slots=True)
class ReducerOptions(Options):
    """Options of MEAN and REDUCE_PROD."""

    union_type: ClassVar[int] = 27
    keep_dims: bool = False


@dataclass(frozen=True, slots=True)
class SubOptions(Options):
    """Options of SUB."""

    union_type: ClassVar[int] = 28
    activation: Activation = Activation.NONE
    pot_scale_int16: bool = True


@dataclass(frozen=True, slots=True)
class SqueezeOptions(Options):
    """Options of SQUEEZE; empty `squeeze_dims` removes every dimension of one."""

    union_type: ClassVar[int] = 30
    squeeze_dims: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class StridedSliceOptions(Options):
    """Options of STRIDED_SLICE; bit i of a mask speaks of dimension i."""

    union_type: ClassVar[int] = 32
    begin_mask: int = 0
    end_mask: int = 0
    ellipsis_mask: int = 0
    new_axis_mask: int = 0
    shrink_axis_mask: int = 0
    offset: bool = False


@dataclass(frozen=True, slots=True)
class SplitOptions(Options):
    """Options of SPLIT."""

    union_type: ClassVar[int] = 35
    num_splits: int = 1


@dataclass(frozen=True, slots=True)
class LogSoftmaxOptions(Options):
    """Options of LOG_SOFTMAX (none)."""

    union_type: ClassVar[int] = 36


@dataclass(frozen=True, slots=True)
class CastOptions(Options):
    """Options of CAST; readers take the types from the tensors."""

    union_type: ClassVar[int] = 37
    in_data_type: TensorType = TensorType.FLOAT32
    out_data_type: TensorType = TensorType.FLOAT32


@dataclass(frozen=True, slots=True)
class DequantizeOptions(Options):
    """Options of DEQUANTIZE (none)."""

    union_type: ClassVar[int] = 38


@dataclass(frozen=True, slots=True)
class MaximumMinimumOptions(Options):
    """Options of MAXIMUM and MINIMUM (none)."""

    union_type: ClassVar[int] = 39


@dataclass(frozen=True, slots=True)
class PadV2Options(Options):
    """Options of PADV2 (none)."""

    union_type: ClassVar[int] = 43


@dataclass(frozen=True, slots=True)
class SliceOptions(Options):
    """Options of SLICE (none)."""

    union_type: ClassVar[int] = 48


@dataclass(frozen=True, slots=True)
class ExpandDimsOptions(Options):
    """Options of EXPAND_DIMS (none)."""

    union_type: ClassVar[int] = 52


@dataclass(frozen=True, slots=True)
class ShapeOptions(Options):
    """Options of SHAPE; readers take the type from the output."""

    union_type: ClassVar[int] = 55
    out_type: TensorType = TensorType.INT32


@dataclass(frozen=True, slots=True)
class PackOptions(Options):
    """Options of PACK."""

    union_type: ClassVar[int] = 59
    values_count: int = 1
    axis: int = 0


@dataclass(frozen=True, slots=True)
class FloorDivOptions(Options):
    """Options of FLOOR_DIV (none)."""

    union_type: ClassVar[int] = 65


@dataclass(frozen=True, slots=True)
class ResizeNearestNeighborOptions(Options):
    """Options of RESIZE_NEAREST_NEIGHBOR."""

    union_type: ClassVar[int] = 74
    align_corners: bool = False
    half_pixel_centers: bool = False


@dataclass(frozen=True, slots=True)
class LeakyReluOptions(Options):
    """Options of LEAKY_RELU."""

    union_type: ClassVar[int] = 75
    alpha: float = 0.2


@dataclass(frozen=True, slots=True)
class QuantizeOptions(Options):
    """Options of QUANTIZE (none)."""

    union_type: ClassVar[int] = 89


@dataclass(frozen=True, slots=True)
class HardSwishOptions(Options):
    """Options of HARD_SWISH (none)."""

    union_type: ClassVar[int] = 91


OPTIONS_OF: Mapping[BuiltinOperator, type[Options]] = MappingProxyType(
    {
        BuiltinOperator.ADD: AddOptions,
        BuiltinOperator.AVERAGE_POOL_2D: Pool2DOptions,
        BuiltinOperator.CONCATENATION: ConcatenationOptions,
        BuiltinOperator.CONV_2D: Conv2DOptions,
        BuiltinOperator.DEPTHWISE_CONV_2D: DepthwiseConv2DOptions,
        BuiltinOperator.DEQUANTIZE: DequantizeOptions,
        BuiltinOperator.FULLY_CONNECTED: FullyConnectedOptions,
        BuiltinOperator.LOGISTIC: Options,
        BuiltinOperator.MAX_POOL_2D: Pool2DOptions,
        BuiltinOperator.MUL: MulOptions,
        BuiltinOperator.RELU: Options,
        BuiltinOperator.RELU_N1_TO_1: Options,
        BuiltinOperator.RELU6: Options,
        BuiltinOperator.RESHAPE: ReshapeOptions,
        BuiltinOperator.RESIZE_BILINEAR: ResizeBilinearOptions,
        BuiltinOperator.SOFTMAX: SoftmaxOptions,
        BuiltinOperator.TANH: Options,
        BuiltinOperator.PAD: PadOptions,
        BuiltinOperator.GATHER: GatherOptions,
        BuiltinOperator.TRANSPOSE: TransposeOptions,
        BuiltinOperator.MEAN: ReducerOptions,
        BuiltinOperator.SUB: SubOptions,
        BuiltinOperator.SQUEEZE: SqueezeOptions,
        BuiltinOperator.STRIDED_SLICE: StridedSliceOptions,
        BuiltinOperator.SPLIT: SplitOptions,
        BuiltinOperator.LOG_SOFTMAX: LogSoftmaxOptions,
        BuiltinOperator.CAST: CastOptions,
        BuiltinOperator.MAXIMUM: MaximumMinimumOptions,
        BuiltinOperator.MINIMUM: MaximumMinimumOptions,
        BuiltinOperator.PADV2: PadV2Options,
        BuiltinOperator.SLICE: SliceOptions,
        BuiltinOperator.EXPAND_DIMS: ExpandDimsOptions,
        BuiltinOperator.SHAPE: ShapeOptions,
        BuiltinOperator.REDUCE_PROD: ReducerOptions,
        BuiltinOperator.PACK: PackOptions,
        BuiltinOperator.FLOOR_DIV: FloorDivOptions,
        BuiltinOperator.RESIZE_NEAREST_NEIGHBOR: ResizeNearestNeighborOptions,
        BuiltinOperator.LEAKY_RELU: LeakyReluOptions,
        BuiltinOperator.QUANTIZE: QuantizeOptions,
        BuiltinOperator.HARD_SWISH: HardSwishOptions,
    }
)
"""Option table of each operator."""
