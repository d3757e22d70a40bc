"""Convolutions of several images: those of one image, again and again."""

from __future__ import annotations

from dataclasses import replace

from microtir import te
from microtir.dtype import DType
from microtir.graph.ir import Node, Tensor
from microtir.kernels.common.convolution_geometry import Geometry
from microtir.kernels.common.kernel import Kernel
from microtir.kernels.common.layer import Layer
from microtir.kernels.common.made_once import of_node
from microtir.kernels.common.phases import Phase
from microtir.kernels.common.refusals import type_refusal
from microtir.kernels.common.statements import loop
from microtir.kernels.common.transposed import PhaseKernel
from microtir.operators.common.rows import RowWindow
from microtir.operators.convolution.definition import Conv2D
from microtir.plan.ir import IN_ONE_CALL, Calls, Refusal
from microtir.tir import ir


@of_node
def _of_image(node: Node) -> Phase:
    """Return the convolution of one of the images of a layer, all of whose pixels it computes."""
    x, *others = node.inputs
    one, y = (Tensor(t.name, replace(t.type, shape=(1, *t.shape[1:]))) for t in (x, node.output))
    return Phase(replace(node, inputs=(one, *others), outputs=(y,)), (0, 0), (1, 1), 1)


class Frames(Kernel):
    """Image after image, as a kernel of convolutions computes each.

    Args:
        name: of the kernel.
        of_image: computes an image.
        held: type of what it has in scratch.
    """

    operators = (Conv2D,)

    def __init__(self, name: str, of_image: PhaseKernel, held: DType) -> None:
        self.name, self._kernel, self._held = name, of_image, held
        self.needs, self.cycles = of_image.needs, of_image.cycles

    def reject(self, node: Node) -> Refusal | None:
        """Return what speaks against it: a single image, or what speaks against each."""
        reason = type_refusal(node, DType.INT8)
        geometry = Geometry.of(node)
        if reason is not None or geometry.image.images < 2:
            return reason or Refusal.SEVERAL
        if geometry.is_pointwise:
            return Refusal.WINDOWS
        if min(node.output.shape) == 0:
            return Refusal.SHAPES
        return self._kernel.reject(_of_image(node).node)

    def window(self, _node: Node) -> RowWindow | None:
        """Return None: all images are computed in one call."""
        return None

    def scratch_bytes(self, node: Node, _calls: Calls) -> int:
        return self._kernel.scratch_bytes(_of_image(node).node, IN_ONE_CALL)

    def instructions(self, node: Node, _calls: Calls) -> int:
        of_one = self._kernel.instructions(_of_image(node).node, IN_ONE_CALL)
        return Geometry.of(node).image.images * of_one

    def packed_bytes(self, node: Node) -> int:
        return self._kernel.packed_bytes(_of_image(node).node)

    def code_bytes(self, node: Node) -> int:
        return self._kernel.code_bytes(_of_image(node).node)

    def emit(self, layer: Layer, name: str) -> ir.PrimFunc:
        """Return the layer function: a loop over images, all with one scratch."""
        node, x, y = layer.node, layer.input_rows(0), layer.output_rows()
        image, phase = Geometry.of(node), _of_image(node)
        size = self.scratch_bytes(node, IN_ONE_CALL) // self._held.bytes
        # One row, so that whoever follows rows of buffers sees one span of bytes.
        scratch = ir.Buffer("scratch", (1, size), self._held, alignment=4)

        def of_one(number: te.Expr) -> ir.Stmt:
            rows = replace(x, top=number * image.image.height)
            written = replace(y, top=number * image.output.height)
            return self._kernel.phase_loops(phase, rows, written, scratch)

        loops = loop("image", 0, image.image.images, of_one)
        return layer.function(name, scratch if size else None, loops)
