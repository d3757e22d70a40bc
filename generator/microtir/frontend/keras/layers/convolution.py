"""Read convolutions: over one to three axes, in groups, by channel, and transposed."""

from __future__ import annotations

import numpy as np

from microtir.frontend.keras.layer import KerasLayer, KerasReader
from microtir.frontend.keras.layers.activations import activated
from microtir.frontend.keras.layers.core import is_channels_first
from microtir.graph.ir import Tensor
from microtir.operators.common.onnx_parts import along, joined, reshaped, transposed
from microtir.operators.common.onnx_windows import OnnxWindow, same_padding
from microtir.operators.convolution.definition import Conv2D, DepthwiseConv2D
from microtir.operators.convolution_3d.definition import Conv3D
from microtir.operators.transposed_convolution.definition import TransposeConv

FIELDS = ("filters", "kernel_size", "strides", "padding", "data_format", "dilation_rate", "groups",
          "activation", "use_bias")  # fmt: skip


def channels_last(layer: KerasLayer, x: Tensor, rank: int) -> Tensor:
    """Return the input of a layer over so many axes with the channels last.

    Raises:
        ModelFileError: it has other dimensions.
    """
    if len(x.shape) != rank + 2:
        raise layer.malformed(f"its input has the shape {x.shape}", f"{rank + 2} dimensions")
    if not is_channels_first(layer):
        return x
    return transposed(layer.node, x, (0, *range(2, rank + 2), 1))


def from_channels_last(layer: KerasLayer, y: Tensor) -> Tensor:
    """Return a result as the layer has its channels."""
    if not is_channels_first(layer):
        return y
    last = len(y.shape) - 1
    return transposed(layer.node, y, (0, last, *range(1, last)))


def window_of(
    layer: KerasLayer, sizes: tuple[int, ...], taps: tuple[int, ...], strides: tuple[int, ...],
    dilations: tuple[int, ...],
) -> OnnxWindow:  # fmt: skip
    """Return a window over spatial axes of some sizes, with the padding of a layer."""
    rank = len(taps)
    padding = layer.word("padding", "valid", "same", "causal", default="valid")
    pairs = [(0, 0)] * rank
    if padding == "same":
        axes = zip(sizes, taps, strides, dilations, strict=True)
        pairs = [same_padding(*axis, at_end=True, pools=True) for axis in axes]
        pairs = [(max(before, 0), max(after, 0)) for before, after in pairs]
    elif padding == "causal":
        pairs = [((taps[0] - 1) * dilations[0], 0)]
    for size, tap, dilation, pair in zip(sizes, taps, dilations, pairs, strict=True):
        if size + sum(pair) < (tap - 1) * dilation + 1:
            raise layer.malformed(
                f"a window of {taps} for an input of {sizes}", "windows that fit into the input"
            )
    before, after = (tuple(pair[side] for pair in pairs) for side in (0, 1))
    return OnnxWindow(taps, strides, dilations, before, after)


def as_image(layer: KerasLayer, x: Tensor) -> Tensor:
    """Return (N, W, C) as an image of one row."""
    return x if len(x.shape) == 4 else reshaped(layer.node, x, x.shape[0], 1, *x.shape[1:])


def as_line(layer: KerasLayer, y: Tensor, rank: int) -> Tensor:
    """Return an image as it was before `as_image`."""
    return y if rank == 2 else reshaped(layer.node, y, y.shape[0], *y.shape[2:])


def convolved(
    layer: KerasLayer, x: Tensor, kernel: Tensor, bias: tuple[Tensor, ...], window: OnnxWindow
) -> Tensor:
    """Return a convolution of a tensor with channels last and a kernel of (taps…, I, O)."""
    rank, groups = len(window.taps), x.shape[-1] // max(kernel.shape[-2], 1)
    if groups * kernel.shape[-2] != x.shape[-1] or not groups or kernel.shape[-1] % groups:
        raise layer.malformed(f"a kernel of shape {kernel.shape} for {x.shape[-1]} channels")
    if rank == 3:
        return _convolved_3d(layer, x, kernel, bias, window, groups)
    weights = transposed(layer.node, _plane(layer, kernel), (3, 0, 1, 2))
    op = Conv2D(window.planar_strides, window.planar_dilations, window.padding)
    return as_line(layer, layer.emit(op, as_image(layer, x), weights, *bias), rank)


def _plane(layer: KerasLayer, kernel: Tensor) -> Tensor:
    """Return a kernel over one axis as one of one row."""
    return kernel if len(kernel.shape) == 4 else reshaped(layer.node, kernel, 1, *kernel.shape)


