"""L2_NORMALIZATION of int8: a call adds up the squares of rows, and multiplies by inverse roots."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping

from microtir import te
from microtir.config import Feature
from microtir.dtype import DType
from microtir.graph.ir import Node
from microtir.kernels.common.float_edges import halves
from microtir.kernels.common.kernel import Kernel
from microtir.kernels.common.layer import Layer
from microtir.kernels.common.made_once import made_once
from microtir.kernels.common.micro_kernel import call, describe
from microtir.kernels.common.statements import at
from microtir.measure.printed import Printed, printed
from microtir.operators.common import fixed_point
from microtir.operators.common.arithmetic import centred
from microtir.operators.normalization.definition import L2Normalize
from microtir.operators.normalization.formula import normalised
from microtir.plan.ir import Calls, Refusal
from microtir.schedule import KernelDescription
from microtir.tir import ir

_LARGEST = 0xFFFF  # rows: what MOVW loads
_LONGEST = 4095  # elements of a row: sums of their squares are below 2^28
_SHIFTED = 1 << 21  # sums from here on are shifted to the right
_DIRECT = 1600  # bytes of the direct kernel, which are none here
_AROUND = 2  # instructions around the call


class Normalise(Kernel):
    """Rows of any length."""

    operators = (L2Normalize,)
    needs: Feature
    template: str
    stack_bytes: int

    @abstractmethod
    def values(self, width: int, zero_point: int) -> Mapping[str, object]:
        """Return what the template is given of a row."""

    @abstractmethod
    def turns(self, rows: int, width: int) -> Mapping[str, int]:
        """Return how often the loops run, by their branches."""

    def reject(self, node: Node) -> Refusal | None:
        """Return what speaks against it: another type, many or long rows."""
        x = node.inputs[0].type
        if x.dtype is not DType.INT8:
            return Refusal.TYPES
        fits = x.shape[-1] <= _LONGEST and x.elements // x.shape[-1] <= _LARGEST
        return None if fits else Refusal.SIZES

    def window(self, _node: Node) -> None:
        return

    def instructions(self, node: Node, _calls: Calls) -> int:
        rows, width, _ = extents = _extents(node)
        return _AROUND + self._printed(*extents).instructions(self.turns(rows, width))

    def code_bytes(self, node: Node) -> int:
        """Return bytes beyond those of the direct kernel, which has a root in C."""
        return max(self._printed(*_extents(node)).bytes - _DIRECT, 1)

    def emit(self, layer: Layer, name: str) -> ir.PrimFunc:
        rows, width, _ = extents = _extents(layer.node)
        x = layer.whole(0, (rows, width)).buffer
        y = layer.output_buffer((rows, width))
        return layer.function(name, None, call(self._kernel(*extents), at(x, 0, 0), at(y, 0, 0)))

    def _printed(self, rows: int, width: int, zero_point: int) -> Printed:
        return printed(self.template, self._values(rows, width, zero_point))

    def _values(self, rows: int, width: int, zero_point: int) -> dict[str, object]:
        farthest = max(DType.INT8.max - zero_point, zero_point - DType.INT8.min)
        return {
            "rows": str(rows),
            "width": str(width),
            "half_root_two": halves(fixed_point.INVERSE_ROOT_HALF_ROOT_TWO),
            "shifts_right": width * farthest**2 >= _SHIFTED,
            **self.values(width, zero_point),
        }

    @made_once
    def _kernel(self, rows: int, width: int, zero_point: int) -> KernelDescription:
        """Normalise rows; parameters: inputs and outputs."""
        x = te.placeholder((rows, width), DType.INT8, "x")

        def element(row: te.Expr, i: te.Expr) -> te.Expr:
            k = te.reduce_axis(0, width, "k")
            value = centred(x[row, k], zero_point)
            own = centred(x[row, i], zero_point)
            return normalised(own, te.sum(value * value, k), DType.INT8)

        y = te.compute((rows, width), element, "y")
        return describe(
            f"normalise_{rows}x{width}_{zero_point % 256}", (f"{rows} rows of length 1",),
            (x.buffer, y.buffer), (y.buffer,), te.create_schedule(y).primfunc(name="rows").body,
            self.template, self._values(rows, width, zero_point), stack_bytes=self.stack_bytes,
            needs=self.needs,
        )  # fmt: skip


def _extents(node: Node) -> tuple[int, int, int]:
    """Return rows, their length, and the zero point of inputs."""
    x = node.inputs[0].type
    return x.elements // x.shape[-1], x.shape[-1], x.quant.zero_point
