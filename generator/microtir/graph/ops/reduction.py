"""Operators that combine elements along axes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from microtir.graph.ops.base import Activation, Operator


@dataclass(frozen=True, slots=True)
class FullyConnected(Operator):
    """Inputs: (..., I) read as (rows, I), weights (O, I), optional bias (O,). Output rows of O."""

    name: ClassVar[str] = "fully_connected"
    activation: Activation = Activation.NONE


@dataclass(frozen=True, slots=True)
class Mean(Operator):
    """Mean over `axes` (sorted, non-negative)."""

    name: ClassVar[str] = "mean"
    axes: tuple[int, ...] = ()
    keep_dims: bool = False


@dataclass(frozen=True, slots=True)
class Softmax(Operator):
    """Over the last axis."""

    name: ClassVar[str] = "softmax"
    beta: float = 1.0  # a float32 value


@dataclass(frozen=True, slots=True)
class LogSoftmax(Operator):
    """Over the last axis."""

    name: ClassVar[str] = "log_softmax"
