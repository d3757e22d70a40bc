"""Transposed convolutions as matrix products: those of each phase, whose outputs lie apart."""

from __future__ import annotations

from microtir.config import Feature
from microtir.dtype import DType
from microtir.graph.ir import Node
from microtir.kernels.arm_dsp import gemm
from microtir.kernels.arm_dsp.patch import patch_buffer, patch_counts
from microtir.kernels.common import kernel, refusals
from microtir.kernels.common.convolution_geometry import Geometry
from microtir.kernels.common.layer import Layer
from microtir.kernels.common.micro_kernel import Unroll
from microtir.kernels.common.phases import Phase, SpreadPixels, phases
from microtir.kernels.common.statements import seq
from microtir.operators.transposed_convolution.definition import TransposeConv
from microtir.plan.ir import IN_ONE_CALL, Calls, LayoutKind, Refusal
from microtir.tir import ir


class GemmTransposed(kernel.Kernel):
    """Patches of the pixels of a phase times packed weights of four channels.

    Args:
        name: of the kernel.
        unroll: of the sums.
    """

    operators = (TransposeConv,)
    needs = Feature.DSP

    def __init__(self, name: str, unroll: Unroll) -> None:
        self.name, self._of_phase = name, gemm.Gemm(name, unroll, LayoutKind.NHWC)
        self.cycles = self._of_phase.cycles

    def reject(self, node: Node) -> Refusal | None:
        """Return what speaks against it: several images, or what speaks against a phase."""
        reason = refusals.int8_refusal(node)
        if reason is not None or node.inputs[0].shape[0] > 1:
            return reason or Refusal.IMAGES
        if min(node.output.shape) == 0:
            return Refusal.SHAPES
        return next(filter(None, (gemm.of_groups(phase.node) for phase in phases(node))), None)

    def scratch_bytes(self, node: Node, calls: Calls) -> int:
        """Return the bytes of the largest patch."""
        return max(self._of_phase.scratch_bytes(phase.node, calls) for phase in phases(node))

    def instructions(self, node: Node, calls: Calls) -> int:
        return sum(self._of_phase.instructions(phase.node, calls) for phase in phases(node))

    def packed_bytes(self, node: Node) -> int:
        return sum(self._of_phase.packed_bytes(phase.node) for phase in phases(node))

    def code_bytes(self, node: Node) -> int:
        """Return the bytes of the kernels; phases of as many steps share them."""
        return sum({self._of_phase.code_bytes(phase.node) for phase in phases(node)})

    def emit(self, layer: Layer, name: str) -> ir.PrimFunc:
        """Return the layer function: phase by phase, all with one patch in scratch."""
        x, y = layer.input_rows(0), layer.output_rows()
        patch = patch_buffer(self.scratch_bytes(layer.node, IN_ONE_CALL) // DType.INT16.bytes)

        def pixels(phase: Phase) -> ir.Stmt:
            geometry, sink = Geometry.of(phase.node), SpreadPixels(y, phase)
            rows, step = (0, geometry.output.height), phase.strides[1]
            counts = patch_counts(geometry)
            part = gemm.Part(phase.node, rows, counts, sink, step=step)
            return self._of_phase.loops(part, x, patch)

        return layer.function(name, patch, seq(*map(pixels, phases(layer.node))))
