"""The networks through this project's quantiser, and the outputs of the C that becomes of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from types import MappingProxyType

import numpy as np

from benchmarks.quantise.networks import Network, onnx_file
from benchmarks.quantise.rivals import Answer, Rival
from benchmarks.quantise.tasks import Array, Split
from microtir import driver, frontend, host
from microtir.graph.ir import Graph
from microtir.module.ir_module import IRModule
from microtir.operators import record_of
from microtir.quantise import (
    Calibration,
    Goal,
    Limits,
    PortType,
    Price,
    Quantised,
    QuantiseOptions,
    Width,
    quantise,
    search_widths,
)
from microtir.writers import tflite_bytes

_MAX_LOSS = 0.005  # half a point


def _quantised(
    options: QuantiseOptions, network: Network, weights: Sequence[Array], split: Split
) -> Answer:
    """Quantise a network, and run its C on this machine."""
    graph = _read(network, weights)
    (port,) = graph.arguments
    return _answer(quantise(graph, {port.name: split.calibration}, options), split)


def _by_layer(
    options: QuantiseOptions, network: Network, weights: Sequence[Array], split: Split
) -> Answer:
    """Choose weights of 4 or 8 bits layer by layer: the fewest bytes within `_MAX_LOSS`."""
    graph = _read(network, weights)
    (port,) = graph.arguments
    found = search_widths(
        graph, {port.name: split.calibration}, Limits(_MAX_LOSS, goal=Goal.FLASH), _weights_alone,
        options, split.calibration_y, widths=[Width.WEIGHTS4],
    )  # fmt: skip
    share = found.best.weights / sum(layer.weights for layer in found.layers)
    return replace(_answer(found.nearest, split), weights=share)


def _read(network: Network, weights: Sequence[Array]) -> Graph:
    graph = frontend.read_model(onnx_file(network, weights), name="net").graph
    assert graph is not None
    return graph


def _answer(quantised: Quantised, split: Split) -> Answer:
    """Run the C of a quantised network on this machine."""
    (port,) = quantised.graph.arguments
    model = host.load(driver.build(IRModule(graph=quantised.graph)))
    outputs = [
        next(iter(model.run({port.name: sample.reshape(port.shape)}).values())).reshape(-1)
        for sample in split.test_x
    ]
    file = tflite_bytes(quantised.graph, int4=quantised.weights4)
    return Answer(np.stack(outputs), file)


def _weights_alone(integers: Graph) -> Price:
    """Return the bytes of weights, half a byte each where all of a layer have 4 bits."""
    stored = [
        node.inputs[1].data
        for node in integers.nodes
        if record_of(node.op).definition.quantization.weight_axis is not None
    ]
    sizes = (
        -(-data.size // 2) if np.abs(data.astype(int)).max() < 1 << 3 else data.size
        for data in stored
        if data is not None
    )
    return Price(work=0, flash=sum(sizes), ram=0)


_FLOAT_PORTS = QuantiseOptions(inputs=PortType.FLOAT, outputs=PortType.FLOAT)

OWN: Mapping[str, Rival] = MappingProxyType(
    {
        "microtir": partial(_quantised, _FLOAT_PORTS),
        "microtir min-max": partial(
            _quantised,
            QuantiseOptions(
                calibration=Calibration.MINMAX, equalise=False, correct_bias=False,
                inputs=PortType.FLOAT, outputs=PortType.FLOAT,
            ),
        ),
        "microtir 4-bit weights": partial(
            _quantised,
            QuantiseOptions(
                width=Width.WEIGHTS4, inputs=PortType.FLOAT, outputs=PortType.FLOAT
            ),
        ),
        "microtir bits by layer": partial(_by_layer, _FLOAT_PORTS),
    }
)  # fmt: skip
"""The ways of this quantiser by name."""
