from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from microtir.dtype import DType
from microtir.graph.ir import Tensor, TensorType
from microtir.graph.operator import Operator
from microtir.operators.activations.definition import HardSwish, Relu, Tanh, relu_params
from microtir.operators.arithmetic.definition import Add, Sub, add_params
from microtir.operators.common.attributes import Activation
from microtir.operators.common.linear import LinearParams, params_of
from microtir.operators.common.multiplier import activation_range, quantize_multiplier
from microtir.operators.convolution.definition import Conv2D
from microtir.operators.dense.definition import FullyConnected
from microtir.operators.reduction.definition import Mean, sum_params
from microtir.operators.resize.definition import (
    ResizeBilinear,
    ResizeNearestNeighbor,
    bilinear_axis,
    bilinear_axis_float,
    nearest_indices,
)
from microtir.operators.tables import has_table, lookup_table
from tests.support.graphs import node, per_channel, quant


def _type(shape: tuple[int, ...], scale: float, zero_point: int = 0) -> TensorType:
    return TensorType(shape, DType.INT8, quant(scale, zero_point))


def _params(op: Operator, *types: TensorType) -> LinearParams:
    x, w, y = (Tensor(name, type_) for name, type_ in zip("xwy", types, strict=True))
    return params_of(node(op, (x, w), y))


@given(st.floats(1e-9, 1e9))
def test_multiplier_is_near_its_real_value(real: float) -> None:
    """Multiplier and shift stand for the real factor to 31 bits, normalised."""
    multiplier, shift = quantize_multiplier(real)
    assert 1 << 30 <= multiplier < 1 << 31
    assert math.ldexp(multiplier, shift - 31) == pytest.approx(real, rel=2.0**-31)


def test_multiplier_at_the_edges() -> None:
    """Zero, values that vanish, mantissas that round up to 1, and signs."""
    assert quantize_multiplier(0.0) == (0, 0)
    assert quantize_multiplier(2.0**-33) == (0, 0)
    assert quantize_multiplier(2.0**-32) == (1 << 30, -31)
    assert quantize_multiplier(1.0) == (1 << 30, 1)
    assert quantize_multiplier(math.nextafter(1.0, 0.0)) == (1 << 30, 1)
    assert quantize_multiplier(-0.75) == (-(3 << 29), 0)


def test_activation_ranges() -> None:
    """Clamps are quantised with the output's scale and kept inside the type."""
    output = _type((1,), 0.05, -100)
    assert activation_range(Activation.NONE, output) == (-128, 127)
    assert activation_range(Activation.RELU, output) == (-100, 127)
    assert activation_range(Activation.RELU6, output) == (-100, 20)
    assert activation_range(Activation.RELU_N1_TO_1, output) == (-120, -80)
    assert activation_range(Activation.RELU6, _type((1,), 0.001, 0)) == (0, 127)


def test_layers_multiply_scales_in_double() -> None:
    """Convolutions and fully connected layers have the same multiplier, from doubles."""
    x, w, y = _type((1, 1, 1, 1), 0.1), _type((1, 1, 1, 1), 0.3), _type((1, 1, 1, 1), 0.7)
    scales = [t.quant.scale for t in (x, w, y)]
    conv = _params(Conv2D(), x, w, y)
    dense = _params(FullyConnected(), x, w, y)
    assert conv.multipliers == (quantize_multiplier(scales[0] * scales[1] / scales[2]),)
    assert dense == conv


def test_per_channel_multipliers_are_one_per_channel() -> None:
    """Channels keep their order; one scale serves all channels."""
    x, y = _type((1, 1, 1, 1), 0.5, 3), _type((1, 1, 1, 3), 0.25, -7)
    w = TensorType((3, 1, 1, 1), DType.INT8, per_channel([0.5, 0.25, 1.0], 0))
    params = _params(Conv2D(activation=Activation.RELU), x, w, y)
    assert [m.shift for m in params.multipliers] == [1, 0, 2]
    assert (params.input_zero_point, params.output_zero_point) == (3, -7)
    assert (params.activation_min, params.activation_max) == (-7, 127)
    multipliers, shifts = params.multiplier_arrays(3)
    assert multipliers.tolist() == [1 << 30] * 3 and shifts.tolist() == [1, 0, 2]
    assert not _params(Conv2D(), x, _type((3, 1, 1, 1), 0.5), y).is_per_channel


