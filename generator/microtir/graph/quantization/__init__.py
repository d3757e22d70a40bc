"""Integer parameters of quantised operators, exactly as tflite-micro derives them.

The numpy reference and the lowering both take their parameters from here, so that no constant is
derived twice.  Scales are float32 values held in Python floats.  Multipliers are computed in
double; what a clamp or QUANTIZE divides by a scale is a float32 quotient.

Builds of tflite-micro before autumn 2026 rounded the factors of RELU, LEAKY_RELU, HARD_SWISH, SUB
and FULLY_CONNECTED with one weight scale to float32: multipliers that differ by up to 2^-25 of
their value, and results by one where they fall on a tie.  The build that the tests pin decides.
"""

from microtir.graph.quantization.elementwise import (
    ADD_LEFT_SHIFT,
    SIGMOID_INTEGER_BITS,
    AddParams,
    HardSwishParams,
    LeakyReluParams,
    MulParams,
    QuantizeParams,
    ReluParams,
    RequantizeParams,
    SigmoidParams,
    add_params,
    hard_swish_params,
    leaky_relu_params,
    mul_params,
    quantize_params,
    relu_params,
    requantize_params,
    sigmoid_params,
)
from microtir.graph.quantization.linear import (
    LinearParams,
    MeanParams,
    PoolParams,
    conv_params,
    fully_connected_params,
    mean_params,
    pool_params,
)
from microtir.graph.quantization.multiplier import (
    QuantizedMultiplier,
    activation_range,
    per_channel_multipliers,
    quantize_multiplier,
    quantize_value,
)
from microtir.graph.quantization.resize import (
    BILINEAR_BITS,
    BilinearAxis,
    BilinearAxisFloat,
    bilinear_axis,
    bilinear_axis_float,
    nearest_indices,
)
from microtir.graph.quantization.softmax import (
    DIFFERENCE_INTEGER_BITS,
    LOG_OUTPUT_INTEGER_BITS,
    SUM_INTEGER_BITS,
    LogSoftmaxParams,
    SoftmaxParams,
    log_softmax_params,
    softmax_params,
)
from microtir.graph.quantization.tables import has_table, lookup_table

__all__ = [
    "ADD_LEFT_SHIFT", "BILINEAR_BITS", "DIFFERENCE_INTEGER_BITS", "LOG_OUTPUT_INTEGER_BITS",
    "SIGMOID_INTEGER_BITS", "SUM_INTEGER_BITS", "AddParams", "BilinearAxis", "BilinearAxisFloat",
    "HardSwishParams", "LeakyReluParams", "LinearParams", "LogSoftmaxParams", "MeanParams",
    "MulParams", "PoolParams", "QuantizeParams", "QuantizedMultiplier", "ReluParams",
    "RequantizeParams", "SigmoidParams", "SoftmaxParams", "activation_range", "add_params",
    "bilinear_axis", "bilinear_axis_float", "conv_params", "fully_connected_params",
    "hard_swish_params", "has_table", "leaky_relu_params", "log_softmax_params", "lookup_table",
    "mean_params", "mul_params", "nearest_indices", "per_channel_multipliers", "pool_params",
    "quantize_multiplier", "quantize_params", "quantize_value", "relu_params",
    "requantize_params", "sigmoid_params", "softmax_params",
]  # fmt: skip
