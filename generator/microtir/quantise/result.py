"""Hold what quantisation gives: the graph of integers, and what was learnt on the way."""

from __future__ import annotations

from dataclasses import dataclass

from microtir.graph.ir import Graph, SourceLocation, TensorType
from microtir.quantise.options import Calibration, Width


@dataclass(frozen=True, slots=True)
class TensorRange:
    """The range of an activation.

    Args:
        name: of the tensor.
        type: of its integers.
        seen: the least and the largest value of all samples.
        chosen: the least and the largest value that its integers stand for.
        calibration: that chose it; None where the operator fixes it.
        clipped: the share of the values that lie outside.
        excess: by how much the range that was seen exceeds that of 99.9 % of the values; 1 where
            the operator fixes the range.
        error: the measured mean squared error of the stored values, in real numbers.
    """

    name: str
    type: TensorType
    seen: tuple[float, float]
    chosen: tuple[float, float]
    calibration: Calibration | None
    clipped: float
    excess: float
    error: float


@dataclass(frozen=True, slots=True)
class LayerFigures:
    """Figures of a layer of integers, on samples that were not used for calibration.

    Args:
        name: of the layer.
        operator: what it is called in the file.
        width: that it has.
        sqnr: power of the float result over that of the difference, in dB.
        dead: channels of weights that are all 0, by their numbers.
        outlier: by how much the largest weight of a channel exceeds the median of the channels.
    """

    name: str
    operator: str
    width: Width
    sqnr: float
    dead: tuple[int, ...] = ()
    outlier: float = 1.0


@dataclass(frozen=True, slots=True)
class LeftInFloats:
    """A layer that stays in floats, and why."""

    name: str
    source: SourceLocation
    why: str


@dataclass(frozen=True, slots=True, eq=False)
class Quantised:
    """A quantised graph.

    Args:
        graph: of integers, but for the layers of `floats`.
        floats_graph: the float graph as it was prepared, with the same names of tensors.
        tensors: the ranges of the activations, in their order.
        layers: figures of the layers with integers, in their order; empty where no sample was left
            to measure with.
        floats: the layers that stay in floats.
        weights4: the names of the constants that hold 4 bits in an int8.
        warnings: what the user should know of the samples.
    """

    graph: Graph
    floats_graph: Graph
    tensors: tuple[TensorRange, ...]
    layers: tuple[LayerFigures, ...]
    floats: tuple[LeftInFloats, ...]
    weights4: frozenset[str] = frozenset()
    warnings: tuple[str, ...] = ()
