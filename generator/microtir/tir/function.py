"""Typed facts that a function carries beside its parameters and its body.

None of it changes what the function computes. Passes leave all of it as it is; analyses, the
executor and printing read it instead of guessing from names.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum

from microtir.config import Feature
from microtir.dtype import DType
from microtir.tir.storage import Var

# --- functions that compute a layer -------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class LayerName:
    """The name of a layer's function in its two parts: ``layer03`` and ``conv_2d``.

    The first part tells layers apart and begins the names of what belongs to the layer; the second
    says what it does.
    """

    layer: str
    work: str = ""

    def __str__(self) -> str:
        return "_".join(filter(None, (self.layer, self.work)))

    def with_work(self, more: str) -> LayerName:
        """Return the name of another function of the layer, ``layer03_mean_finish``."""
        return LayerName(self.layer, "_".join(filter(None, (self.work, more))))


@dataclass(frozen=True, slots=True)
class Origin:
    """The origin of a function: printed as its comment, used by reports and errors.

    `facts` are finished lines such as ``input   1x49x10x1 int8, scale 0.58, zero point 83``.
    """

    operator: str  # e.g. "CONV_2D"
    node: str  # name in the model file
    index: int  # position in the model file
    facts: tuple[str, ...] = ()
    macs: int = 0  # of the operator in the model file
    macs_executed: int = 0  # what graph passes have left of them
    macs_recomputed: int = 0  # of those executed, what another function does, too
    is_partial: bool = False  # what it writes is no tensor of the model: another function finishes
    name: LayerName | None = None  # that of the function, in its parts


@dataclass(frozen=True, slots=True)
class RowAccess:
    """Rows of a buffer that a call for the rows [y0, y1) reads or writes.

    They are [y0*stride + offset, (y1-1)*stride + offset + extent), cut to [0, height); row r lies
    in slot floormod(r, R) of a buffer whose outermost extent is R.  Where a call `adds` to rows,
    it writes a part of them and leaves what else they hold.
    """

    stride: int
    offset: int
    extent: int
    height: int
    adds: bool = False


@dataclass(frozen=True, slots=True)
class RowRange:
    """The two integer parameters, the last ones, that say which rows a call computes.

    They are the rows [start, stop) of the output, or of the input where rows are accumulated.
    """

    start: Var
    stop: Var


class RowPort(Enum):
    """The side of a model on which the application hands over rows.

    A function with one copies rows between a parameter of main and a buffer; in C it calls the
    application for each of them.
    """

    INPUT = "input"
    OUTPUT = "output"


@dataclass(frozen=True, slots=True)
class PlaneRows:
    """Output rows that are planes: all columns of one channel, then those of the next."""

    before: int  # columns of border that stand before the image
    width: int  # of the image
    dtype: DType  # of the image's values; the buffer's elements may be wider


# --- micro-kernels ------------------------------------------------------------------------------


class NativeForm(Enum):
    """The language in which the template of a micro-kernel is written."""

    ASSEMBLY = "assembly"  # instructions, a block of them behind each comment
    INTRINSICS = "intrinsics"  # the body of a C function that uses a compiler's intrinsics


@dataclass(frozen=True, slots=True)
class NativeBody:
    """The arguments of the template of a micro-kernel, and the features that the CPU must have.

    `values` are finished text, whether there is something, and lists and tables of these.
    """

    form: NativeForm
    needs: Feature
    values: Mapping[str, object]


@dataclass(frozen=True, slots=True)
class MicroKernel:
    """The properties of a function that layers call by KernelCall, as far as printing needs them.

    `noinline` keeps the registers that it fills from the variables of its callers. A function that
    `merges` layers stands for all of them: its buffers may lie over each other, as theirs, and each
    has the extent of the largest layer, of which a call uses what its own layer has.
    """

    comment: tuple[str, ...]  # lines
    noinline: bool = False
    merges: bool = False
    native: NativeBody | None = None