def _convolved_3d(
    layer: KerasLayer, x: Tensor, kernel: Tensor, bias: tuple[Tensor, ...], window: OnnxWindow,
    groups: int,
) -> Tensor:  # fmt: skip
    (s0, s1, s2), (d0, d1, d2) = window.strides, window.dilations
    (b0, b1, b2), (a0, a1, a2) = window.before, window.after
    op = Conv3D((s0, s1, s2), (d0, d1, d2), (b0, b1, b2), (a0, a1, a2))
    if groups == 1:
        return layer.emit(op, x, kernel, *bias)
    depth, count, node = kernel.shape[3], kernel.shape[4] // groups, layer.node
    parts = [
        layer.emit(
            op,
            along(node, x, 4, group * depth, depth),
            along(node, kernel, 4, group * count, count),
            *(along(node, b, 0, group * count, count) for b in bias),
        )
        for group in range(groups)
    ]
    return joined(node, parts, 4)


def _depthwise(
    layer: KerasLayer, x: Tensor, kernel: Tensor, bias: tuple[Tensor, ...], window: OnnxWindow
) -> Tensor:
    """Return a convolution of each channel with kernels of its own: (taps…, I, M)."""
    *_, channels, multiplier = kernel.shape
    if channels != x.shape[-1]:
        raise layer.malformed(f"a kernel of shape {kernel.shape} for {x.shape[-1]} channels")
    plane = _plane(layer, kernel)
    weights = reshaped(layer.node, plane, 1, *plane.shape[:2], channels * multiplier)
    op = DepthwiseConv2D(window.planar_strides, window.planar_dilations, window.padding, multiplier)
    return as_line(layer, layer.emit(op, as_image(layer, x), weights, *bias), len(window.taps))


def _windowed(layer: KerasLayer, x: Tensor, taps: tuple[int, ...]) -> OnnxWindow:
    rank = len(taps)
    return window_of(
        layer,
        x.shape[1:-1],
        taps,
        layer.extents("strides", rank),
        layer.extents("dilation_rate", rank),
    )


def _bias(layer: KerasLayer) -> tuple[str, ...]:
    return ("bias",) if layer.flag("use_bias", default=True) else ()


def _convolution(rank: int) -> KerasReader:
    def read(layer: KerasLayer) -> Tensor:
        kernel, *bias = layer.arrays("kernel", *_bias(layer))
        x = channels_last(layer, layer.x, rank)
        window = _windowed(layer, x, _taps(layer, kernel, rank))
        y = convolved(layer, x, kernel, tuple(bias), window)
        return activated(layer, from_channels_last(layer, y))

    return KerasReader(f"Conv{rank}D", read, FIELDS)


def _taps(layer: KerasLayer, kernel: Tensor, rank: int) -> tuple[int, ...]:
    if len(kernel.shape) != rank + 2:
        raise layer.malformed(f"a kernel of shape {kernel.shape}", f"{rank + 2} dimensions")
    return kernel.shape[:rank]


def _depthwise_convolution(rank: int) -> KerasReader:
    def read(layer: KerasLayer) -> Tensor:
        kernel, *bias = layer.arrays("kernel", *_bias(layer))
        x = channels_last(layer, layer.x, rank)
        window = _windowed(layer, x, _taps(layer, kernel, rank))
        y = _depthwise(layer, x, kernel, tuple(bias), window)
        return activated(layer, from_channels_last(layer, y))

    return KerasReader(f"DepthwiseConv{rank}D", read, (*FIELDS, "depth_multiplier"))


def _separable(rank: int) -> KerasReader:
    def read(layer: KerasLayer) -> Tensor:
        depthwise, pointwise, *bias = layer.arrays("depthwise", "pointwise", *_bias(layer))
        x = channels_last(layer, layer.x, rank)
        window = _windowed(layer, x, _taps(layer, depthwise, rank))
        between = _depthwise(layer, x, depthwise, (), window)
        ones, none = (1,) * rank, (0,) * rank
        single = OnnxWindow(_taps(layer, pointwise, rank), ones, ones, none, none)
        y = convolved(layer, between, pointwise, tuple(bias), single)
        return activated(layer, from_channels_last(layer, y))

    return KerasReader(f"SeparableConv{rank}D", read, (*FIELDS, "depth_multiplier"))


