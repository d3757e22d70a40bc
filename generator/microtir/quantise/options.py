"""Say how a float graph becomes integers: widths, calibration, what improves it."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from fnmatch import fnmatchcase

from microtir.errors import UsageError


class Width(Enum):
    """The integers of a layer: those of its activations, and those of its weights."""

    INT8 = "int8"
    INT16 = "16x8"  # activations of 16 bits, weights of 8
    WEIGHTS4 = "weights4"  # activations of 8 bits, weights of 4 where there is a kernel
    FLOAT = "float"


class Calibration(Enum):
    """The way from values that were seen to the range that integers stand for."""

    AUTO = "auto"  # for each tensor the one of least measured error
    MINMAX = "minmax"
    AVERAGE = "average"  # moving average of the extremes of each sample
    PERCENTILE = "percentile"
    MSE = "mse"  # least mean squared error
    ENTROPY = "entropy"  # least divergence of the distributions


class PortType(Enum):
    """The type of the inputs and outputs of real numbers."""

    FLOAT = "float"
    INT8 = "int8"
    UINT8 = "uint8"
    LAYER = "layer"  # as the layer behind or before it stores it


@dataclass(frozen=True, slots=True)
class LayerWidth:
    """The width of the layers whose name fits a pattern with `*` and `?`."""

    pattern: str
    width: Width


@dataclass(frozen=True, slots=True)
class QuantiseOptions:
    """Options of post-training quantisation.

    Args:
        width: of all layers that no pattern names.
        layers: widths by patterns of names; of several patterns that fit the last one counts.
        calibration: of the ranges of activations.
        percentile: of the values that such a range holds, in percent, above 50 and at most 100.
        inputs: the type of inputs of real numbers.
        outputs: the type of outputs of real numbers.
        equalise: whether factors of channels move from activations into the weights of a depthwise
            layer behind them.
        correct_bias: whether biases take up the mean error that is measured.
        rounding_work: billions of operations that adaptive rounding of weights may take, of which
            a core does some three in a second; 0 for none.
        holdout: the share of the samples that measures and is not calibrated on, from 0 to 0.9.
    """

    width: Width = Width.INT8
    layers: tuple[LayerWidth, ...] = ()
    calibration: Calibration = Calibration.AUTO
    percentile: float = 99.99
    inputs: PortType = PortType.LAYER
    outputs: PortType = PortType.LAYER
    equalise: bool = True
    correct_bias: bool = True
    rounding_work: float = 90.0
    holdout: float = 0.2

    def __post_init__(self) -> None:
        """Refuse numbers out of range.

        Raises:
            UsageError: names the field.
        """
        checks = (
            ("percentile", 50.0 < self.percentile <= 100.0, "above 50, at most 100"),
            ("rounding_work", 0.0 <= self.rounding_work <= 1e6, "0 to 1000000"),
            ("holdout", 0.0 <= self.holdout <= 0.9, "0 to 0.9"),
        )
        for field, is_legal, legal in checks:
            if not is_legal:
                value = getattr(self, field)
                where = f"QuantiseOptions({field})"
                raise UsageError(f"'{field}' is {value}", where=where, legal=legal)

    def width_of(self, layer: str) -> Width:
        """Return the width that is asked for a layer of this name."""
        widths = [one.width for one in self.layers if fnmatchcase(layer, one.pattern)]
        return widths[-1] if widths else self.width
