"""Transposed convolutions: those of each phase, whose outputs lie apart."""

from __future__ import annotations

from microtir.graph.ir import Node
from microtir.kernels.common.phase_kernel import InPhases
from microtir.kernels.common.phases import Phase, phases, phases_of_rows
from microtir.operators.transposed_convolution.definition import TransposeConv
from microtir.plan.ir import IN_ONE_CALL, Refusal

_LOOPS_CODE = 200  # bytes of the loops of a phase


def _all_ways(node: Node) -> list[tuple[Phase, ...]]:
    return [way for way in (phases(node), phases_of_rows(node)) if way]


class Transposed(InPhases):
    """Phase after phase, cut in the way that takes least."""

    operators = (TransposeConv,)

    def unfit(self, node: Node) -> Refusal | None:
        """Return what speaks against it: several images, or what speaks against a phase."""
        if node.inputs[0].shape[0] > 1:
            return Refusal.IMAGES
        refused = (self._refusal(way) for way in _all_ways(node))
        return None if self._ways(node) else next(filter(None, refused), Refusal.WINDOWS)

    def phases(self, node: Node) -> tuple[Phase, ...]:
        """Return the phases by which a layer takes least."""
        ways, takes = self._ways(node), self._of_phase
        return min(ways, key=lambda way: sum(takes.instructions(p.node, IN_ONE_CALL) for p in way))

    def code_bytes(self, node: Node) -> int:
        """Return the bytes of the kernels, and of the loops of each phase."""
        return super().code_bytes(node) + _LOOPS_CODE * len(self.phases(node))

    def _ways(self, node: Node) -> list[tuple[Phase, ...]]:
        """Return the ways to cut a layer into phases that the kernel takes."""
        return [way for way in _all_ways(node) if self._refusal(way) is None]

    def _refusal(self, way: tuple[Phase, ...]) -> Refusal | None:
        """Return what speaks against phases, if anything."""
        if not self._of_phase.spreads and any(phase.step > 1 for phase in way):
            return Refusal.WINDOWS
        return next(filter(None, (self._of_phase.reject(phase.node) for phase in way)), None)
