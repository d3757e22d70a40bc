"""The calls of CMSIS-NN: for each operator what is accepted, what it costs, what it is given.

Everything is passed as TFLite's reference kernels take it, so that results are equal to the bit.
Scratch is what the library asks for on the target, or on a computer that runs the same C.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

import numpy as np

from microtir.config import Feature
from microtir.dtype import DType
from microtir.external.interface import Match
from microtir.graph.ir import Array, Node
from microtir.operators.arithmetic.definition import Add, add_params
from microtir.operators.common.linear import LinearParams, params_of, rescales_in_float
from microtir.operators.convolution import definition
from microtir.operators.pooling.definition import Pool2D, pool_params
from microtir.operators.softmax.definition import Softmax, softmax_params


@dataclass(frozen=True, slots=True)
class LibraryCall:
    """The arguments of the template of a call of the library, and what the call needs.

    `functions` are those of the library that the C names.
    """

    template: str
    functions: tuple[str, ...]
    values: Mapping[str, object]
    constants: Mapping[str, Array] = field(default_factory=lambda: MappingProxyType({}))
    scratch_bytes: int = 0


def _is_int8(match: Match) -> bool:
    """Return whether everything is int8, and C can read constants through pointers."""
    node = match.first
    types = {t.dtype for t in (*node.inputs, *node.outputs)}
    return types == {DType.INT8} and not match.target.has(Feature.AVR_PROGMEM)


# --- linear operators ---------------------------------------------------------------------------


def _is_linear(match: Match) -> bool:
    node = match.first
    rest = all(tensor.is_constant for tensor in node.inputs[1:])
    types = [tensor.dtype for tensor in node.inputs]
    legal = [DType.INT8, DType.INT8, DType.INT32][: len(types)]
    portable = not match.target.has(Feature.AVR_PROGMEM)
    is_fixed_point = not rescales_in_float(node)
    is_legal = types == legal and node.output.dtype is DType.INT8 and is_fixed_point
    return rest and is_legal and portable


def is_convolution(match: Match) -> bool:
    """Return whether all is int8, weights are constant and there are one image and one group."""
    is_single = match.output.shape[0] == 1 and definition.groups_of(match.first) == 1
    return _is_linear(match) and is_single


def convolution(match: Match) -> LibraryCall:
    """Call `arm_convolve_wrapper_s8`."""
    node = match.first
    op = node.attributes(definition.Conv2D)
    _, height, width, channels = node.inputs[1].shape
    patch = height * width * channels
    scratch = 4 * (-(-patch // 4) * 4)
    if match.target.has(Feature.MVE):
        scratch = max(scratch, 64 * -(-patch // 16), 3 * width * channels)
    return _windowed(node, op, "convolve", "arm_convolve_wrapper_s8", {}, scratch)


def is_depthwise(match: Match) -> bool:
    """Return whether all is int8, weights are constant and there is one image."""
    return _is_linear(match) and match.output.shape[0] == 1


def depthwise(match: Match) -> LibraryCall:
    """Call `arm_depthwise_conv_wrapper_s8`."""
    node = match.first
    op = node.attributes(definition.DepthwiseConv2D)
    _, height, width, channels = node.inputs[1].shape
    scratch = 2 * height * width * channels
    if match.target.has(Feature.MVE):
        patch = height * width
        scratch = max(scratch, 4 * 124 * patch, 64 * -(-patch // 16) + patch * channels)
    more = {"multiplier": op.depth_multiplier}
    return _windowed(node, op, "depthwise", "arm_depthwise_conv_wrapper_s8", more, scratch)


def is_dense(match: Match) -> bool:
    """Return whether all is int8 and weights are constant."""
    return _is_linear(match)


def dense(match: Match) -> LibraryCall:
    """Call `arm_fully_connected_wrapper_s8`."""
    node = match.first
    params = params_of(node)
    outputs, depth = node.inputs[1].shape
    batches = node.output.type.elements // outputs
    constants, context = _weights(node, params), _struct("NULL", 0)
    if match.target.has(Feature.MVE):
        # The kernels for Helium begin with what a row adds up to besides the products.
        constants["row_sums"] = _row_sums(constants, params)
        context = _struct("(void *)(uintptr_t)row_sums", constants["row_sums"].nbytes)
    return LibraryCall(
        "fully_connected",
        ("arm_fully_connected_wrapper_s8",),
        {
            **_linear(node, params),
            "input": _struct(batches, 1, 1, depth),
            "filter": _struct(depth, 1, 1, outputs),
            "output": _struct(batches, 1, 1, outputs),
            "context": context,
            "is_per_channel": int(params.is_per_channel),
        },
        constants,
    )


def _row_sums(constants: Mapping[str, Array], params: LinearParams) -> Array:
    """Return bias plus the input zero point's contribution for each row of weights."""
    weights = constants["weights"].astype(np.int64)
    sums: Array = -params.input_zero_point * weights.sum(axis=1)
    if "bias" in constants:
        sums += constants["bias"]
    rows: Array = sums.astype(np.int32)
    return rows


