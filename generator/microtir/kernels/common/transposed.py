"""Transposed convolutions: those of each phase, whose outputs lie apart."""

from __future__ import annotations

from abc import abstractmethod

from microtir.config.target import Target
from microtir.dtype import DType
from microtir.graph.ir import Node
from microtir.kernels.common.kernel import Kernel
from microtir.kernels.common.layer import Layer, Rows
from microtir.kernels.common.phases import Phase, phases, phases_of_rows
from microtir.kernels.common.refusals import type_refusal
from microtir.kernels.common.statements import seq
from microtir.operators.transposed_convolution.definition import TransposeConv
from microtir.plan.ir import IN_ONE_CALL, Calls, Refusal
from microtir.tir import ir

_LOOPS_CODE = 200  # bytes of the loops of a phase


class PhaseKernel(Kernel):
    """A kernel of convolutions that computes phases of transposed ones, too.

    Attributes:
        spreads: whether it can write pixels that lie apart.
    """

    spreads = True

    @abstractmethod
    def phase_loops(self, phase: Phase, x: Rows, y: Rows, scratch: ir.Buffer) -> ir.Stmt:
        """Return the loops over the pixels of a phase, given rows of input and output."""


def _ways(node: Node) -> list[tuple[Phase, ...]]:
    return [way for way in (phases(node), phases_of_rows(node)) if way]


class Transposed(Kernel):
    """Phase after phase, as a kernel of convolutions computes each.

    Args:
        name: of the kernel.
        of_phase: computes a phase.
        held: type of what it has in scratch.
        takes: type of inputs and outputs.
    """

    operators = (TransposeConv,)

    def __init__(
        self, name: str, of_phase: PhaseKernel, held: DType, takes: DType = DType.INT8
    ) -> None:
        self.name, self._of_phase, self._held, self._takes = name, of_phase, held, takes
        self.needs, self.cycles = of_phase.needs, of_phase.cycles
        self.has_wide_weights = of_phase.has_wide_weights

    def suits(self, target: Target) -> bool:
        return self._of_phase.suits(target)

    def reject(self, node: Node) -> Refusal | None:
        """Return what speaks against it: several images, or what speaks against a phase."""
        reason = type_refusal(node, self._takes)
        if reason is not None or node.inputs[0].shape[0] > 1:
            return reason or Refusal.IMAGES
        if min(node.output.shape) == 0:
            return Refusal.SHAPES
        refused = (self._refusal(way) for way in _ways(node))
        return None if self._ways(node) else next(filter(None, refused), Refusal.WINDOWS)

    def _ways(self, node: Node) -> list[tuple[Phase, ...]]:
        """Return the ways to cut a layer into phases that the kernel takes."""
        return [way for way in _ways(node) if self._refusal(way) is None]

    def _refusal(self, way: tuple[Phase, ...]) -> Refusal | None:
        """Return what speaks against phases, if anything."""
        if not self._of_phase.spreads and any(phase.step > 1 for phase in way):
            return Refusal.WINDOWS
        return next(filter(None, (self._of_phase.reject(phase.node) for phase in way)), None)

    def _phases(self, node: Node) -> tuple[Phase, ...]:
        """Return the phases by which a layer takes least."""
        ways, takes = self._ways(node), self._of_phase
        return min(ways, key=lambda way: sum(takes.instructions(p.node, IN_ONE_CALL) for p in way))

    def scratch_bytes(self, node: Node, calls: Calls) -> int:
        """Return the bytes that the phase takes which takes most."""
        return max(self._of_phase.scratch_bytes(phase.node, calls) for phase in self._phases(node))

    def instructions(self, node: Node, calls: Calls) -> int:
        return sum(self._of_phase.instructions(phase.node, calls) for phase in self._phases(node))

    def packed_bytes(self, node: Node) -> int:
        return sum(self._of_phase.packed_bytes(phase.node) for phase in self._phases(node))

    def code_bytes(self, node: Node) -> int:
        """Return the bytes of the kernels, which phases of as many steps share, and of loops."""
        of_each = [self._of_phase.code_bytes(phase.node) for phase in self._phases(node)]
        return sum(set(of_each)) + _LOOPS_CODE * len(of_each)

    def emit(self, layer: Layer, name: str) -> ir.PrimFunc:
        """Return the layer function: phase by phase, all with one scratch."""
        x, y = layer.input_rows(0), layer.output_rows()
        size = self.scratch_bytes(layer.node, IN_ONE_CALL) // self._held.bytes
        # One row, so that whoever follows rows of buffers sees one span of bytes.
        scratch = ir.Buffer("scratch", (1, size), self._held, alignment=4)
        loops = (
            self._of_phase.phase_loops(phase, x, y, scratch) for phase in self._phases(layer.node)
        )
        return layer.function(name, scratch if size else None, seq(*loops))
