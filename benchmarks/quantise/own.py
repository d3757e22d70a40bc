"""The networks through this project's quantiser, and the outputs of the C that becomes of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from types import MappingProxyType

import numpy as np

from benchmarks.quantise.networks import Network, onnx_file
from benchmarks.quantise.rivals import Answer, Rival
from benchmarks.quantise.tasks import Array, Split
from microtir import driver, frontend, host
from microtir.module.ir_module import IRModule
from microtir.quantise import Calibration, PortType, QuantiseOptions, Width, quantise
from microtir.writers import tflite_bytes


def _quantised(
    options: QuantiseOptions, network: Network, weights: Sequence[Array], split: Split
) -> Answer:
    """Quantise a network, and run its C on this machine."""
    graph = frontend.read_model(onnx_file(network, weights), name="net").graph
    assert graph is not None
    (port,) = graph.arguments
    quantised = quantise(graph, {port.name: split.calibration}, options)
    model = host.load(driver.build(IRModule(graph=quantised.graph)))
    shape = port.shape
    outputs = [
        next(iter(model.run({port.name: sample.reshape(shape)}).values())).reshape(-1)
        for sample in split.test_x
    ]
    file = tflite_bytes(quantised.graph, int4=quantised.weights4)
    return Answer(np.stack(outputs), file)


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
    }
)  # fmt: skip
"""The ways of this quantiser by name."""
