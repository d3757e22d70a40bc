"""Floats to stored integers and back: four elements a turn, in registers of the FPU.

A quotient is converted with one bit behind the point, which loses nothing that rounding asks for:
of its double n, cut to an integer, (n + 1) / 2 is the nearest integer, and n / 2 where it is below
zero, both rounded down.  A NaN becomes the least integer, by a second pass that runs where a
product with 0 was a NaN: of a NaN, or of what is infinite.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

from microtir import te
from microtir.config import Feature
from microtir.config.target import Target
from microtir.dtype import DType
from microtir.graph.ir import Node, Quantization, TensorType
from microtir.kernels.common.kernel import Kernel
from microtir.kernels.common.layer import Layer
from microtir.kernels.common.made_once import made_once
from microtir.kernels.common.micro_kernel import call, describe
from microtir.kernels.common.statements import at, let, load, loop, store
from microtir.measure.printed import Printed, printed
from microtir.operators.common.rows import RowWindow
from microtir.operators.conversion.definition import Dequantize, Quantize
from microtir.operators.conversion.formula import clamped_quotient, nearest_even, quantised, real
from microtir.plan.ir import Calls, Refusal
from microtir.schedule import KernelDescription
from microtir.tir import ir

_AT_ONCE = 4
_BYTE = 8
_WORD = 4  # bytes
_MOST = 0xFFFF  # turns: what MOVW loads
_ROW = 7  # instructions around the call of a row
_STORED = (DType.INT8, DType.UINT8, DType.INT16)

Put = Callable[[te.Expr], ir.Stmt]
"""Stores the result of an element."""


@dataclass(frozen=True, slots=True)
class Conversion:
    """A run of elements that are converted; part of the identity of a micro-kernel.

    Attributes:
        stored: type of the integers.
        scale: of these.
        zero_point: of these.
        to_even: whether floats half way between two integers become the even one.
        count: of elements.
    """

    stored: DType
    scale: float
    zero_point: int
    to_even: bool
    count: int

    @property
    def scale_bits(self) -> int:
        return bits_of(self.scale)

    @property
    def name(self) -> str:
        zero_point = str(self.zero_point).replace("-", "m")
        of = f"{self.stored.value}_{self.scale_bits:x}_{zero_point}"
        return f"{of}{'_even' * self.to_even}_{self.count}"

    @property
    def type(self) -> TensorType:
        return TensorType(
            (self.count,), self.stored, Quantization((self.scale,), (self.zero_point,))
        )


class FloatEdge(Kernel):
    """Elements one after the other, of one scale."""

    needs: Feature = Feature.FPU
    is_for_least_ram = False
    template: str
    stack_bytes: int

    def suits(self, target: Target) -> bool:
        return target.has(Feature.DSP)

    @abstractmethod
    def types_of(self, node: Node) -> tuple[TensorType, TensorType]:
        """Return the types of the floats and of the stored integers."""

    @abstractmethod
    def values(self, run: Conversion) -> Mapping[str, object]:
        """Return what the template is given."""

    @abstractmethod
    def element(self, run: Conversion, x: te.Expr, put: Put) -> ir.Stmt:
        """Put the result of an element."""

    def reject(self, node: Node) -> Refusal | None:
        """Return what speaks against it: other types, scales of channels, too many elements."""
        floats, stored = self.types_of(node)
        if floats.dtype is not DType.FLOAT32 or stored.dtype not in _STORED:
            return Refusal.TYPES
        if stored.quantization is None or stored.quantization.axis is not None:
            return Refusal.SCALES
        return None if 0 < floats.elements <= _MOST * _AT_ONCE else Refusal.SIZES

    def window(self, _node: Node) -> RowWindow | None:
        return RowWindow()

    def instructions(self, node: Node, _calls: Calls) -> int:
        size = node.output.type
        return size.rows * (self._of_run(node, size.row_elements) + _ROW)

    def _of_run(self, node: Node, count: int) -> int:
        return self._printed(node, count).instructions(self.turns(self._run(node, count)))

    def turns(self, run: Conversion) -> Mapping[str, int]:
        """Return how often the loops run."""
        return {"bne 1b": run.count // _AT_ONCE, "bne 2b": 0}

    def code_bytes(self, node: Node) -> int:
        return self._printed(node, node.output.type.elements).bytes

    def _printed(self, node: Node, count: int) -> Printed:
        return printed(self.template, self._values(self._run(node, count)))

    def _run(self, node: Node, count: int) -> Conversion:
        _, stored = self.types_of(node)
        to_even = isinstance(node.op, Quantize) and node.op.ties_to_even
        return Conversion(stored.dtype, stored.quant.scale, stored.quant.zero_point, to_even, count)

    def _values(self, run: Conversion) -> dict[str, object]:
        turns, left = divmod(run.count, _AT_ONCE)
        return {
            "turns": str(turns) if turns else "",
            "turn": _group(_AT_ONCE),
            "left": _group(left) if left else "",
            "scale": halves(run.scale_bits),
            "size": str(run.stored.bytes),
            **self.values(run),
        }

    def emit(self, layer: Layer, name: str) -> ir.PrimFunc:
        """Emit a call for all elements, or for each row."""
        node, size = layer.node, layer.node.output.type
        if not layer.takes_row_range:
            x = layer.whole(0, (1, size.elements)).buffer
            y = layer.output_buffer((1, size.elements))
            kernel = self._kernel(self._run(node, size.elements))
            return layer.function(name, None, call(kernel, at(x, 0, 0), at(y, 0, 0)))
        rows, target = layer.input_rows(0), layer.output_rows()
        kernel = self._kernel(self._run(node, size.row_elements))
        body = loop("row", layer.y0, layer.y1, lambda row: call(
            kernel, rows.at(row, 0, 0), target.at(row, 0, 0)
        ))  # fmt: skip
        return layer.function(name, None, body)

    @made_once
    def _kernel(self, run: Conversion) -> KernelDescription:
        """Describe a run of elements; parameters: the first one, the first result."""
        quantizes = Quantize in self.operators
        from_, to = DType.FLOAT32, run.stored
        x, y = (
            ir.Buffer(name, (run.count,), dtype)
            for name, dtype in zip("xy", (from_, to) if quantizes else (to, from_), strict=True)
        )
        return describe(
            f"{'quantize' if quantizes else 'dequantize'}_{run.name}",
            (f"Makes {run.count} {'floats stored integers' if quantizes else 'integers floats'}",),
            (x, y),
            (y,),
            loop(
                "i",
                0,
                run.count,
                lambda i: self.element(run, load(x, i), lambda value: store(y, (i,), value)),
            ),
            self.template,
            self._values(run),
            stack_bytes=self.stack_bytes,
            needs=self.needs,
        )


class QuantizeFloats(FloatEdge):
    """Floats to stored integers."""

    name = "quantize_f32_1x4_dsp"
    operators = (Quantize,)
    cycles = 290  # a division takes 14
    template = "kernels/quantize.j2"
    stack_bytes = 24

    def reject(self, node: Node) -> Refusal | None:
        """Return what speaks against it; it divides."""
        return Refusal.TYPES if node.attributes(Quantize).by_reciprocal else super().reject(node)

    def types_of(self, node: Node) -> tuple[TensorType, TensorType]:
        return node.inputs[0].type, node.output.type

    def element(self, run: Conversion, x: te.Expr, put: Put) -> ir.Stmt:
        if not run.to_even:
            return put(quantised(x, run.type, Quantize()))
        clamped = clamped_quotient(x, run.type)
        return let("clamped", clamped, lambda value: put(nearest_even(value, run.type)))

    def values(self, run: Conversion) -> Mapping[str, object]:
        is_signed, bits = run.stored.min < 0, 8 * run.stored.bytes
        return {
            "to_even": run.to_even,
            "added": halves(run.zero_point if run.to_even else 2 * run.zero_point + 1),
            "saturate": "ssat" if is_signed else "usat",
            "bits": str(bits),
            "shift": str(run.stored.bytes // 2),
            "least": halves(run.stored.min),
            "store": "strb" if bits == _BYTE else "strh",
            "count": halves(run.count),
        }


class DequantizeFloats(FloatEdge):
    """Stored integers to floats."""

    name = "dequantize_f32_1x4_dsp"
    operators = (Dequantize,)
    cycles = 160
    template = "kernels/dequantize.j2"
    stack_bytes = 16

    def types_of(self, node: Node) -> tuple[TensorType, TensorType]:
        return node.output.type, node.inputs[0].type

    def element(self, run: Conversion, x: te.Expr, put: Put) -> ir.Stmt:
        return put(real(x, run.type.quant))

    def values(self, run: Conversion) -> Mapping[str, object]:
        is_signed, is_byte = run.stored.min < 0, run.stored.bytes == 1
        return {
            "less": halves(-run.zero_point),
            "widen": f"{'s' if is_signed else 'u'}xta{'b' if is_byte else 'h'}",
            "load": f"ldr{'s' * is_signed}{'b' if is_byte else 'h'}",
            "words": _words(run.stored.bytes),
        }


def _group(count: int) -> dict[str, object]:
    """Return the registers of elements: floats in s0 to s3, integers in r4 to r7."""
    floats, integers = [f"s{n}" for n in range(count)], [f"r{4 + n}" for n in range(count)]
    lanes = [{"float": f, "integer": r} for f, r in zip(floats, integers, strict=True)]
    moves = [
        {"integers": ", ".join(integers[n : n + 2]), "floats": ", ".join(floats[n : n + 2])}
        for n in range(0, count, 2)
    ]
    return {"all": ", ".join(floats), "lanes": lanes, "moves": moves}


def _words(size: int) -> list[list[dict[str, str]]]:
    """Return the words of a turn of elements of so many bytes, and how each is taken apart."""
    of_word = _WORD // size
    return [
        [
            {"register": f"r{4 + first + n}", "rotated": f", ror #{8 * size * n}" if n else ""}
            for n in range(of_word)
        ]
        for first in range(0, _AT_ONCE, of_word)
    ]


def bits_of(value: float) -> int:
    """Return a float32 by its bits."""
    return int(np.array([value], np.float32).view(np.int32)[0])


def halves(number: int) -> dict[str, str]:
    """Return what MOVW and MOVT load."""
    return {"low": str(number & 0xFFFF), "high": str(number >> 16 & 0xFFFF)}
