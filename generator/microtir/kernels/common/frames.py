"""Convolutions of several images: those of one image, again and again."""

from __future__ import annotations

from dataclasses import replace

from microtir import te
from microtir.graph.ir import Node, Tensor
from microtir.kernels.common.convolution_geometry import Geometry
from microtir.kernels.common.layer import Layer
from microtir.kernels.common.made_once import of_node
from microtir.kernels.common.phase_kernel import InPhases
from microtir.kernels.common.phases import Phase
from microtir.kernels.common.statements import loop
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


class Frames(InPhases):
    """Image after image, as a kernel of convolutions computes each."""

    operators = (Conv2D,)
    phase_calls = IN_ONE_CALL

    def unfit(self, node: Node) -> Refusal | None:
        """Return what speaks against it: a single image, or what speaks against each."""
        geometry = Geometry.of(node)
        if geometry.image.images < 2:
            return Refusal.SEVERAL
        if geometry.is_pointwise:
            return Refusal.WINDOWS
        return self._of_phase.reject(_of_image(node).node)

    def phases(self, node: Node) -> tuple[Phase, ...]:
        return (_of_image(node),)

    def window(self, _node: Node) -> RowWindow | None:
        """Return None: all images are computed in one call."""
        return None

    def instructions(self, node: Node, calls: Calls) -> int:
        return Geometry.of(node).image.images * super().instructions(node, calls)

    def loops(self, layer: Layer, scratch: ir.Buffer) -> ir.Stmt:
        x, y, image = layer.input_rows(0), layer.output_rows(), Geometry.of(layer.node)

        def of_one(number: te.Expr) -> ir.Stmt:
            rows = replace(x, top=number * image.image.height)
            written = replace(y, top=number * image.output.height)
            return self._of_phase.phase_loops(_of_image(layer.node), rows, written, scratch)

        return loop("image", 0, image.image.images, of_one)
