"""Post-training quantisation of float graphs, on graphs of this compiler."""

from microtir.quantise.bits.frontier import Goal, Limits, Point, Price
from microtir.quantise.bits.search import WidthSearch, search_widths
from microtir.quantise.bits.sensitivity import Sensitivity
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
    "Goal",
    "LayerFigures",
    "LayerWidth",
    "LeftInFloats",
    "Limits",
    "Point",
    "PortType",
    "Price",
    "QuantiseOptions",
    "Quantised",
    "Sensitivity",
    "TensorRange",
    "Width",
    "WidthSearch",
    "quantise",
    "search_widths",
]
