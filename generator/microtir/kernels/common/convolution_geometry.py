"""Shapes of convolutions as their matrix products need them."""

from __future__ import annotations

from dataclasses import dataclass

from microtir.graph.ir import Node
from microtir.kernels.arm_dsp.gemm_kernels import TOGETHER
from microtir.kernels.arm_dsp.patch import GROUP, Segments
from microtir.operators.common.rows import Extents
from microtir.operators.common.windows import Windows
from microtir.operators.convolution.formula import windows_of
from microtir.tir.dtype import DType

# A patch of more than one group is worth its memory while it is small.
_PATCH = 512
_GROUPS = 4


@dataclass(frozen=True, slots=True)
class Geometry:
    """Shapes of a convolution as the loops need them."""

    windows: Windows
    image: Extents
    output: Extents
    segments: Segments

    @staticmethod
    def of(node: Node) -> Geometry:
        windows, image = windows_of(node), Extents.of(node.inputs[0].type)
        rows, columns = windows.rows.taps, windows.columns.taps
        joined = columns == 1 or windows.columns.dilation == 1
        count, length = (rows, columns) if joined else (rows * columns, 1)
        segments = Segments(count, length * image.channels)
        return Geometry(windows, image, Extents.of(node.output.type), segments)

    @property
    def per_row(self) -> int:
        """Return segments of one kernel row."""
        return self.segments.count // self.windows.rows.taps

    @property
    def pixel_stride(self) -> int:
        """Return the bytes between the inputs of neighbouring output pixels."""
        return self.windows.columns.stride * self.image.channels

    @property
    def is_pointwise(self) -> bool:
        """Return whether output pixel n needs input pixel n and nothing else."""
        return self.windows.is_pointwise(self.output)

    @property
    def patch_pixels(self) -> int:
        """Return the pixels of a patch: groups that leave few pixels of a row over.

        Where windows may leave the image, and patches are gathered tap by tap, it is one group.
        """
        size = self.segments.elements(GROUP) * DType.INT16.bytes
        most = max(1, min(_GROUPS, _PATCH // max(size, 1), self.output.width // GROUP))
        width = self.output.width
        groups = range(most if self.is_pointwise else 1, 0, -1)
        return GROUP * min(groups, key=lambda n: width % (GROUP * n))

    def pixels_of_calls(self, rows: int) -> int:
        """Return pixels of a patch where rows follow each other, in calls for so few of them.

        0 for all.

        It holds the pixels of a call, and at least a block of them.
        """
        few = rows * self.output.width
        return TOGETHER if self.is_pointwise and 0 < few < GROUP else self.patch_pixels
