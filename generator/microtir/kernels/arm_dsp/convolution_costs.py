"""What convolutions as matrix products take: instructions, scratch and code."""

from __future__ import annotations

from dataclasses import dataclass

from microtir.graph.ir import Node
from microtir.kernels.arm_dsp.gemm_kernels import TOGETHER
from microtir.kernels.arm_dsp.patch import GROUP
from microtir.kernels.common.convolution_geometry import Geometry
from microtir.kernels.common.micro_kernel import Unroll, turns
from microtir.kernels.common.weights import QUAD
from microtir.plan.ir import Alone
from microtir.tir.dtype import DType

# Bytes of a kernel beside its steps, of a step, and what a layer is charged of one that it shares.
_CODE = {TOGETHER: 350, 1: 230}
_STEP_CODE = {TOGETHER: 48, 1: 28}
_APART_CODE = 8  # more where words are loaded one by one
_SHARED_CODE = {TOGETHER: 330, 1: 130}
_BORDERS_CODE = 60


def scratch_bytes(node: Node) -> int:
    """Of one patch."""
    geometry = Geometry.of(node)
    return geometry.segments.elements(geometry.patch_pixels) * DType.INT16.bytes


@dataclass(frozen=True, slots=True)
class Costs:
    """Of one form of the kernels: how sums are unrolled, and whether outputs are planes."""

    unroll: Unroll
    planes: bool = False

    def in_one_call(self, node: Node) -> int:
        """Instructions of all rows in one call, from counts of the emulated Cortex-M4."""
        geometry = Geometry.of(node)
        output = geometry.output
        lines = 1 if geometry.is_pointwise and not self.planes else output.images * output.height
        pixels = output.images * output.height * output.width
        return lines * self._line(geometry, pixels // lines)

    def by_rows(self, node: Node) -> int:
        """Instructions where every row is a call of its own."""
        geometry = Geometry.of(node)
        rows = geometry.output.images * geometry.output.height
        return rows * self._line(geometry, geometry.output.width)

    def alone(self, node: Node, together: int) -> Alone:
        """Where the layer runs alone: calls for two odd rows fill blocks of two pixels."""
        geometry = Geometry.of(node)
        if not geometry.is_pointwise or self.planes:
            cost = self.by_rows(node) if together else self.in_one_call(node)
            return Alone(cost, scratch_bytes(node))
        patch = geometry.pixels_of_calls(together)
        rows, width = geometry.output.images * geometry.output.height, geometry.output.width
        calls, left = divmod(rows, together or rows)
        cost = calls * self._line(geometry, (together or rows) * width, patch)
        cost += left * self._line(geometry, width, patch)
        return Alone(cost, geometry.segments.elements(patch) * DType.INT16.bytes)

    def code_bytes(self, node: Node) -> int:
        """Of the kernels for two pixels and for one; those with a loop are shared by layers."""
        geometry = Geometry.of(node)
        steps = geometry.segments.steps
        pixels = (TOGETHER, 1) if geometry.output.width % TOGETHER else (TOGETHER,)
        borders = _BORDERS_CODE if self.planes else 0
        if not self.unroll.is_straight(steps):
            return borders + sum(_SHARED_CODE[count] for count in pixels)
        loads = _APART_CODE * steps * self.unroll.apart
        return borders + loads + sum(_CODE[count] + _STEP_CODE[count] * steps for count in pixels)

    def _line(self, geometry: Geometry, pixels: int, patch: int = 0) -> int:
        """Instructions for pixels that patches may span: patch by patch, then two, then one."""
        channels, steps = geometry.output.channels, geometry.segments.steps
        quads, patch = -(-channels // QUAD), patch or geometry.patch_pixels
        patches, rest = divmod(pixels, patch)
        looped = 1 + 3 * turns(steps, self.unroll) + self.planes
        # For four channels: 12 a step and 55 beside them for two pixels, 7 and 33 for a single one,
        # which takes an odd step alone.
        block = ((12 + 2 * self.unroll.apart) * steps + looped + 55) * quads + 12
        single = (7 * steps + steps % 2 + looped + 33) * quads + 3 * steps + 60
        group = 7 * steps + 30
        blocks, last = patches * patch // TOGETHER, rest // TOGETHER
        by_two = 40 + 8 * steps + 40
        filled = by_two if patch == TOGETHER else 40 + group * patch // GROUP
        calls = patches * filled + last * by_two
        borders = 3 * channels // 2 + 40 if self.planes else 0
        beside = _gathered(geometry, pixels) if not geometry.is_pointwise else 0
        return (blocks + last) * block + calls + rest % TOGETHER * single + borders + beside


def _gathered(geometry: Geometry, pixels: int) -> int:
    """Instructions of a row beside those that widen: a call each kernel row, taps at its ends."""
    rows, columns = geometry.windows.rows, geometry.windows.columns
    last = (geometry.output.width - 1) * columns.stride - columns.before
    sides = (columns.before > 0) + (last + (columns.taps - 1) * columns.dilation >= columns.size)
    length = geometry.segments.length
    end = max(13 * length - 34, 0) if geometry.image.channels % QUAD else 150
    groups = -(-pixels // GROUP)
    return rows.taps * (16 * groups + sides * end) + geometry.segments.steps * groups
