"""What operators ask of the quantisation of their integer tensors; one class per rule."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from microtir.frontend.tflite_file import brief
from microtir.graph.ir import Quantization, Tensor

_REQUANTIZE = "convert the model again with full integer quantisation"


@dataclass(frozen=True, slots=True)
class Problem:
    """What is wrong, what would be legal, what to do."""

    what: str
    legal: str
    fix: str = _REQUANTIZE


@dataclass(frozen=True, slots=True)
class QuantizationRule:
    """Base of the rules."""

    @property
    def text(self) -> str:
        """The rule in words."""
        return ""

    def problems(
        self, inputs: tuple[Tensor, ...], outputs: tuple[Tensor, ...]
    ) -> Iterator[Problem]:
        """All problems of a node whose types are legal."""
        yield from ()


@dataclass(frozen=True, slots=True)
class Unused(QuantizationRule):
    """Quantisation plays no part."""

    @property
    def text(self) -> str:
        return "not used"


@dataclass(frozen=True, slots=True)
class Own(QuantizationRule):
    """Every integer tensor has a per-tensor quantisation."""

    @property
    def text(self) -> str:
        return "each tensor its own"

    def problems(
        self, inputs: tuple[Tensor, ...], outputs: tuple[Tensor, ...]
    ) -> Iterator[Problem]:
        for tensor in dict.fromkeys((*inputs, *outputs)):
            quantization = tensor.type.quantization
            if tensor.dtype.is_float:
                continue
            if quantization is None:
                yield Problem(f"{_named(tensor)} has no quantisation", "a scale and a zero point")
            elif quantization.is_per_channel:
                yield _per_channel(tensor)


@dataclass(frozen=True, slots=True)
class Moved(QuantizationRule):
    """All tensors have the same per-tensor quantisation, or none: nothing is computed."""

    @property
    def text(self) -> str:
        return "equal for inputs and outputs, or none"

    def problems(
        self, inputs: tuple[Tensor, ...], outputs: tuple[Tensor, ...]
    ) -> Iterator[Problem]:
        first = inputs[0]
        quantization = first.type.quantization
        if quantization is not None and quantization.is_per_channel:
            yield _per_channel(first)
            return
        for tensor in dict.fromkeys((*inputs[1:], *outputs)):
            if tensor.type.quantization != quantization:
                yield Problem(
                    f"{_named(first)} and {_named(tensor)} are quantised differently:"
                    f" {_text(quantization)}; {_text(tensor.type.quantization)}",
                    "one scale and zero point for all inputs and outputs",
                    "put a QUANTIZE operator between, as converters do by default",
                )


@dataclass(frozen=True, slots=True)
class Equal(QuantizationRule):
    """All integer tensors have the same per-tensor quantisation."""

    @property
    def text(self) -> str:
        return "equal for inputs and outputs"

    def problems(
        self, inputs: tuple[Tensor, ...], outputs: tuple[Tensor, ...]
    ) -> Iterator[Problem]:
        yield from tuple(Own().problems(inputs, outputs)) or Moved().problems(inputs, outputs)


@dataclass(frozen=True, slots=True)
class Weights(QuantizationRule):
    """Activations have their own; weights and bias per tensor or channel, with zero point 0.

    Attributes:
        axis: dimension of the weights that per-channel scales run along.
    """

    axis: int = 0

    @property
    def text(self) -> str:
        return "activations their own; weights per tensor or channel, zero point 0"

    def problems(
        self, inputs: tuple[Tensor, ...], outputs: tuple[Tensor, ...]
    ) -> Iterator[Problem]:
        yield from Own().problems(inputs[:1], outputs)
        if inputs[1].dtype.is_int and inputs[1].type.quantization is None:
            yield Problem(f"{_named(inputs[1])} has no quantisation", "a scale per channel")
        for tensor, axis in zip(inputs[1:], (self.axis, 0), strict=False):
            quantization = tensor.type.quantization
            if quantization is None:
                continue
            if quantization.axis not in (None, axis):
                yield Problem(
                    f"{_named(tensor)} is quantised along axis {quantization.axis}",
                    f"per tensor, or along axis {axis}",
                )
            if any(quantization.zero_points):
                yield Problem(f"{_named(tensor)} has a zero point that is not 0", "0")


@dataclass(frozen=True, slots=True)
class Fixed(QuantizationRule):
    """Integer inputs have their own; the output has the one that its range asks for."""

    output: Quantization

    @property
    def text(self) -> str:
        return f"inputs their own; output {_text(self.output)}"

    def problems(
        self, inputs: tuple[Tensor, ...], outputs: tuple[Tensor, ...]
    ) -> Iterator[Problem]:
        problems = tuple(Own().problems(inputs, outputs))
        yield from problems
        for tensor in outputs:
            actual = tensor.type.quantization
            if not problems and actual is not None and actual != self.output:
                yield Problem(
                    f"{_named(tensor)} is quantised with {_text(actual)}", _text(self.output)
                )


def _per_channel(tensor: Tensor) -> Problem:
    return Problem(
        f"{_named(tensor)} is quantised per channel",
        "per tensor; only weights are quantised per channel",
    )


def _named(tensor: Tensor) -> str:
    return repr(brief(tensor.name))


def _text(quantization: Quantization | None) -> str:
    if quantization is None:
        return "none"
    if quantization.is_per_channel:
        return f"{len(quantization.scales)} scales along axis {quantization.axis}"
    return f"scale {quantization.scale:.9g}, zero point {quantization.zero_point}"