def _transposed_axis(
    layer: KerasLayer, size: int, reach: int, stride: int, more: int | None
) -> tuple[int, int]:
    """Return what is cut off in front along an axis, and the extent of the result.

    Args:
        layer: with its padding.
        size: of the input.
        reach: of the kernel with the gaps between its taps.
        stride: between the windows of neighbours.
        more: what the layer says is added behind; None leaves that to the padding.
    """
    if layer.word("padding", "valid", "same") == "valid":
        more = max(reach, stride) - reach if more is None else more
        return 0, (size - 1) * stride + reach + more
    padding = stride + reach - 2 if more is None else reach + reach % 2 - 2 + more
    before = reach - 1 - min(padding - padding // 2, reach - 1)
    return before, size * stride if more is None else (size - 1) * stride + reach % 2 + more


def _transposed(rank: int) -> KerasReader:
    def read(layer: KerasLayer) -> Tensor:
        kernel, *bias = layer.arrays("kernel", *_bias(layer))
        x, taps = channels_last(layer, layer.x, rank), _taps(layer, kernel, rank)
        strides, dilations = layer.extents("strides", rank), layer.extents("dilation_rate", rank)
        spread = _spread(layer, kernel, taps, dilations)
        more = _more(layer, rank)
        ends = [
            _transposed_axis(layer, *axis)
            for axis in zip(x.shape[1:-1], spread.shape, strides, more, strict=False)
        ]
        before, sizes = tuple(b for b, _ in ends), tuple(s for _, s in ends)
        if min(sizes) < 1 or kernel.shape[-1] != x.shape[-1]:
            raise layer.malformed(
                f"a kernel of shape {kernel.shape} for an input of shape {x.shape}"
            )
        emit = _transposed_3d if rank == 3 else _transposed_2d
        y = emit(layer, x, spread, tuple(bias), strides, before, sizes)
        return activated(layer, from_channels_last(layer, y))

    return KerasReader(f"Conv{rank}DTranspose", read, (*FIELDS, "output_padding"))


def _more(layer: KerasLayer, rank: int) -> list[int | None]:
    if layer.setting("output_padding") is None:
        return [None] * rank
    values = layer.integers("output_padding")
    values = values * rank if len(values) == 1 else values
    if len(values) != rank or min(values) < 0:
        raise layer.malformed(f"its output_padding is {values}", f"{rank} numbers of 0 or more")
    return list(values)


def _spread(
    layer: KerasLayer, kernel: Tensor, taps: tuple[int, ...], dilations: tuple[int, ...]
) -> Tensor:
    """Return a kernel with zeros between its taps."""
    if max(dilations) == 1:
        return kernel
    stored = layer.node.with_inputs(kernel).known(0, "the kernel")
    shape = (*((n - 1) * d + 1 for n, d in zip(taps, dilations, strict=True)), *kernel.shape[-2:])
    layer.node.check_room(*shape)
    spread = np.zeros(shape, np.float32)
    spread[tuple(slice(None, None, dilation) for dilation in dilations)] = stored
    return layer.constant(spread)


def _transposed_2d(
    layer: KerasLayer, x: Tensor, kernel: Tensor, bias: tuple[Tensor, ...],
    strides: tuple[int, ...], before: tuple[int, ...], sizes: tuple[int, ...],
) -> Tensor:  # fmt: skip
    rank = len(sizes)
    (s0, s1), (b0, b1), (h, w) = (
        (first, *pair) if rank == 1 else pair
        for first, pair in ((1, strides), (0, before), (1, sizes))
    )
    weights = transposed(layer.node, _plane(layer, kernel), (2, 0, 1, 3))
    op, shape = TransposeConv((s0, s1), (b0, b1)), (x.shape[0], h, w, kernel.shape[-2])
    y = layer.node.emit(op, as_image(layer, x), weights, *bias, shape=shape)
    return as_line(layer, y, rank)


def _transposed_3d(
    layer: KerasLayer, x: Tensor, kernel: Tensor, bias: tuple[Tensor, ...],
    strides: tuple[int, ...], before: tuple[int, ...], sizes: tuple[int, ...],
) -> Tensor:  # fmt: skip
    axes = zip(x.shape[1:4], strides, kernel.shape, before, sizes, strict=False)
    after = tuple((n - 1) * s + k - cut - size for n, s, k, cut, size in axes)
    volume = transposed(layer.node, x, (0, 4, 1, 2, 3))
    weights = transposed(layer.node, kernel, (4, 3, 0, 1, 2))
    y = layer.onnx("ConvTranspose", volume, weights, *bias, strides=strides, pads=before + after)
    return transposed(layer.node, y, (0, 2, 3, 4, 1))


KERAS_READERS = tuple(
    of_rank(rank)
    for of_rank, ranks in (
        (_convolution, (1, 2, 3)),
        (_depthwise_convolution, (1, 2)),
        (_separable, (1, 2)),
        (_transposed, (1, 2, 3)),
    )
    for rank in ranks
)
