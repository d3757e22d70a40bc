"""Write the arithmetic of a stage of a Fourier transform as lines of TIR.

Values are held in the wide type and in the range of their own: whoever stores a sum, multiplies or
halves it wraps it first.  What is only added up wraps at the end, which gives the same.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from microtir.operators.spectrum.definition import Numbers, Stage


class Pair(NamedTuple):
    """The names of a complex number's parts."""

    re: str
    im: str


@dataclass
class Lines:
    """Lines of a block at some depth, and names for what they compute."""

    numbers: Numbers
    depth: int
    lines: list[str] = field(default_factory=list)

    @property
    def wide(self) -> str:
        return str(self.numbers.wide.value)

    @property
    def is_float(self) -> bool:
        return self.numbers.dtype.is_float

    def add(self, text: str) -> None:
        self.lines.append("  " * self.depth + text)

    def let(self, name: str, text: str) -> str:
        """Give a value of the wide type a name, which is free in this block."""
        self.add(f"let {name}: {self.wide} = {text}")
        return name

    def pair(self, name: str, re: str, im: str) -> Pair:
        return Pair(self.let(f"{name}_re", re), self.let(f"{name}_im", im))

    def literal(self, value: int) -> str:
        """Return an integer of the wide type."""
        return str(value) if self.wide == "int32" else f"{self.wide}({value})"

    def load(self, element: str) -> str:
        return element if self.is_float else f"cast({self.wide}, {element})"

    def narrow(self, text: str) -> str:
        """Return a value as one of the stored type, which it fits."""
        return text if self.is_float else f"cast({self.numbers.dtype.value}, {text})"

    def wrapped(self, text: str) -> str:
        """Return a sum modulo the range of the stored type, as one of it."""
        if self.is_float:
            return text
        bits = self.numbers.dtype.bits
        half, mask = self.literal(1 << (bits - 1)), self.literal((1 << bits) - 1)
        return self.narrow(f"(({text}) + {half} & {mask}) - {half}")

    def sum(self, name: str, a: Pair, sign: str, b: Pair) -> Pair:
        """Name a sum or a difference that is multiplied or halved next."""
        texts = (f"{p} {sign} {q}" for p, q in zip(a, b, strict=True))
        return self.pair(name, *(self.load(self.wrapped(text)) for text in texts))

    def rounded(self, products: str, *, wraps: bool = False) -> str:
        """Return a sum of products, rounded to the stored type."""
        if self.is_float:
            return products
        bits = self.numbers.bits
        text = f"{products} + {self.literal(1 << (bits - 1))} >> {self.literal(bits)}"
        return self.load(self.wrapped(text) if wraps else self.narrow(text))

    def times(self, a: str, b: str) -> str:
        """Return a product that no compiler joins with a sum."""
        return f"apart({a} * {b})" if self.is_float else f"{a} * {b}"

    def divided(self, name: str, a: Pair, by: int) -> Pair:
        """Name a number divided by the radix; floats are not divided."""
        if self.is_float:
            return self.pair(name, *a)
        factor = self.literal(self.numbers.one // by)
        return self.pair(name, *(self.rounded(f"{part} * {factor}") for part in a))

    def product(self, name: str, a: Pair, b: Pair, *, wraps: bool = False) -> Pair:
        t = self.times
        return self.pair(
            name,
            self.rounded(f"{t(a.re, b.re)} - {t(a.im, b.im)}", wraps=wraps),
            self.rounded(f"{t(a.re, b.im)} + {t(a.im, b.re)}", wraps=wraps),
        )

    def scaled(self, a: str, b: str) -> str:
        return f"({self.rounded(self.times(a, b))})"

    def halved(self, text: str) -> str:
        """Return half of a value, rounded down."""
        if self.is_float:
            return f"({text}) * float32(0.5)"
        return f"({text}) >> {self.literal(1)}"

    def store(self, element: str, re: str, im: str) -> None:
        self.add(f"{element.format(part=0)} = {self.wrapped(re)}")
        self.add(f"{element.format(part=1)} = {self.wrapped(im)}")


@dataclass(frozen=True, slots=True)
class StageText:
    """Writes what one turn of a stage computes.

    Args:
        out: where lines go.
        stage: which one.
        place: the element with `{group}` and `{part}` for those of a number.
        inverse: the direction.
        factors: the name of the table of factors.
        turn: the name of the turn within a group.
    """

    out: Lines
    stage: Stage
    place: str
    inverse: bool
    factors: str
    turn: str

    def write(self) -> None:
        radix = self.stage.radix
        combine = {2: self.radix_2, 3: self.radix_3, 4: self.radix_4, 5: self.radix_5}
        x = [self.inputs_of(group) for group in range(radix)]
        y = [x[0], *(self.turned(x[q], q) for q in range(1, radix))]
        combine[radix](y)

    @property
    def places(self) -> list[str]:
        """Return the numbers of all groups, with `{part}` for their parts."""
        return [self.place_of(group) for group in range(self.stage.radix)]

    def place_of(self, group: int) -> str:
        """Return a number of a group, with `{part}` for its parts."""
        return self.place.replace("{group}", str(group))

    def inputs_of(self, group: int) -> Pair:
        """Name a number divided by the radix."""
        place = self.place_of(group)
        parts = (self.out.load(place.format(part=part)) for part in (0, 1))
        return self.out.divided(f"x{group}", Pair(*parts), self.stage.radix)

    def factor(self, name: str, index: str) -> Pair:
        parts = (self.out.load(f"{self.factors}[{index}, {part}]") for part in (0, 1))
        return self.out.pair(name, *parts)

    def turned(self, x: Pair, q: int) -> Pair:
        """Multiply a number by its factor; the first one of a group is 1.

        A number that was divided is as small as it must be for a product with the largest number
        to be itself.
        """
        if self.stage.size == 1:
            return x
        factor = self.factor(f"w{q}", f"{self.turn} * {q * self.stage.blocks}")
        return self.out.product(f"y{q}", x, factor)

    def radix_2(self, y: Sequence[Pair]) -> None:
        for place, sign in zip(self.places, "+-", strict=True):
            self.out.store(place, *_parts(y[0], sign, y[1]))

    def radix_3(self, y: Sequence[Pair]) -> None:
        out, a = self.out, y[0]
        index = self.stage.blocks * self.stage.size
        third = out.let("third", out.load(f"{self.factors}[{index}, 1]"))
        total = out.sum("sum", y[1], "+", y[2])
        difference = out.sum("difference", y[1], "-", y[2])
        middle = out.pair(
            "middle",
            f"{a.re} - ({out.halved(total.re)})",
            f"{a.im} - ({out.halved(total.im)})",
        )
        side = out.pair("side", *(out.scaled(part, third) for part in difference))
        out.store(self.places[0], *_parts(a, "+", total))
        out.store(self.places[1], f"{middle.re} - {side.im}", f"{middle.im} + {side.re}")
        out.store(self.places[2], f"{middle.re} + {side.im}", f"{middle.im} - {side.re}")

    def radix_4(self, y: Sequence[Pair]) -> None:
        out = self.out
        low = out.pair("even_difference", *_parts(y[0], "-", y[2]))
        high = out.pair("even_sum", *_parts(y[0], "+", y[2]))
        total = out.pair("odd_sum", *_parts(y[1], "+", y[3]))
        side = out.pair("odd_difference", *_parts(y[1], "-", y[3]))
        out.store(self.places[0], *_parts(high, "+", total))
        out.store(self.places[2], *_parts(high, "-", total))
        first, third = ("-", "+") if self.inverse else ("+", "-")
        for place, sign, other in ((1, first, third), (3, third, first)):
            parts = f"{low.re} {sign} {side.im}", f"{low.im} {other} {side.re}"
            out.store(self.places[place], *parts)

    def radix_5(self, y: Sequence[Pair]) -> None:
        out, a = self.out, y[0]
        group = self.stage.blocks * self.stage.size
        fifths = self.factor("fifth", str(group)), self.factor("two_fifths", str(2 * group))
        outer = out.sum("outer_sum", y[1], "+", y[4])
        inner = out.sum("inner_sum", y[2], "+", y[3])
        outer_side = out.sum("outer_difference", y[1], "-", y[4])
        inner_side = out.sum("inner_difference", y[2], "-", y[3])
        out.store(
            self.places[0],
            f"{a.re} + ({outer.re} + {inner.re})",
            f"{a.im} + ({outer.im} + {inner.im})",
        )
        scaled = out.scaled
        for q, (u, v), sign, other in ((1, fifths, "+", "-"), (2, fifths[::-1], "-", "+")):
            even = out.pair(
                f"even{q}",
                f"{a.re} + {scaled(outer.re, u.re)} + {scaled(inner.re, v.re)}",
                f"{a.im} + {scaled(outer.im, u.re)} + {scaled(inner.im, v.re)}",
            )
            odd = out.pair(
                f"odd{q}",
                f"{scaled(outer_side.im, u.im)} {sign} {scaled(inner_side.im, v.im)}",
                f"-{scaled(outer_side.re, u.im)} {other} {scaled(inner_side.re, v.im)}",
            )
            out.store(self.places[q], *_parts(even, "-", odd))
            out.store(self.places[5 - q], *_parts(even, "+", odd))


def _parts(a: Pair, sign: str, b: Pair) -> tuple[str, str]:
    return f"{a.re} {sign} {b.re}", f"{a.im} {sign} {b.im}"
