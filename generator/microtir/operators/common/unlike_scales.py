"""Say what references do where input and output of an operator have different scales."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

import numpy as np

from microtir.dtype import DType
from microtir.graph.ir import Quantization, TensorType
from microtir.operators.common.types import QUANTISED


class UnlikeScales(Enum):
    """A reference's treatment of stored integers whose output has another scale or zero point."""

    COPIES = "copies"  # so that they stand for other real numbers
    RESCALES = "rescales"
    REFUSES = "refuses"


NARROW = frozenset({*QUANTISED, DType.UINT8})
"""Types whose integers stand for real numbers."""


def _by_name(dtype: DType) -> str:
    return str(dtype.value)


@dataclass(frozen=True, slots=True)
class Moved:
    """Behaviour of the references for an operator of TFLite that has a meaning in one scale alone.

    Where one of them has no kernel of a type, the word of the other counts for both.

    Args:
        types: those that this is about.
        refused_by_micro: those of them whose scales tflite-micro compares.
        refused_by_litert: those whose scales LiteRT compares.
        without_micro: those of which tflite-micro has no kernel.
        litert_rescales: whether LiteRT keeps real values, where it does not refuse.
        in_input_scale: whether the operator computes in the scale of its input, and not in that of
            its output, whose zero point pads and whose scale clamps.
        has_own_scales: whether it rescales between scales of its tensors.  Then this is about
            scales for each channel alone, of which tflite-micro takes the first ones.
        compared: the inputs whose scales the references compare with that of the output; None for
            all.  Integers of the others are copied by both.
        taken_as_equal: by how much two scales differ at most that tflite-micro takes for equal.
    """

    types: frozenset[DType] = NARROW
    refused_by_micro: frozenset[DType] = frozenset()
    refused_by_litert: frozenset[DType] = frozenset()
    without_micro: frozenset[DType] = frozenset()
    litert_rescales: bool = False
    in_input_scale: bool = False
    has_own_scales: bool = False
    compared: frozenset[int] | None = None
    taken_as_equal: float = 0.0

    def by_micro(self, source: TensorType, taken: TensorType) -> UnlikeScales:
        """Return what tflite-micro does between two scales; of those for each channel, the first.

        Args:
            source: of a tensor of the operator.
            taken: of the tensor that its scale is compared with.
        """
        if source.dtype in self.without_micro:
            return self.by_litert(source, taken)
        (one, first), (other, second) = map(_by_micro, (source, taken))
        is_near = first == second and float(abs(one - other)) <= self.taken_as_equal
        is_refused = source.dtype in self.refused_by_micro and not is_near
        return UnlikeScales.REFUSES if is_refused else UnlikeScales.COPIES

    def by_litert(self, source: TensorType, taken: TensorType) -> UnlikeScales:
        """Return what LiteRT does, for which scales for each channel are none."""
        if source.dtype in self.refused_by_litert and _by_litert(source) != _by_litert(taken):
            return UnlikeScales.REFUSES
        return UnlikeScales.RESCALES if self.litert_rescales else UnlikeScales.COPIES

    @property
    def words(self) -> str:
        """Return for which types scales may differ, and who copies integers then."""
        if self.compared is not None:
            return "all but values to pad with else copied as stored"
        if self.has_own_scales:
            return "the first of several by tflite-micro"
        taken = sorted(filter(self.takes, NARROW), key=_by_name)
        who = ""
        if self.litert_rescales or not self.refused_by_litert.isdisjoint(taken):
            who = " by tflite-micro"
        elif not self.refused_by_micro.isdisjoint(taken):
            who = " by LiteRT"
        return f"{', '.join(map(_by_name, taken))} else copied as stored{who}"

    def is_compared(self, position: int) -> bool:
        """Return whether a reference compares the scale of an input with that of the output."""
        return self.compared is None or position in self.compared

    def takes(self, dtype: DType) -> bool:
        """Return whether a reference takes scales that differ."""
        refused = (self.refused_by_micro | self.without_micro) & self.refused_by_litert
        return dtype in self.types - refused


_NO_SCALE = (np.float32(0), 0)


def _by_micro(tensor: TensorType) -> tuple[np.float32, int]:
    """Return the scale and zero point that tflite-micro has of a tensor."""
    quant = tensor.quantization
    return _NO_SCALE if quant is None else (np.float32(quant.scales[0]), quant.zero_points[0])


def _by_litert(tensor: TensorType) -> tuple[np.float32, int]:
    """Return those that LiteRT has."""
    quant = tensor.quantization
    return _NO_SCALE if quant is None or quant.is_per_channel else _by_micro(tensor)


@dataclass(frozen=True, slots=True)
class FixedResult:
    """Behaviour of the references for an operator whose result they compute in one quantisation.

    Args:
        source: the type of the input.
        result: that of the output.
        quantization: of what is computed.
        refused_by_micro: whether tflite-micro refuses all but nearly this one.
        zero_by_micro: whether tflite-micro refuses another zero point; it copies results otherwise.
        scale_by_litert: whether LiteRT refuses another scale.
        litert_rescales: whether LiteRT computes in the quantisation of the output; else it copies.
    """

    source: DType
    result: DType
    quantization: Quantization
    refused_by_micro: bool = False
    zero_by_micro: bool = False
    scale_by_litert: bool = False
    litert_rescales: bool = False

    def by_micro(self, taken: Quantization) -> UnlikeScales:
        """Return what tflite-micro does where the output has this quantisation."""
        other_zero = taken.zero_points != self.quantization.zero_points
        is_refused = self.refused_by_micro or (self.zero_by_micro and other_zero)
        return UnlikeScales.REFUSES if is_refused else UnlikeScales.COPIES

    def is_of(self, source: DType, result: DType) -> bool:
        """Return whether this is said of an operator of these types."""
        return (self.source, self.result) == (source, result)

    def by_litert(self, taken: Quantization) -> UnlikeScales:
        if self.scale_by_litert and taken.scales != self.quantization.scales:
            return UnlikeScales.REFUSES
        return UnlikeScales.RESCALES if self.litert_rescales else UnlikeScales.COPIES

    @property
    def words(self) -> str:
        """Return what else an output may have."""
        who = "by tflite-micro" if self.litert_rescales else "by LiteRT"
        return f"{self.source.value} to {self.result.value} in another is copied as stored {who}"


COPIED = Moved()
"""Behaviour of operators for which neither reference compares scales."""

POOLED = Moved(refused_by_micro=frozenset(QUANTISED), taken_as_equal=1e-6)
"""Behaviour of pooling: tflite-micro compares scales; it has no kernel of uint8."""


def copied_by_micro(*types: DType) -> Moved:
    """Return what is said where LiteRT compares scales, and tflite-micro has kernels of types."""
    return Moved(refused_by_litert=NARROW, without_micro=NARROW.difference(types))
