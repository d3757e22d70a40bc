"""Post-training quantisation of float graphs, on graphs of this compiler."""

from microtir.quantise.options import (
    Calibration,
    LayerWidth,
    PortType,
    QuantiseOptions,
    Width,
)
from microtir.quantise.result import LayerFigures, LeftInFloats, Quantised, TensorRange
from microtir.quantise.road import quantise

__all__ = [
    "Calibration",
    "LayerFigures",
    "LayerWidth",
    "LeftInFloats",
    "PortType",
    "QuantiseOptions",
    "Quantised",
    "TensorRange",
    "Width",
    "quantise",
]
