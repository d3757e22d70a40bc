"""Draws cases: a layer, the numbers that a caller passes, and the output that its meaning gives."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from zlib import crc32

import numpy as np

from microtir.conform.draw import Draw, Style
from microtir.conform.layers import Layer, draw_layer
from microtir.conform.spec import Function
from microtir.graph.ir import Array, Node
from microtir.operators.arithmetic import definition as arithmetic
from microtir.operators.common.linear import LinearParams, WeightedOperator, params_of
from microtir.operators.pooling.definition import Pool2D, pool_params
from microtir.operators.softmax.definition import Softmax, softmax_params
from microtir.rewrite.reference import evaluate

NUMBERS = (
    "batches", "input_height", "input_width", "input_channels", "filter_height", "filter_width",
    "output_height", "output_width", "output_channels", "depth_multiplier", "stride_height",
    "stride_width", "dilation_height", "dilation_width", "pad_top", "pad_left", "elements",
    "input_zero_point", "input2_zero_point", "output_zero_point", "minimum", "maximum",
    "left_shift", "input_multiplier", "input_shift", "input2_multiplier", "input2_shift",
    "output_multiplier", "output_shift", "difference_min", "per_channel",
)  # fmt: skip
"""The integers of a case as C sees them; those that its kind has no use for are 0 or 1."""


@dataclass(frozen=True, slots=True)
class Case:
    """One call of a function.

    Args:
        layer: what is computed.
        numbers: arguments by their names in C.
        arrays: what pointers point to, by their names in C, in the layout of the function.
        expected: the output, in the layout of the function.
        style: what its tensors hold.
    """

    layer: Layer
    numbers: Mapping[str, int]
    arrays: Mapping[str, Array]
    expected: Array
    style: Style

    @property
    def text(self) -> str:
        node, numbers = self.layer.node, self.numbers
        shapes = " ".join("x".join(map(str, tensor.shape)) for tensor in node.inputs)
        names = ("stride", "dilation")
        sides = [f"{n} {numbers[n + '_height']}x{numbers[n + '_width']}" for n in names]
        window = f"filter {numbers['filter_height']}x{numbers['filter_width']}"
        padding = f"padding {numbers['pad_top']},{numbers['pad_left']}"
        spatial = [window, *sides, padding] if len(node.inputs[0].shape) == 4 else []
        return ", ".join([f"{node.op.name} of {shapes}", *spatial, self.style.value])


def draw_cases(function: Function, count: int, seed: int) -> tuple[Case, ...]:
    """Draw the cases of a function; the same ones for the same seed."""
    key, styles = crc32(function.name.encode()), tuple(Style)
    return tuple(
        _case(
            function,
            Draw(
                np.random.default_rng((seed, key, i)),
                function.ranges,
                styles[i % len(styles)],
                exact=i % 4 == 3,
            ),
        )
        for i in range(count)
    )


def _case(function: Function, draw: Draw) -> Case:
    layer = draw_layer(function.kind, draw)
    node = layer.node
    constants = [tensor.data for tensor in node.inputs if tensor.data is not None]
    (expected,) = evaluate(node, [*layer.inputs, *constants])
    numbers, factors = _arguments(node)
    arrays = {"input": _in_order(layer.inputs[0], function.image_order)}
    if len(layer.inputs) > 1:
        arrays["input2"] = layer.inputs[1]
    for name, array in zip(("weights", "bias"), constants, strict=False):
        arrays[name] = array.transpose(function.weight_order) if name == "weights" else array
    return Case(
        layer=layer,
        numbers=_extents(layer) | numbers,
        arrays=arrays | factors,
        expected=_in_order(expected, function.image_order),
        style=draw.style,
    )


def _in_order(array: Array, order: tuple[int, ...]) -> Array:
    return array.transpose(order) if array.ndim == len(order) else array


def _extents(layer: Layer) -> dict[str, int]:
    x, y = layer.node.inputs[0], layer.node.output
    numbers = dict.fromkeys(NUMBERS, 0)
    pairs = ("input", "filter", "output", "stride", "dilation")
    numbers |= {f"{pair}_{side}": 1 for pair in pairs for side in ("height", "width")}
    numbers |= layer.extents
    return numbers | {
        "batches": x.shape[0],
        "input_channels": x.shape[-1],
        "output_channels": y.shape[-1],
        "elements": y.type.elements,
        "input_zero_point": x.type.quant.zero_point,
        "output_zero_point": y.type.quant.zero_point,
        "minimum": y.dtype.min,
        "maximum": y.dtype.max,
    }


def _arguments(node: Node) -> tuple[dict[str, int], dict[str, Array]]:
    """Return the numbers that depend on scales, and arrays of them."""
    op, types = node.op, [tensor.type for tensor in (*node.inputs[:2], node.output)]
    if isinstance(op, WeightedOperator):
        return _factors(params_of(node), node)
    if isinstance(op, Pool2D):
        ends = pool_params(op, node.output.type)
        return {"minimum": ends.activation_min, "maximum": ends.activation_max}, {}
    if isinstance(op, Softmax):
        soft = softmax_params(op, types[0])
        return {
            "input_multiplier": soft.multiplier.multiplier,
            "input_shift": soft.multiplier.shift,
            "difference_min": soft.difference_min,
        }, {}
    if isinstance(op, arithmetic.Mul):
        product = arithmetic.mul_params(op, types[0], types[1], types[2])
        return _pair(product) | _named("output", product.multiplier), {}
    assert isinstance(op, arithmetic.Add)
    total = arithmetic.add_params(op, types[0], types[1], types[2])
    factors = {"input": total.input1, "input2": total.input2, "output": total.output}
    numbers = _pair(total) | {"left_shift": total.left_shift}
    for name, factor in factors.items():
        numbers |= _named(name, factor)
    return numbers, {}


def _pair(params: arithmetic.AddParams | arithmetic.MulParams) -> dict[str, int]:
    return {
        "input2_zero_point": params.input2_zero_point,
        "minimum": params.activation_min,
        "maximum": params.activation_max,
    }


def _named(name: str, factor: tuple[int, int]) -> dict[str, int]:
    return {f"{name}_multiplier": factor[0], f"{name}_shift": factor[1]}


def _factors(params: LinearParams, node: Node) -> tuple[dict[str, int], dict[str, Array]]:
    multipliers, shifts = params.multiplier_arrays(node.output.shape[-1])
    numbers = {
        "minimum": params.activation_min,
        "maximum": params.activation_max,
        "per_channel": int(params.is_per_channel),
    }
    arrays = {"multipliers": multipliers.astype(np.int32), "shifts": shifts.astype(np.int32)}
    return numbers | _named("output", params.multipliers[0]), arrays