def _weights(node: Node, params: LinearParams) -> dict[str, Array]:
    channels = node.output.shape[-1]
    multipliers, shifts = params.multiplier_arrays(channels)
    constants = {"weights": node.inputs[1].data}
    if len(node.inputs) > 2:
        constants["bias"] = node.inputs[2].data
    arrays = {name: data for name, data in constants.items() if data is not None}
    return arrays | {
        "multipliers": np.asarray(multipliers, np.int32),
        "shifts": np.asarray(shifts, np.int32),
    }


def _linear(node: Node, params: LinearParams) -> dict[str, object]:
    return {
        "input_offset": -params.input_zero_point,
        "output_offset": params.output_zero_point,
        "range": _struct(params.activation_min, params.activation_max),
        "bias": "bias" if len(node.inputs) > 2 else "NULL",
        "sums": _struct(1, 1, 1, node.output.shape[-1]),
    }


def _windowed(
    node: Node,
    op: definition.Conv2D | definition.DepthwiseConv2D,
    template: str,
    function: str,
    more: Mapping[str, object],
    scratch: int,
) -> LibraryCall:
    """Call a function of a window, whose structs have columns before rows."""
    params = params_of(node)
    values = {
        **_linear(node, params),
        "stride": _tile(op.strides),
        "dilation": _tile(op.dilations),
        "padding": _tile((op.padding.top, op.padding.left)),
        "input": _struct(*node.inputs[0].shape),
        "filter": _struct(*node.inputs[1].shape),
        "output": _struct(*node.output.shape),
        "context": _struct("scratch", scratch),
        **more,
    }
    functions = (function, f"{function}_get_buffer_size")
    return LibraryCall(template, functions, values, _weights(node, params), scratch)


def _tile(rows_and_columns: tuple[int, int]) -> str:
    rows, columns = rows_and_columns
    return _struct(columns, rows)


def _struct(*members: object) -> str:
    return f"{{{', '.join(map(str, members))}}}"


# --- the others ---------------------------------------------------------------------------------


def is_add(match: Match) -> bool:
    """Return whether both operands are int8 activations of one shape."""
    node = match.first
    activations = not any(tensor.is_constant for tensor in node.inputs)
    shapes = {tensor.shape for tensor in (*node.inputs, node.output)}
    return _is_int8(match) and activations and len(shapes) == 1 and node.inputs[0].shape != ()


def add(match: Match) -> LibraryCall:
    """Call `arm_elementwise_add_s8`."""
    node = match.first
    a, b = node.inputs
    p = add_params(node.attributes(Add), a.type, b.type, node.output.type)
    return LibraryCall(
        "add",
        ("arm_elementwise_add_s8",),
        {
            "inputs": "x, x" if a is b else "x0, x1",
            "first": f"{-p.input1_zero_point}, {p.input1.multiplier}, {p.input1.shift}",
            "second": f"{-p.input2_zero_point}, {p.input2.multiplier}, {p.input2.shift}",
            "left_shift": p.left_shift,
            "result": f"{p.output_zero_point}, {p.output.multiplier}, {p.output.shift}",
            "minimum": p.activation_min,
            "maximum": p.activation_max,
            "count": node.output.type.elements,
        },
    )


def is_pool(match: Match) -> bool:
    """Return whether all is int8 and there is one image."""
    return _is_int8(match) and match.output.shape[0] == 1


def average_pool(match: Match) -> LibraryCall:
    """Call `arm_avgpool_s8`."""
    scratch = 4 * match.output.shape[-1]
    functions = ("arm_avgpool_s8", "arm_avgpool_s8_get_buffer_size")
    return _pool(match, "arm_avgpool_s8", functions, scratch)


def max_pool(match: Match) -> LibraryCall:
    """Call `arm_max_pool_s8`."""
    return _pool(match, "arm_max_pool_s8", ("arm_max_pool_s8",), 0)


def _pool(match: Match, function: str, functions: tuple[str, ...], scratch: int) -> LibraryCall:
    node = match.first
    assert isinstance(node.op, Pool2D)
    op, params = node.op, pool_params(node.op, node.output.type)
    _, _, width, channels = node.output.shape
    values: dict[str, object] = {
        "function": function,
        "stride": _tile(op.strides),
        "padding": _tile((op.padding.top, op.padding.left)),
        "window": _struct(1, *op.window, 1),
        "range": _struct(params.activation_min, params.activation_max),
        "input": _struct(*node.inputs[0].shape),
        "output": _struct(*node.output.shape),
        "width": width,
        "channels": channels,
        "asks": scratch > 0,
        "context": _struct("scratch" if scratch else "NULL", scratch),
    }
    return LibraryCall("pool", functions, values, scratch_bytes=scratch)


def is_softmax(match: Match) -> bool:
    """Return whether all is int8 in rows of up to 1024: longer sums may not fit."""
    return _is_int8(match) and match.output.shape[-1] <= _LONGEST_ROW


_LONGEST_ROW = 1024


def softmax(match: Match) -> LibraryCall:
    """Call `arm_softmax_s8`."""
    node = match.first
    params = softmax_params(node.attributes(Softmax), node.inputs[0].type)
    row = node.output.shape[-1]
    return LibraryCall(
        "softmax",
        ("arm_softmax_s8",),
        {
            "rows": node.output.type.elements // row,
            "row": row,
            "multiplier": params.multiplier.multiplier,
            "shift": params.multiplier.shift,
            "difference_min": params.difference_min,
        },
    )
