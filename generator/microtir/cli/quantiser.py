"""Defines what a command line says of quantisation."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from microtir.quantise import QuantiseOptions


@dataclass(frozen=True, slots=True)
class Quantiser:
    """Say what a command line makes of a float model.

    Args:
        samples: the file with samples of its inputs.
        labels: the name of the array in it that says what is right; None for the usual ones.
        options: of the quantiser.
        max_loss: the share that a search over the widths of layers may lose; None without a search.
    """

    samples: Path
    labels: str | None
    options: QuantiseOptions
    max_loss: float | None
