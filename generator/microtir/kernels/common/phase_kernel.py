"""Layers that consist of convolutions, each of which a kernel of convolutions computes."""

from __future__ import annotations

from abc import abstractmethod

from microtir.config.target import Target
from microtir.dtype import DType
from microtir.graph.ir import Node
from microtir.kernels.common.kernel import Kernel
from microtir.kernels.common.layer import Layer, Rows
from microtir.kernels.common.phases import Phase
from microtir.kernels.common.refusals import type_refusal
from microtir.kernels.common.statements import seq
from microtir.plan.ir import IN_ONE_CALL, Calls, Refusal
from microtir.tir import ir


class PhaseKernel(Kernel):
    """A kernel of convolutions that computes phases of other layers, too.

    Attributes:
        spreads: whether it can write pixels that lie apart.
    """

    spreads = True

    @abstractmethod
    def phase_loops(self, phase: Phase, x: Rows, y: Rows, scratch: ir.Buffer) -> ir.Stmt:
        """Return the loops over the pixels of a phase, given rows of input and output."""


class InPhases(Kernel):
    """Phase after phase, all with one scratch.

    Args:
        name: of the kernel.
        of_phase: computes a phase.
        held: type of what it has in scratch.
        takes: type of inputs and outputs.
    """

    phase_calls: Calls | None = None  # how rows of a phase are called; None: as those of the layer

    def __init__(
        self, name: str, of_phase: PhaseKernel, held: DType, takes: DType = DType.INT8
    ) -> None:
        self.name, self._of_phase, self._held, self._takes = name, of_phase, held, takes
        self.needs, self.cycles = of_phase.needs, of_phase.cycles
        self.has_wide_weights = of_phase.has_wide_weights
        self.rescales_in_float = of_phase.rescales_in_float

    @abstractmethod
    def phases(self, node: Node) -> tuple[Phase, ...]:
        """Return the phases of a layer."""

    @abstractmethod
    def unfit(self, node: Node) -> Refusal | None:
        """Return what speaks against a layer of the right types that has outputs."""

    def suits(self, target: Target) -> bool:
        return self._of_phase.suits(target)

    def suits_node(self, node: Node, target: Target) -> bool:
        return self._of_phase.suits_node(node, target)

    def reject(self, node: Node) -> Refusal | None:
        """Return what speaks against it: other types, nothing to compute, or what is unfit."""
        reason = type_refusal(node, self._takes)
        if reason is None and min(node.output.shape) == 0:
            return Refusal.SHAPES
        return reason or self.unfit(node)

    def scratch_bytes(self, node: Node, calls: Calls) -> int:
        """Return the bytes that the phase takes which takes most."""
        calls = self.phase_calls or calls
        return max(self._of_phase.scratch_bytes(phase.node, calls) for phase in self.phases(node))

    def instructions(self, node: Node, calls: Calls) -> int:
        calls = self.phase_calls or calls
        return sum(self._of_phase.instructions(phase.node, calls) for phase in self.phases(node))

    def packed_bytes(self, node: Node) -> int:
        return sum(self._of_phase.packed_bytes(phase.node) for phase in self.phases(node))

    def code_bytes(self, node: Node) -> int:
        """Return the bytes of the kernels, which phases of as many steps share."""
        return sum({self._of_phase.code_bytes(phase.node) for phase in self.phases(node)})

    def emit(self, layer: Layer, name: str) -> ir.PrimFunc:
        size = self.scratch_bytes(layer.node, IN_ONE_CALL) // self._held.bytes
        # One row, so that whoever follows rows of buffers sees one span of bytes.
        scratch = ir.Buffer("scratch", (1, size), self._held, alignment=4)
        return layer.function(name, scratch if size else None, self.loops(layer, scratch))

    def loops(self, layer: Layer, scratch: ir.Buffer) -> ir.Stmt:
        """Return the loops over all pixels: those of one phase after the other."""
        x, y = layer.input_rows(0), layer.output_rows()
        all_phases = self.phases(layer.node)
        return seq(*(self._of_phase.phase_loops(phase, x, y, scratch) for phase in all_phases))
