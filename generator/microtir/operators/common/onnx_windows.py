"""Resolve the windows of ONNX's convolutions and pools to strides, dilations and padding."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

from microtir.graph.ir import Tensor
from microtir.operators.common import attributes, onnx_parts
from microtir.operators.common.onnx_operands import OnnxNode

_MAX_EXTENT = 65_535  # keeps every index of a window within 32 bits


@dataclass(frozen=True, slots=True)
class OnnxWindow:
    """A window over the spatial axes, one number an axis; padding is explicit."""

    taps: tuple[int, ...]
    strides: tuple[int, ...]
    dilations: tuple[int, ...]
    before: tuple[int, ...]
    after: tuple[int, ...]

    @property
    def planar_strides(self) -> tuple[int, int]:
        """Return rows and columns; a line is an image of one row."""
        return _pair(self.strides, 1)

    @property
    def planar_dilations(self) -> tuple[int, int]:
        return _pair(self.dilations, 1)

    @property
    def planar_taps(self) -> tuple[int, int]:
        return _pair(self.taps, 1)

    @property
    def padding(self) -> attributes.Padding2D:
        (top, left), (bottom, right) = _pair(self.before, 0), _pair(self.after, 0)
        return attributes.Padding2D(top, bottom, left, right)


def without_margins(node: OnnxNode, x: Tensor, window: OnnxWindow) -> tuple[Tensor, OnnxWindow]:
    """Return an image without what numbers below 0 cut off, and its window with padding from 0."""
    if min((*window.before, *window.after)) >= 0:
        return x, window
    begin = tuple(max(-n, 0) for n in window.before)
    ends = zip(x.shape[2:], begin, window.after, strict=True)
    inner = tuple(size - first - max(-last, 0) for size, first, last in ends)
    image = onnx_parts.box(node, x, (0, 0, *begin), (*x.shape[:2], *inner))
    before, after = (tuple(max(n, 0) for n in side) for side in (window.before, window.after))
    return image, replace(window, before=before, after=after)


def _pair(extents: tuple[int, ...], missing: int) -> tuple[int, int]:
    first, second = extents if len(extents) == 2 else (missing, *extents)
    return first, second


def window_of(
    node: OnnxNode, sizes: tuple[int, ...], taps: tuple[int, ...], *, pools: bool = False
) -> OnnxWindow:
    """Return the window of a node.

    Args:
        node: with the attributes strides, dilations, pads and auto_pad.
        sizes: of the spatial axes of its image.
        taps: of the window along them.
        pools: whether it is that of a pool; else it is that of a convolution.
    """
    rank = len(sizes)
    strides = _extents(node, "strides", (1,) * rank)
    dilations = _extents(node, "dilations", (1,) * rank)
    if len(taps) != rank or not 1 <= min(taps) <= max(taps) <= _MAX_EXTENT:
        raise node.malformed(f"a window of {taps} over {sizes}", f"{rank} extents of 1 or more")
    automatic = node.word("auto_pad", "NOTSET")
    if automatic in ("SAME_UPPER", "SAME_LOWER"):
        axes = zip(sizes, taps, strides, dilations, strict=True)
        at_end = automatic == "SAME_UPPER"
        pairs = [same_padding(*axis, at_end=at_end, pools=pools) for axis in axes]
        before, after = (tuple(pair[side] for pair in pairs) for side in (0, 1))
    else:
        pads = node.list_of_integers("pads", (0,) * (2 * rank))
        if automatic == "VALID":
            pads = (0,) * (2 * rank)
        if len(pads) != 2 * rank or max(map(abs, pads)) > _MAX_EXTENT:
            raise node.malformed(f"the attribute 'pads' is {pads}", f"{2 * rank} numbers")
        before, after = pads[:rank], pads[rank:]
    return OnnxWindow(taps, strides, dilations, before, after)


def _extents(node: OnnxNode, name: str, default: tuple[int, ...]) -> tuple[int, ...]:
    extents = node.list_of_integers(name, default)
    if len(extents) != len(default) or not 1 <= min(extents) <= max(extents) <= _MAX_EXTENT:
        raise node.malformed(
            f"the attribute '{name}' is {extents}", f"{len(default)} numbers of 1 or more"
        )
    return extents


def same_padding(
    size: int, taps: int, stride: int, dilation: int, *, at_end: bool, pools: bool
) -> tuple[int, int]:
    """Return what SAME adds before and after an axis; an odd element goes to the end, or before.

    Where windows leave elements out between them it cuts off, numbers below 0.  How much of that is
    in front ONNX leaves open; it is here as onnxruntime has it, of convolutions one element less.
    """
    last = (-(-size // stride) - 1) * stride
    total = last + (taps - 1) * dilation + 1 - size
    parted = total if total >= 0 or pools else total + 1
    before = math.trunc((parted if at_end else parted + 1) / 2)
    return before, total - before
