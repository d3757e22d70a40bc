"""Lines of a matrix that is known when a model runs: widened, and laid side by side.

Two values of each line follow each other, step by step, less the zero point.  Of four values the
first step has 0 and 2, the second 1 and 3, because that is what SXTB16 gives; values behind whole
quads are taken two by two.
"""

from __future__ import annotations

from dataclasses import dataclass

from microtir import te
from microtir.dtype import DType
from microtir.kernels.common import micro_kernel
from microtir.kernels.common.made_once import made_once
from microtir.kernels.common.statements import load, loop, seq, store
from microtir.kernels.common.weights import QUAD
from microtir.measure.printed import Printed, printed
from microtir.schedule import KernelDescription
from microtir.tir import ir

_TEMPLATE = "kernels/lines.j2"
_PAIR = 2
_REACH = 4095  # largest offset of a load, and number that ADD takes
_PARTS = 4  # quads of a turn of a loop


@dataclass(frozen=True, slots=True)
class Lines:
    """Some lines of a matrix of bytes.

    Attributes:
        count: of lines, up to four.
        depth: values of a line.
        pitch: bytes from a line to the next one.
        step: bytes from a value to the next one.
        zero_point: of the values.
    """

    count: int
    depth: int
    pitch: int
    step: int
    zero_point: int

    @property
    def steps(self) -> int:
        return -(-self.depth // _PAIR)

    @property
    def elements(self) -> int:
        return self.steps * self.count * _PAIR

    @property
    def fits(self) -> bool:
        """Return whether instructions reach that far."""
        return max((self.count - 1) * self.pitch + self.step, QUAD * self.step) <= _REACH

    @property
    def _turns(self) -> int:
        quads = self.depth // QUAD
        return quads // int(micro_kernel.repeated(quads, _PARTS)["repeats"] or 1)

    def values(self) -> dict[str, object]:
        def places(*values: int) -> list[dict[str, str]]:
            return [
                {
                    "low": f"r{4 + line}", "high": f"r{4 + line + self.count}",
                    "first": str(line * self.pitch + values[0] * self.step),
                    "second": str(line * self.pitch + values[1] * self.step),
                }
                for line in range(self.count)
            ]  # fmt: skip

        return {
            "words_of_columns": [places(0, 2)[0], places(1, 3)[0]],
            "even": places(0, 2), "odd": places(1, 3), "neighbours": places(0, 1),
            "quad_bytes": str(QUAD * self.step), "pair_bytes": str(_PAIR * self.step),
            "less": str(-self.zero_point & 0xFFFF), "turns": str(self._turns),
            "stored": f"r4-r{3 + 2 * self.count}",
            "by_rows": self.step == 1,
            "by_columns": self.count == QUAD and self.pitch == 1 < self.step,
            "has_pair": self.depth % QUAD >= _PAIR,
            "has_single": self.depth % _PAIR == 1,
            **micro_kernel.repeated(self.depth // QUAD, _PARTS),
        }  # fmt: skip

    def printed(self) -> Printed:
        return printed(_TEMPLATE, self.values())

    def instructions(self) -> int:
        return self.printed().instructions({"bne 1b": self._turns})


@made_once
def pack(lines: Lines) -> KernelDescription:
    """Widen lines.

    Returns:
        Parameters: the first value of the first line; (steps, lines, 2) int16.
    """
    reach = (lines.count - 1) * lines.pitch + (lines.depth - 1) * lines.step + 1
    x = ir.Buffer("x", (reach,), DType.INT8)
    target = ir.Buffer("target", (lines.steps, lines.count, _PAIR), DType.INT16, alignment=4)

    def value(step: te.Expr, line: te.Expr, half: int, place: te.Expr) -> ir.Stmt:
        wide = te.cast(DType.INT16, load(x, line * lines.pitch + place * lines.step))
        return store(target, (step, line, half), wide - lines.zero_point)

    def steps(first: int, stop: int, quads: bool, halves: int) -> ir.Stmt:
        def of_line(step: te.Expr, line: te.Expr) -> ir.Stmt:
            begin, distance = (step // 2 * QUAD + step % 2, 2) if quads else (step * _PAIR, 1)
            gap = store(target, (step, line, 1), 0) if halves == 1 else seq()
            return seq(*(value(step, line, n, begin + n * distance) for n in range(halves)), gap)

        return loop("step", first, stop, lambda step: loop(
            "line", 0, lines.count, lambda line: of_line(step, line)
        ))  # fmt: skip

    split, pairs = lines.depth // QUAD * 2, lines.depth // _PAIR
    parts = ((0, split, True, 2), (split, pairs, False, 2), (pairs, lines.steps, False, 1))
    name = f"lines{lines.count}_{lines.depth}_{lines.pitch}_{lines.step}_{lines.zero_point}"
    return micro_kernel.describe(
        name.replace("-", "m"),
        (f"Widens {lines.count} lines of {lines.depth} values, side by side",),
        (x, target),
        (target,),
        seq(*(steps(*part) for part in parts if part[0] < part[1])),
        _TEMPLATE,
        lines.values(),
        stack_bytes=36,
    )