def test_mean_folds_the_count_into_the_multiplier() -> None:
    """49 elements: the multiplier is shifted left by 5 bits before the truncating division."""
    x, y = _type((1, 7, 7, 2), 0.1), _type((1, 2), 0.1)
    params = sum_params(Mean(axes=(1, 2)), x, y)
    assert params.count == 49
    assert params.multiplier == ((1 << 35) // 49, 1 - 5)


def test_add_and_sub_share_their_parameters() -> None:
    """The operand with the larger scale is halved, the other scaled to it."""
    x1, x2, y = _type((1,), 0.1), _type((1,), 0.037), _type((1,), 0.11)
    params = add_params(Add(), x1, x2, y)
    assert params == add_params(Sub(), x1, x2, y)
    assert params.input1 == (1 << 30, 0)
    multiplier, shift = params.input2
    assert math.ldexp(multiplier, shift - 31) == pytest.approx(0.185)


def test_relu6_of_one_scale_only_clamps() -> None:
    """It has no multiplier then; of two scales it has one, like RELU."""
    x = _type((1,), 0.05, -20)
    params = relu_params(Relu(Activation.RELU6), x, x)
    assert params.multiplier is None
    assert (params.activation_min, params.activation_max) == (-20, 100)
    params = relu_params(Relu(Activation.RELU6), x, _type((1,), 0.1, 9))
    assert params.multiplier == (1 << 30, 0)
    assert (params.activation_min, params.activation_max) == (9, 69)


def test_tables_cover_int8_only() -> None:
    """A look-up exists for int8 to int8; its first entry belongs to -128."""
    x, y = _type((4,), 0.05), _type((4,), 1 / 128)
    assert has_table(Tanh(), x, y)
    assert not has_table(Tanh(), TensorType((4,), DType.FLOAT32), y)
    assert not has_table(Conv2D(), x, y)
    table = lookup_table(Tanh(), x, y)
    assert table.shape == (256,) and table.dtype == np.int8
    expected = np.round(np.tanh(np.arange(-128, 128) * x.quant.scale) * 128)
    assert np.abs(table - np.clip(expected, -128, 127)).max() <= 1


def test_hard_swish_table_follows_the_real_function() -> None:
    """The 16-bit computation stays within one step of x * relu6(x + 3) / 6."""
    x, y = _type((4,), 0.06, 5), _type((4,), 0.04, -100)
    real = (np.arange(-128, 128) - 5) * x.quant.scale
    expected = np.round(real * np.clip(real + 3, 0, 6) / 6 / y.quant.scale) - 100
    table = lookup_table(HardSwish(), x, y).astype(int)
    assert np.abs(table - np.clip(expected, -128, 127)).max() <= 1


@given(st.integers(1, 70), st.integers(1, 70), st.booleans(), st.booleans())
def test_bilinear_coordinates_stay_inside(
    size: int, result: int, corners: bool, centers: bool
) -> None:
    """Both indices are elements of the axis and neighbours, also where the scale overshoots."""
    op = ResizeBilinear(align_corners=corners, half_pixel_centers=centers and not corners)
    axis = bilinear_axis(op, size, result)
    exact = bilinear_axis_float(op, size, result)
    for lower, upper in (*zip(axis.lower, axis.upper, strict=True),
                         *zip(exact.lower, exact.upper, strict=True)):  # fmt: skip
        assert 0 <= lower < size and 0 <= upper < size and 0 <= upper - lower <= 1


def test_bilinear_scale_that_overshoots() -> None:
    """One element resized to 62: the rounded scale passes the end and is kept on the element."""
    axis = bilinear_axis(ResizeBilinear(), 1, 62)
    assert set(axis.lower) == set(axis.upper) == {0}
    assert axis.weight[-1] == 61 * 17


@given(st.integers(1, 40), st.integers(1, 40))
def test_nearest_indices_are_monotonic(size: int, result: int) -> None:
    """Nearest neighbours never go back, start at 0 and stay inside."""
    indices = nearest_indices(ResizeNearestNeighbor(), size, result)
    assert indices[0] == 0 and max(indices) < size
    assert list(indices) == sorted(indices)
