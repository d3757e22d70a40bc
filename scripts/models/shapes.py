"""`python -m scripts.models.shapes FOLDER`: networks of the shapes that microcontrollers run.

Each is a function without arguments that gives a model file, known by its name in `SHAPES`.  Layers
and sizes are those of publications and benchmarks (MLPerf Tiny, MobileNet v1 and v2, DS-CNN of
"Hello Edge", person detection of tflite-micro's examples); weights are random, none was trained.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from types import MappingProxyType

import numpy as np

from microtir.operators.activations.tflite import GeluOptions
from microtir.operators.common.tflite_schema import BuiltinOperator
from microtir.operators.matmul.tflite import BatchMatMulOptions
from microtir.operators.reduction.tflite import ReducerOptions
from microtir.operators.softmax.tflite import SoftmaxOptions
from scripts.models.keyword_spotter import TimePadding, keyword_spotter
from scripts.models.networks import CHANCES, HIDDEN, RELU, Network
from scripts.models.recurrent import Kind, lstm, svdf

_Code = BuiltinOperator


def _network() -> Network:
    return Network(np.random.default_rng(0))


def autoencoder(inputs: int, hidden: int, code: int, depth: int) -> bytes:
    """Return dense layers that become narrow and wide again: what ad01 of MLPerf Tiny is."""
    net = _network()
    x = y = net.activation((1, inputs))
    for units in (*[hidden] * depth, code, *[hidden] * depth, inputs):
        y = net.dense(y, units)
    return net.file(x, y)


def ds_cnn(channels: int, blocks: int) -> bytes:
    """Return a keyword spotter over 49 frames of 10 features."""
    net = _network()
    x = net.activation((1, 49, 10, 1))
    y = net.conv(x, channels, (10, 4), 2)
    for _ in range(blocks):
        y = net.separable(y, channels)
    return net.file(x, net.classifier(net.mean(y), 12))


def resnet8(widths: tuple[int, int, int] = (16, 32, 64)) -> bytes:
    """Return three residual blocks over 32x32x3."""
    net = _network()
    x = net.activation((1, 32, 32, 3))
    y = net.conv(x, widths[0])
    for number, width in enumerate(widths):
        stride = 2 if number else 1
        inner = net.conv(net.conv(y, width, 3, stride), width)
        y = net.add(net.conv(y, width, 1, stride) if number else y, inner)
    return net.file(x, net.classifier(net.mean(y), 10))


def mobilenet_v1(size: int, width: float, classes: int, colours: int = 3) -> bytes:
    """Return MobileNet v1 for square images, its channels times `width`."""
    net = _network()
    x = net.activation((1, size, size, colours))
    y = net.conv(x, int(32 * width), 3, 2)
    strided = (64, 1), (128, 2), (128, 1), (256, 2), (256, 1), (512, 2)
    for channels, stride in (*strided, *[(512, 1)] * 5, (1024, 2), (1024, 1)):
        y = net.separable(y, int(channels * width), stride)
    return net.file(x, net.classifier(net.mean(y), classes))


def mobilenet_v2(size: int, width: float, classes: int) -> bytes:
    """Return MobileNet v2 for square images, its channels times `width`, in eights."""
    net = _network()
    x = net.activation((1, size, size, 3))

    def channels(count: int) -> int:
        return max(8, (int(count * width) + 4) // 8 * 8)

    y = net.conv(x, channels(32), 3, 2)
    for expansion, count, repeats, first in (
        (1, 16, 1, 1), (6, 24, 2, 2), (6, 32, 3, 2), (6, 64, 4, 2), (6, 96, 3, 1), (6, 160, 3, 2),
        (6, 320, 1, 1),
    ):  # fmt: skip
        for number in range(repeats):
            y = net.inverted(y, channels(count), expansion, first if number == 0 else 1)
    return net.file(x, net.classifier(net.mean(net.conv(y, 1280 // 4, 1)), classes))


def yolo_like(size: int, width: int) -> bytes:
    """Return a detector: convolutions and poolings down to two grids of boxes, joined."""
    net = _network()
    x = net.activation((1, size, size, 3))
    y, kept = x, x
    for number in range(5):
        y = net.max_pool(net.conv(y, width << min(number, 3)))
        if number == 3:
            kept = y
    coarse = net.conv(y, width * 8)
    fine = net.concat(net.enlarge(net.conv(coarse, width * 4, 1)), kept)
    return net.file(x, *(net.conv(net.conv(z, width * 4), 3 * 6, 1) for z in (coarse, fine)))


def unet_like(size: int, width: int, levels: int) -> bytes:
    """Return a segmentation: down and up again, each level joined with the way down."""
    net = _network()
    x = net.activation((1, size, size, 3))
    y, kept = net.conv(x, width), []
    for level in range(levels):
        kept.append(y)
        y = net.conv(net.max_pool(y), width << (level + 1))
    for level in reversed(range(levels)):
        up = net.conv(net.enlarge(y), width << level)
        y = net.conv(net.concat(up, kept[level]), width << level)
    return net.file(x, net.conv(y, 2, 1))


def conv_1d(frames: int, channels: int) -> bytes:
    """Return convolutions along time over three axes of an accelerometer."""
    net = _network()
    x = y = net.activation((1, frames, 1, 3))
    for width in (channels, channels * 2, channels * 4):
        y = net.conv(y, width, (5, 1), 2)
    return net.file(x, net.classifier(net.mean(y), 6))


def perceptron(inputs: int, *units: int) -> bytes:
    """Return dense layers in a row."""
    net = _network()
    x = y = net.activation((1, inputs))
    for count in units[:-1]:
        y = net.dense(y, count)
    return net.file(x, net.classifier(y, units[-1]))


def inception(size: int, width: int) -> bytes:
    """Return modules of four branches (Szegedy et al. 2015), a pooling between each two."""
    net = _network()
    x = net.activation((1, size, size, 3))
    y = net.conv(x, width * 2, 3, 2)
    for channels in (width, width * 2):
        branches = (
            net.conv(y, channels, 1),
            net.conv(net.conv(y, channels, 1), channels * 2),
            net.conv(net.conv(y, channels // 2, 1), channels, 5),
            net.conv(net.average_pool(y), channels, 1),
        )
        y = net.max_pool(net.concat(*branches))
    return net.file(x, net.classifier(net.mean(y), 10))


def vision_transformer(size: int, patch: int, width: int, heads: int, blocks: int) -> bytes:
    """Return patches with places, blocks of attention and of two dense layers, and their mean."""
    net = _network()
    count = (size // patch) ** 2
    x = net.activation((1, size, size, 3))
    patches = net.reshaped(net.conv(x, width, patch, patch), (1, count, width), RELU)
    y = net.operator(_Code.ADD, [patches, net.constant((1, count, width))], (1, count, width))
    for _ in range(blocks):
        y = net.add(y, _attention(net, _normalised(net, y), heads))
        wide = net.projection(_normalised(net, y), 2 * width)
        active = net.operator(_Code.GELU, [wide], net.shapes[wide], GeluOptions())
        y = net.add(y, net.projection(active, width))
    mean = net.operator(_Code.MEAN, [y, net.ints(1)], (1, width), ReducerOptions())
    return net.file(x, net.classifier(mean, 10))


def _normalised(net: Network, x: int) -> int:
    """Return rows less their mean, over their deviation (Ba et al. 2016)."""
    shape = net.shapes[x]
    line, last, kept = (*shape[:-1], 1), net.ints(-1), ReducerOptions(keep_dims=True)
    mean = net.operator(_Code.MEAN, [x, last], line, kept)
    squares = net.operator(_Code.SQUARED_DIFFERENCE, [x, mean], shape, None, RELU)
    variance = net.operator(_Code.MEAN, [squares, last], line, kept, RELU)
    factor = net.operator(_Code.RSQRT, [variance], line, None, RELU)
    centred = net.operator(_Code.SUB, [x, mean], shape)
    scaled = net.operator(_Code.MUL, [centred, factor], shape)
    return net.operator(_Code.ADD, [scaled, net.constant(shape[-1:])], shape)


def _attention(net: Network, x: int, heads: int) -> int:
    """Return attention of several heads over the rows of `x` (Vaswani et al. 2017)."""
    _, count, width = net.shapes[x]
    by_head, swapped = (1, count, heads, width // heads), (1, heads, count, width // heads)
    order = net.ints(0, 2, 1, 3)

    def head() -> int:
        rows = net.reshaped(net.projection(x, width), by_head)
        return net.operator(_Code.TRANSPOSE, [rows, order], swapped)

    query, key, value = head(), head(), head()
    scores = net.operator(
        _Code.BATCH_MATMUL, [query, key], (1, heads, count, count), BatchMatMulOptions(adj_y=True)
    )
    shares = net.operator(_Code.SOFTMAX, [scores], net.shapes[scores], SoftmaxOptions(), CHANCES)
    mixed = net.operator(_Code.BATCH_MATMUL, [shares, value], swapped, BatchMatMulOptions())
    rows = net.operator(_Code.TRANSPOSE, [mixed, order], by_head)
    return net.projection(net.reshaped(rows, (1, count, width)), width)


def frames_lstm(frames: int, size: int, channels: int, units: int) -> bytes:
    """Return convolutions of each of some images, and an LSTM over what they give."""
    net = _network()
    x = net.activation((1, frames, size, size, 1))
    y = net.reshaped(x, (frames, size, size, 1), RELU)
    for width in (channels, 2 * channels):
        y = net.max_pool(net.conv(y, width))
    features = 2 * channels * (size // 4) ** 2
    rows = net.projection(net.reshaped(y, (1, frames, features), RELU), units, HIDDEN)
    states = net.lstm(rows, units)
    last = net.operator(_Code.MEAN, [states, net.ints(1)], (1, units), ReducerOptions())
    return net.file(x, net.classifier(last, 6))


SHAPES: Mapping[str, tuple[str, Callable[[], bytes]]] = MappingProxyType(
    {
        "autoencoder-640": ("MLPerf Tiny, anomalies", partial(autoencoder, 640, 128, 8, 4)),
        "autoencoder-128": ("vibration", partial(autoencoder, 128, 32, 4, 2)),
        "ds-cnn-s": ("MLPerf Tiny, keywords", partial(ds_cnn, 64, 4)),
        "ds-cnn-m": ("keywords", partial(ds_cnn, 172, 4)),
        "keywords-streamed": ("keywords, unpadded", partial(keyword_spotter, TimePadding.VALID)),
        "resnet8": ("MLPerf Tiny, small images", resnet8),
        "resnet8-narrow": ("small images", partial(resnet8, (8, 16, 32))),
        "mobilenet-v1-0.25-96": ("MLPerf Tiny, wake words", partial(mobilenet_v1, 96, 0.25, 2)),
        "person-detection": ("tflite-micro's example", partial(mobilenet_v1, 96, 0.25, 2, 1)),
        "mobilenet-v1-0.25-128": ("images", partial(mobilenet_v1, 128, 0.25, 100)),
        "mobilenet-v1-0.5-160": ("images", partial(mobilenet_v1, 160, 0.5, 100)),
        "mobilenet-v2-0.35-96": ("images", partial(mobilenet_v2, 96, 0.35, 100)),
        "mobilenet-v2-0.35-160": ("images", partial(mobilenet_v2, 160, 0.35, 100)),
        "yolo-96": ("boxes", partial(yolo_like, 96, 8)),
        "yolo-160": ("boxes", partial(yolo_like, 160, 8)),
        "u-net-64": ("segments", partial(unet_like, 64, 8, 3)),
        "u-net-96": ("segments", partial(unet_like, 96, 8, 3)),
        "motion-1d": ("accelerometer", partial(conv_1d, 128, 16)),
        "inception-32": ("small images", partial(inception, 32, 16)),
        "vision-transformer-32": ("small images", partial(vision_transformer, 32, 8, 64, 4, 2)),
        "frames-lstm-16": ("images over time", partial(frames_lstm, 8, 16, 8, 32)),
        "lstm-28": ("time series", partial(lstm, Kind.INT8, 28, 28, 20)),
        "svdf": ("features over time", partial(svdf, Kind.INT8, 32, 64, 8)),
        "perceptron": ("sensors", partial(perceptron, 32, 64, 32, 8)),
    }
)


def main(arguments: Sequence[str] | None = None) -> None:
    """Write all of them into a folder."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    folder: Path = parser.parse_args(arguments).folder
    folder.mkdir(parents=True, exist_ok=True)
    for name, (_, made) in SHAPES.items():
        (folder / f"{name}.tflite").write_bytes(made())


if __name__ == "__main__":
    main()
