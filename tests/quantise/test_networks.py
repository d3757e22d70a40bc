"""Small networks: what integers cost them, and that C computes the same integers."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import microtir
from microtir import host
from microtir.dtype import DType
from microtir.graph.ir import Graph, Quantization
from microtir.module.ir_module import IRModule
from microtir.operators.activations.definition import LOGISTIC_OF_INT8
from microtir.operators.conversion.definition import Dequantize, Quantize
from microtir.operators.softmax.definition import SOFTMAX_OF_INT8
from microtir.quantise import LayerWidth, PortType, Quantised, QuantiseOptions, Width, quantise
from microtir.rewrite.reference import execute
from tests.support.float_networks import branches, image_samples, residual

OPTIONS = {
    "int8": QuantiseOptions(),
    "16x8": QuantiseOptions(Width.INT16),
    "weights4": QuantiseOptions(Width.WEIGHTS4),
    "floats outside": QuantiseOptions(inputs=PortType.FLOAT, outputs=PortType.FLOAT),
    "uint8 outside": QuantiseOptions(inputs=PortType.UINT8, outputs=PortType.UINT8),
    "uint8 around 16 bits": QuantiseOptions(
        Width.INT16, inputs=PortType.UINT8, outputs=PortType.UINT8
    ),
    "mixed": QuantiseOptions(
        layers=(LayerWidth("c*", Width.INT16), LayerWidth("[jp]*", Width.FLOAT))
    ),
}
GRAPHS = {"residual": residual, "branches": branches}


def _type_of(result: Quantised, name: str) -> tuple[DType, Quantization | None]:
    tensors = {t.name: t for t in (*result.graph.tensors(), *result.graph.outputs)}
    return tensors[name].dtype, tensors[name].type.quantization


@pytest.mark.parametrize("graph", GRAPHS)
@pytest.mark.parametrize("name", OPTIONS)
def test_c_computes_the_integers_of_the_reference(graph: str, name: str) -> None:
    """The compiled program gives the bits of the graph's meaning, with any ports."""
    result = quantise(GRAPHS[graph](), image_samples(12), OPTIONS[name])
    model = host.load(microtir.build(IRModule(graph=result.graph)), opt_level=0)
    rng = np.random.default_rng(5)
    for _ in range(3):
        inputs = {
            t.name: rng.standard_normal(t.shape).astype(np.float32)
            if t.dtype.is_float
            else rng.integers(t.dtype.min, t.dtype.max, t.shape, t.dtype.value, endpoint=True)
            for t in result.graph.inputs
        }
        expected, actual = execute(result.graph, inputs), model.run(inputs)
        for output, values in expected.items():
            np.testing.assert_array_equal(actual[output], values)


def test_normalisation_and_activation_are_part_of_layers() -> None:
    """Factors, terms and RELU6 behind a layer are no operators of integers."""
    result = quantise(residual(), image_samples(12))
    operators = [node.op.name for node in result.graph.nodes]
    assert operators == [
        "conv_2d", "depthwise_conv_2d", "conv_2d", "add", "average_pool_2d", "reshape",
        "fully_connected", "softmax",
    ]  # fmt: skip
    assert not result.floats


def test_quantisation_is_that_of_tflite_files() -> None:
    """Weights are symmetric by channel, biases in the scale of sums, results of fixed scale."""
    result = quantise(residual(), image_samples(12))
    conv = result.graph.nodes[0]
    x, weights, bias = (tensor.type for tensor in conv.inputs)
    assert weights.quant.axis == 0
    assert not any(weights.quant.zero_points)
    products = np.float32(x.quant.scale) * np.array(weights.quant.scales, np.float32)
    np.testing.assert_array_equal(np.array(bias.quant.scales, np.float32), products)
    assert result.graph.nodes[1].inputs[1].type.quant.axis == 3
    assert _type_of(result, "shares") == (DType.INT8, SOFTMAX_OF_INT8)
    pooled, total = _type_of(result, "pooled"), _type_of(result, "total")
    assert pooled == total == _type_of(result, "flat")


def test_16_bits_have_long_biases_and_no_zero_points() -> None:
    """Activations of 16x8 are symmetric, biases are of 64 bits."""
    result = quantise(residual(), image_samples(12), OPTIONS["16x8"])
    conv = result.graph.nodes[0]
    assert [t.dtype for t in conv.inputs] == [DType.INT16, DType.INT8, DType.INT64]
    assert all(t.type.quant.zero_points == (0,) for t in result.graph.nodes[3].inputs)


def test_fixed_scale_is_requantised_for_what_shares_one() -> None:
    """A logistic keeps its scale beside a convolution in a concatenation, which has its own."""
    result = quantise(branches(), image_samples(12))
    assert _type_of(result, "gate") == (DType.INT8, LOGISTIC_OF_INT8)
    join = next(node for node in result.graph.nodes if node.op.name == "concatenation")
    assert {tensor.type.quantization for tensor in join.inputs} == {join.output.type.quantization}
    assert sum(isinstance(node.op, Quantize) for node in result.graph.nodes) == 1


def test_few_bits_are_named() -> None:
    """Constants of 4 bits hold -7 to 7, and are those of layers with such weights."""
    result = quantise(residual(), image_samples(12), OPTIONS["weights4"])
    assert result.weights4 == {"wa", "wb", "wc", "wd"}
    for tensor in result.graph.tensors():
        if tensor.name in result.weights4:
            assert tensor.data is not None
            assert np.abs(tensor.data).max() == 7


def _least(result: Quantised) -> float:
    return min(layer.sqnr for layer in result.layers)


@pytest.mark.parametrize(("name", "least"), [("int8", 24.0), ("16x8", 38.0), ("weights4", 8.0)])
def test_loss_is_bounded(name: str, least: float) -> None:
    """Wider integers cost less; each costs no more than so much, on samples of their own."""
    assert _least(quantise(residual(), image_samples(40), OPTIONS[name])) >= least


def test_a_layer_can_stay_in_floats() -> None:
    """By its name; conversions stand around it, and the result says why."""
    options = QuantiseOptions(layers=(LayerWidth("c_*", Width.FLOAT),))
    result = quantise(residual(), image_samples(12), options)
    assert [(layer.name, layer.why) for layer in result.floats] == [
        ("c_node", "its width is float")
    ]
    kinds = [type(node.op) for node in result.graph.nodes]
    assert kinds.count(Dequantize) == kinds.count(Quantize) == 1


def test_ports_keep_their_names() -> None:
    """Whatever stands behind them, callers find inputs and outputs by the names of the model."""
    for options in OPTIONS.values():
        graph: Graph = quantise(branches(), image_samples(12), options).graph
        assert [t.name for t in graph.inputs] == ["image"]
        assert [t.name for t in graph.outputs] == ["gate", "largest"]


def test_uint8_is_int8_moved() -> None:
    """Ports of uint8 have the scale of int8 and its zero point plus 128."""
    signed, unsigned = (
        quantise(residual(), image_samples(12), options).graph.inputs[0].type
        for options in (OPTIONS["int8"], OPTIONS["uint8 outside"])
    )
    moved = replace(signed.quant, zero_points=(signed.quant.zero_point + 128,))
    assert (unsigned.dtype, unsigned.quantization) == (DType.UINT8, moved)
