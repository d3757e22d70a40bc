"""Shapes of convolutions as the loops of kernels need them."""

from __future__ import annotations

from dataclasses import dataclass, replace

from microtir.dtype import DType
from microtir.graph.ir import Node
from microtir.kernels.common import layer, made_once
from microtir.operators.common.rows import Extents
from microtir.operators.common.windows import Windows
from microtir.operators.convolution.definition import Conv2D
from microtir.operators.convolution.formula import windows_of


@dataclass(frozen=True, slots=True)
class Geometry:
    """Shapes of a convolution; image and output are those of one of its groups of channels.

    A window is `runs`, values that follow each other in the input: kernel rows, or single taps
    where the kernel is dilated or channels are in groups.
    Wide weights are such of 8 bits and a number.
    """

    windows: Windows
    image: Extents
    output: Extents
    groups: int = 1
    has_wide_weights: bool = False

    @staticmethod
    @made_once.of_node
    def of(node: Node) -> Geometry:
        of_all = [Extents.of(type_) for type_ in (node.inputs[0].type, node.output.type)]
        is_mixed = isinstance(node.op, Conv2D)
        groups = of_all[0].channels // node.inputs[1].shape[-1] if is_mixed else 1
        image, output = (replace(some, channels=some.channels // groups) for some in of_all)
        is_wide = node.inputs[1].dtype is DType.INT16
        return Geometry(windows_of(node), image, output, groups, is_wide)

    @property
    def of_all_groups(self) -> Geometry:
        """Return the shapes of all groups as if they were one."""
        image, output = (
            replace(some, channels=some.channels * self.groups)
            for some in (self.image, self.output)
        )
        return replace(self, image=image, output=output, groups=1)

    @property
    def runs_of_row(self) -> int:
        columns = self.windows.columns
        return 1 if columns.dilation == self.groups == 1 else columns.taps

    @property
    def runs(self) -> int:
        return self.windows.rows.taps * self.runs_of_row

    @property
    def run_values(self) -> int:
        return self.row_values // self.runs_of_row

    @property
    def row_values(self) -> int:
        return self.windows.columns.taps * self.image.channels

    @property
    def values(self) -> int:
        return self.windows.rows.taps * self.row_values

    @property
    def pitch(self) -> int:
        """Return the elements from a pixel of the input to the next one, all groups together."""
        return self.image.channels * self.groups

    @property
    def pixel_stride(self) -> int:
        """Return the elements between the inputs of neighbouring output pixels."""
        return self.windows.columns.stride * self.pitch

    @property
    def padded(self) -> int:
        return self.windows.columns.reach(self.output.width)

    @property
    def copied(self) -> int:
        """Return columns of a row of the input that windows reach."""
        before = self.windows.columns.before
        return max(0, min(self.image.width + min(before, 0), self.padded - max(before, 0)))

    @property
    def is_pointwise(self) -> bool:
        """Return whether output pixel n needs input pixel n and nothing else."""
        return self.windows.is_pointwise(self.output)

    @property
    def is_bordered(self) -> bool:
        return self.windows.clip(self.output)

    @property
    def clips_columns(self) -> bool:
        """Return whether windows leave the image to the left or right."""
        return self.windows.columns.clips(self.output.width)

    @property
    def has_one_image(self) -> bool:
        """Return whether an output row has its window where its number says."""
        return self.image.images == 1 or self.is_pointwise

    @property
    def direct_step(self) -> int:
        """Return elements between the window's rows in a whole input."""
        return self.windows.rows.dilation * self.image.width * self.pitch

    @property
    def copied_step(self) -> int:
        """Return elements between the window's rows in scratch."""
        return self.padded * self.image.channels

    @property
    def window_elements(self) -> int:
        return self.windows.rows.taps * self.copied_step

    def copies(self, x: layer.Rows) -> bool:
        """Return whether rows go through scratch."""
        in_ring = not x.is_whole and self.windows.rows.taps > 1
        return self.is_bordered or in_ring
