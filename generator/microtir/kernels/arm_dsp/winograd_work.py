"""Costs of the parts of Winograd's convolutions: instructions, and cycles of each part.

How many cycles an instruction takes differs from part to part, by the words that it loads or stores
and by calls, and how much there is of each differs from layer to layer.
"""

from __future__ import annotations

from dataclasses import astuple, dataclass


@dataclass(frozen=True, slots=True)
class Work:
    """Instructions of each part, or cycles of 100 instructions of it.

    Attributes:
        copied: of rows of windows, to scratch.
        transformed: of inputs.
        summed: of the steps of sums.
        finished: of outputs, and of what surrounds sums.
        weights: of weights that are transformed at run time.
        calls: that copy pixels one by one, or cycles of 100 of them beyond their instructions.
    """

    copied: int
    transformed: int
    summed: int
    finished: int
    weights: int = 0
    calls: int = 0

    @property
    def instructions(self) -> int:
        return self.copied + self.transformed + self.summed + self.finished + self.weights

    def cycles(self, instructions: int, of_100: Work) -> int:
        """Return the cycles of so many instructions, of which the parts have their shares."""
        hundredths: int = sum(a * b for a, b in zip(astuple(self), astuple(of_100), strict=True))
        return instructions * hundredths // (100 * self.instructions)
