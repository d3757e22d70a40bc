"""Faults to plant in correct kernels: small patches, each of a kind that was reported in public."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Fault:
    """A patch of `kernels.c`.

    Args:
        what: the fault in words.
        report: repository and number of a public report of that kind.
        function: the function that it breaks, in the interface of CMSIS-NN or ESP-NN.
        old: text that stands once in the file.
        new: what replaces it, at most five lines.
    """

    what: str
    report: str
    function: str
    old: str
    new: str


CONVOLVE, DEPTHWISE = "arm_convolve_wrapper_s8", "arm_depthwise_conv_s8"
DENSE, SOFTMAX = "arm_fully_connected_per_channel_s8", "arm_softmax_s8"
AVERAGE, LARGEST = "arm_avgpool_s8", "arm_max_pool_s8"
ADD, MUL = "arm_elementwise_add_s8", "arm_elementwise_mul_s8"
ESP_CONVOLVE, ESP_DENSE = "esp_nn_conv_s8", "esp_nn_fully_connected_per_ch_s8"

FAULTS = (
    Fault(
        "an odd output channel is left out",
        "espressif/esp-nn#23",
        ESP_CONVOLVE,
        "            if (c < l->out.c) {",
        "            if (c + 1 < l->out.c) {",
    ),
    Fault(
        "the last elements of a row are left out if its length is not a multiple of four",
        "espressif/esp-nn#34",
        ESP_DENSE,
        "    for (; i < count; i++) {",
        "    for (; i + 4 < count; i++) {",
    ),
    Fault(
        "a row is read up to a multiple of four, so that results depend on other memory",
        "espressif/esp-nn#34",
        ESP_DENSE,
        "    for (; i < count; i++) {",
        "    for (; i < (count + 3) / 4 * 4; i++) {",
    ),
    Fault(
        "one row below the image is read",
        "espressif/esp-nn#31",
        ESP_CONVOLVE,
        "y < l->in.h && z >= 0",
        "y <= l->in.h && z >= 0",
    ),
    Fault(
        "scratch memory is too small if the paddings of two sides differ",
        "espressif/esp-nn#30",
        ESP_CONVOLVE,
        "    return taps_of(l);",
        "    return taps_of(l) - (l->pad_h != l->pad_w ? l->in.c : 0);",
    ),
    Fault(
        "filling the padding writes beyond the end of the scratch memory",
        "espressif/esp-nn#8",
        ESP_CONVOLVE,
        "memset(patch, l->in_zero, (size_t)l->in.c);",
        "memset(patch, l->in_zero, (size_t)l->in.c + 1);",
    ),
    Fault(
        "padding is not filled, so that results depend on old memory",
        "espressif/esp-tflite-micro#67",
        ESP_CONVOLVE,
        "memset(patch, l->in_zero, (size_t)l->in.c);",
        ";",
    ),
    Fault(
        "padding is 0 instead of the zero point",
        "apache/tvm#4807",
        CONVOLVE,
        "memset(patch, l->in_zero,",
        "memset(patch, 0,",
    ),
    Fault(
        "the zero point is added where a window leaves the image",
        "apache/tvm#13364",
        DEPTHWISE,
        "weights[j * l->out.c + c];\n            }",
        "weights[j * l->out.c + c];\n            } else {\n"
        "                sum -= l->in_zero * weights[j * l->out.c + c];\n            }",
    ),
    Fault(
        "the last pixel is left out if the number of pixels is odd",
        "ARM-software/CMSIS_5#1168",
        CONVOLVE,
        "for (int32_t i = 0; i < l->out.h * l->out.w; i++) {\n            copy_patch",
        "for (int32_t i = 0; i < (l->out.h * l->out.w & ~1); i++) {\n            copy_patch",
    ),
    Fault(
        "the padding of rows is used for columns",
        "ARM-software/CMSIS-NN#190",
        CONVOLVE,
        "row * l->stride_h - l->pad_h + i",
        "row * l->stride_h - l->pad_w + i",
    ),
    Fault(
        "dilation is ignored",
        "ARM-software/CMSIS_5#927",
        CONVOLVE,
        "i * l->dilation_h",
        "i",
    ),
    Fault(
        "a missing bias is read",
        "ARM-software/CMSIS_5#920",
        DENSE,
        "return l->bias != NULL ? l->bias[c] : 0;",
        "return l->bias[c];",
    ),
    Fault(
        "the output of the first batch is overwritten",
        "ARM-software/CMSIS_5#880",
        DENSE,
        "y[n * l->out.c + c] =",
        "y[c] =",
    ),
    Fault(
        "the bias is selected by the batch instead of the channel",
        "kraiskil/onnx2c#7",
        DENSE,
        "finish(l, bias_of(l, c) + sum, c);",
        "finish(l, bias_of(l, n % l->out.c) + sum, c);",
    ),
    Fault(
        "the input advances twice from the third batch on",
        "ARM-software/CMSIS_5#708",
        CONVOLVE,
        "const int8_t *image = &x[n * l->in.h * l->in.w * l->in.c];",
        "const int8_t *image = x += n * l->in.h * l->in.w * l->in.c;",
    ),
    Fault(
        "all batches but the first are dropped",
        "tensorflow/tflite-micro#3584",
        AVERAGE,
        "const int32_t pixels = l->out.n * l->out.h",
        "const int32_t pixels = l->out.h",
    ),
    Fault(
        "an accumulator of 16 bits overflows",
        "pytorch/pytorch#76390",
        CONVOLVE,
        "    int32_t sum = 0;\n    int32_t i = 0;",
        "    int16_t sum = 0;\n    int32_t i = 0;",
    ),
    Fault(
        "a sum over a large window overflows 16 bits",
        "ARM-software/CMSIS_5#993",
        AVERAGE,
        "            int32_t sum = 0;\n            const int32_t count",
        "            int16_t sum = 0;\n            const int32_t count",
    ),
    Fault(
        "negative averages are rounded like positive averages",
        "ARM-software/ML-KWS-for-MCU#103",
        AVERAGE,
        "(sum > 0 ? sum + count / 2 : sum - count / 2) / count",
        "(sum + count / 2) / count",
    ),
    Fault(
        "averages are not clamped",
        "ARM-software/ML-KWS-for-MCU#103",
        AVERAGE,
        "*y++ = clamp(l, sum);",
        "*y++ = (int8_t)sum;",
    ),
    Fault(
        "padding is included in an average",
        "pytorch/executorch#13576",
        AVERAGE,
        "const int32_t count = (p.bottom - p.top) * (p.right - p.left);",
        "const int32_t count = l->window.h * l->window.w;",
    ),
    Fault(
        "the maximum of negative elements is 0",
        "Oneflow-Inc/oneflow#791",
        LARGEST,
        "memset(pixel, -128,",
        "memset(pixel, 0,",
    ),
    Fault(
        "maxima are not clamped from below",
        "ARM-software/CMSIS_5#1131",
        LARGEST,
        "pixel[c] = clamp(l, pixel[c]);",
        "pixel[c] = pixel[c] > l->high ? (int8_t)l->high : pixel[c];",
    ),
    Fault(
        "maxima are stored up to a multiple of four channels",
        "ARM-software/CMSIS_5#1092",
        LARGEST,
        "c < l->in.c; c++) {\n                    pixel[c] = from",
        "c < (l->in.c + 3) / 4 * 4; c++) {\n                    pixel[c] = from",
    ),
    Fault(
        "windows of an even width are one element too wide",
        "ARM-software/ComputeLibrary#78",
        LARGEST,
        "col + l->window.w}",
        "col + (l->window.w | 1)}",
    ),
    Fault(
        "the output of softmax is always written to the first row",
        "ARM-software/CMSIS_5#1441",
        SOFTMAX,
        "row++, x += width, y += width)",
        "row++, x += width)",
    ),
    Fault(
        "sums are rounded once, not twice",
        "tensorflow/tensorflow#25087",
        CONVOLVE,
        "    return divide_by_power(high_product(value * (1 << left), multiplier), right);",
        "    const int32_t all = 31 + right - left;\n"
        "    return (int32_t)(((int64_t)value * multiplier + ((int64_t)1 << (all - 1))) >> all);",
    ),
    Fault(
        "negative values halfway between two integers are rounded up",
        "pytorch/pytorch#37343",
        ADD,
        "(mask >> 1) + (value < 0)",
        "(mask >> 1)",
    ),
    Fault(
        "an operand is rescaled before it is shifted to the left",
        "tensorflow/tensorflow#59859",
        ADD,
        "scale((x0[i] - a.zero) * (1 << left), a.multiplier, a.shift)",
        "scale(x0[i] - a.zero, a.multiplier, a.shift) * (1 << left)",
    ),
    Fault(
        "with a depth multiplier the factor of a wrong channel is used",
        "qualcomm/aimet#1223",
        DEPTHWISE,
        "y[i] = finish(l, sum, c);",
        "y[i] = finish(l, sum, c / l->window.n);",
    ),
    Fault(
        "output channels read input channels in the wrong order",
        "ARM-software/ComputeLibrary#553",
        DEPTHWISE,
        "l->in.c + c / l->window.n",
        "l->in.c + c % l->in.c",
    ),
    Fault(
        "the shift of the previous channel is used",
        "VeriSilicon/TIM-VX#136",
        CONVOLVE,
        "l->shifts[c]",
        "l->shifts[c > 0 ? c - 1 : 0]",
    ),
    Fault(
        "four weights are read as a word from any address",
        "ARM-software/CMSIS_5#1031",
        DENSE,
        "            sum += (x[j] - zero) * w[j];",
        "            const uint32_t word = *(const uint32_t *)(const void *)&w[i];\n"
        "            sum += (x[j] - zero) * (int8_t)(word >> 8 * (j - i));",
    ),
    Fault(
        "the difference of an element and its zero point is stored in 8 bits",
        "google/XNNPACK#8647",
        MUL,
        "(x0[i] - a.zero) * (x1[i] - b.zero)",
        "(int8_t)(x0[i] - a.zero) * (x1[i] - b.zero)",
    ),
    Fault(
        "the zero point of the second operand is ignored",
        "tensorflow/tflite-micro#960",
        MUL,
        "(x0[i] - a.zero) * (x1[i] - b.zero)",
        "(x0[i] - a.zero) * x1[i]",
    ),
)
