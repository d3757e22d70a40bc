from __future__ import annotations

import json
from dataclasses import asdict

import numpy as np
import pytest

from microtir.errors import UsageError
from microtir.frontend import from_tflite, inspect
from microtir.frontend.inspect import TensorSummary
from microtir.module.ir_module import IRModule
from microtir.operators.arithmetic.tflite import AddOptions
from microtir.operators.common.tflite_schema import BuiltinOperator, Padding
from microtir.operators.convolution.tflite import Conv2DOptions, DepthwiseConv2DOptions
from microtir.operators.dense.tflite import FullyConnectedOptions
from microtir.rewrite.facts.macs import macs
from microtir.writers.tflite import TfliteBuilder
from tests.frontend.models import Value, add, int8, model, read_node, zeros


def test_layers_and_totals() -> None:
    """Each layer says what it is made of; a constant that two layers share counts once."""
    builder = TfliteBuilder()
    source = add(builder, Value((1, 4, 4, 2)), "source")
    shared = add(builder, zeros(2), "shared")
    middle = add(builder, Value((1, 4, 4, 2)), "middle")
    result = add(builder, Value((1, 4, 4, 2)), "result")
    builder.operator(BuiltinOperator.ADD, [source, shared], [middle], AddOptions())
    builder.operator(BuiltinOperator.ADD, [middle, shared], [result], AddOptions())
    data = builder.build([source], [result])
    summary = inspect(from_tflite(data, name="twice"))
    assert (summary.name, summary.source_bytes) == ("twice", len(data))
    assert [layer.name for layer in summary.layers] == ["middle", "result"]
    assert [layer.parameters for layer in summary.layers] == [2, 2]
    assert (summary.parameters, summary.parameter_bytes, summary.macs) == (2, 8, 0)
    assert summary.layers[0].operator == "add"
    assert summary.layers[0].source_operator == "ADD"


def test_tensors_are_plain_values() -> None:
    """A summary of a quantised model goes through JSON."""
    summary = inspect(from_tflite(model(BuiltinOperator.RELU, [int8(1, 8)], int8(1, 8))))
    assert summary.inputs == (TensorSummary("x0", (1, 8), "int8", 8, False, (0.5,), (3,), None),)
    restored = json.loads(json.dumps(asdict(summary)))
    assert restored["layers"][0]["outputs"][0]["scales"] == [0.5]


def test_macs() -> None:
    """Multiply-accumulates are output elements times the weights that each of them meets."""
    convolution = read_node(
        BuiltinOperator.CONV_2D,
        [Value((1, 8, 8, 3)), zeros(5, 3, 3, 3), zeros(5)],
        Value((1, 4, 4, 5)),
        Conv2DOptions(Padding.SAME, 2, 2),
    )
    assert macs(convolution) == 4 * 4 * 5 * 3 * 3 * 3
    depthwise = read_node(
        BuiltinOperator.DEPTHWISE_CONV_2D,
        [Value((1, 8, 8, 3)), zeros(1, 3, 3, 6)],
        Value((1, 8, 8, 6)),
        DepthwiseConv2DOptions(depth_multiplier=2),
    )
    assert macs(depthwise) == 8 * 8 * 6 * 3 * 3
    dense = read_node(
        BuiltinOperator.FULLY_CONNECTED,
        [Value((2, 7)), zeros(5, 7)],
        Value((2, 5)),
        FullyConnectedOptions(),
    )
    assert macs(dense) == 2 * 7 * 5


def test_per_channel_scales() -> None:
    """Scales per channel are listed with their axis."""
    weights = zeros(2, 1, 1, 3, dtype=np.int8, scales=(0.5, 0.25), axis=0)
    data = model(
        BuiltinOperator.CONV_2D, [int8(1, 2, 2, 3), weights], int8(1, 2, 2, 2), Conv2DOptions()
    )
    (layer,) = inspect(from_tflite(data)).layers
    assert (layer.inputs[1].scales, layer.inputs[1].axis) == ((0.5, 0.25), 0)
    assert layer.parameter_bytes == 6


def test_a_module_without_a_graph_is_refused() -> None:
    """There is nothing to inspect in a module of functions."""
    with pytest.raises(UsageError, match="holds functions and no graph"):
        inspect(IRModule())
