"""Define in numpy what operators compute between samples and spectra."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from microtir.dtype import DType
from microtir.graph.ir import Array, Node
from microtir.operators.spectrum import definition as spectrum


class _Complex(NamedTuple):
    """Complex numbers; integers are held in 64 bits, in the range of their type."""

    re: Array
    im: Array

    def at(self, index: Any) -> _Complex:
        """Return the numbers of an index as numpy has it."""
        return _Complex(self.re[index], self.im[index])


@dataclass(frozen=True, slots=True)
class _Arithmetic:
    """Sums wrap, as KISS FFT's do in the C of two's complement; products are rounded up at ties."""

    numbers: spectrum.Numbers

    @property
    def is_float(self) -> bool:
        return self.numbers.dtype.is_float

    def widened(self, values: Array) -> Array:
        return values if self.is_float else values.astype(np.int64)

    def wrapped(self, values: Array) -> Array:
        if self.is_float:
            return values
        return values.astype(self.numbers.dtype.value).astype(np.int64)

    def rounded(self, products: Array) -> Array:
        if self.is_float:
            return products
        bits = self.numbers.bits
        return self.wrapped((products + (1 << (bits - 1))) >> bits)

    def divided(self, a: _Complex, by: int) -> _Complex:
        if self.is_float:
            return a
        factor = self.numbers.one // by
        return _Complex(self.rounded(a.re * factor), self.rounded(a.im * factor))

    def halved(self, values: Array) -> Array:
        return values * np.float32(0.5) if self.is_float else values >> 1

    def half_sum(self, a: Array, b: Array) -> Array:
        """Halve a sum that C computes in `int`: one of int32 has wrapped by then."""
        total = a + b
        return self.halved(total if self.numbers.dtype is DType.INT16 else self.wrapped(total))

    def sum(self, a: _Complex, b: _Complex) -> _Complex:
        return _Complex(self.wrapped(a.re + b.re), self.wrapped(a.im + b.im))

    def difference(self, a: _Complex, b: _Complex) -> _Complex:
        return _Complex(self.wrapped(a.re - b.re), self.wrapped(a.im - b.im))

    def product(self, a: _Complex, b: _Complex) -> _Complex:
        return _Complex(
            self.rounded(a.re * b.re - a.im * b.im), self.rounded(a.re * b.im + a.im * b.re)
        )

    def turned(self, a: _Complex) -> _Complex:
        """Multiply by the imaginary unit."""
        return _Complex(self.wrapped(-a.im), a.re)


class _Transform:
    """A transform of complex numbers.

    Args:
        dtype: of their parts.
        count: of the numbers.
        inverse: whether it goes from frequencies to samples.
    """

    def __init__(self, dtype: DType, count: int, *, inverse: bool) -> None:
        self.math = _Arithmetic(spectrum.numbers_of(dtype))
        self.count = count
        self.inverse = inverse
        self.factors = self.complex(spectrum.twiddles(count, dtype, inverse=inverse))
        self.halves = self.complex(spectrum.half_twiddles(count, dtype, inverse=inverse))

    def complex(self, pairs: Array) -> _Complex:
        """Return pairs along the last axis as complex numbers."""
        wide = self.math.widened(pairs)
        return _Complex(wide[..., 0], wide[..., 1])

    def run(self, x: _Complex) -> _Complex:
        order = np.zeros(1, np.int64)
        for radix, _, blocks in reversed(spectrum.stages(self.count)):
            order = (np.arange(radix)[:, None] * blocks + order).reshape(-1)
        x = x.at((..., order))
        for stage in reversed(spectrum.stages(self.count)):
            x = self.stage(x, stage)
        return x

    def stage(self, x: _Complex, stage: spectrum.Stage) -> _Complex:
        """Combine the groups of each block."""
        rows, m = len(x.re), self.math
        shape = (rows, stage.blocks, stage.radix, stage.size)
        parts = m.divided(_Complex(x.re.reshape(shape), x.im.reshape(shape)), stage.radix)
        groups = [parts.at((slice(None), slice(None), q)) for q in range(stage.radix)]
        combine = {2: self.radix_2, 3: self.radix_3, 4: self.radix_4, 5: self.radix_5}
        combined = combine[stage.radix](groups, stage)
        return _Complex(
            np.stack([part.re for part in combined], axis=2).reshape(rows, -1),
            np.stack([part.im for part in combined], axis=2).reshape(rows, -1),
        )

    def factor(self, stage: spectrum.Stage, q: int) -> _Complex:
        return self.factors.at(np.arange(stage.size) * q * stage.blocks)

    def radix_2(self, x: list[_Complex], stage: spectrum.Stage) -> list[_Complex]:
        m = self.math
        t = m.product(x[1], self.factor(stage, 1))
        return [m.sum(x[0], t), m.difference(x[0], t)]

    def radix_3(self, x: list[_Complex], stage: spectrum.Stage) -> list[_Complex]:
        m = self.math
        third = self.factors.im[stage.blocks * stage.size]
        a, b = (m.product(x[q], self.factor(stage, q)) for q in (1, 2))
        total, difference = m.sum(a, b), m.difference(a, b)
        middle = _Complex(
            m.wrapped(x[0].re - m.halved(total.re)), m.wrapped(x[0].im - m.halved(total.im))
        )
        side = m.turned(
            _Complex(m.rounded(difference.re * third), m.rounded(difference.im * third))
        )
        return [m.sum(x[0], total), m.sum(middle, side), m.difference(middle, side)]

    def radix_4(self, x: list[_Complex], stage: spectrum.Stage) -> list[_Complex]:
        m = self.math
        a, b, c = (m.product(x[q], self.factor(stage, q)) for q in (1, 2, 3))
        low, high = m.difference(x[0], b), m.sum(x[0], b)
        total, side = m.sum(a, c), m.turned(m.difference(a, c))
        ends = [m.sum(low, side), m.difference(low, side)]
        first, third = ends if self.inverse else ends[::-1]
        return [m.sum(high, total), first, m.difference(high, total), third]

    def radix_5(self, x: list[_Complex], stage: spectrum.Stage) -> list[_Complex]:
        m = self.math
        ya, yb = (self.factors.at(stage.blocks * q * stage.size) for q in (1, 2))
        s = [m.product(x[q], self.factor(stage, q)) for q in (1, 2, 3, 4)]
        s7, s10 = m.sum(s[0], s[3]), m.difference(s[0], s[3])
        s8, s9 = m.sum(s[1], s[2]), m.difference(s[1], s[2])
        first = _Complex(
            m.wrapped(x[0].re + m.wrapped(s7.re + s8.re)),
            m.wrapped(x[0].im + m.wrapped(s7.im + s8.im)),
        )
        values = {0: first}
        for q, u, v in ((1, ya, yb), (2, yb, ya)):
            even = _Complex(
                m.wrapped(x[0].re + m.rounded(s7.re * u.re) + m.rounded(s8.re * v.re)),
                m.wrapped(x[0].im + m.rounded(s7.im * u.re) + m.rounded(s8.im * v.re)),
            )
            sign = 1 if q == 1 else -1
            odd = _Complex(
                m.wrapped(m.rounded(s10.im * u.im) + sign * m.rounded(s9.im * v.im)),
                m.wrapped(-m.rounded(s10.re * u.im) - sign * m.rounded(s9.re * v.im)),
            )
            values[q], values[5 - q] = m.difference(even, odd), m.sum(even, odd)
        return [values[q] for q in range(5)]


def rfft(op: spectrum.Rfft, node: Node, x: Array) -> Array:
    """Compute SignalRfft."""
    half, dtype = op.length // 2, node.inputs[0].dtype
    transform = _Transform(dtype, half, inverse=False)
    m = transform.math
    rows = x.reshape(-1, x.shape[-1])
    padded = np.pad(rows, ((0, 0), (0, op.length - x.shape[-1])))
    z = transform.run(transform.complex(padded.reshape(len(rows), half, 2)))
    ends = m.divided(z.at((slice(None), 0)), 2)
    result = np.zeros((len(rows), half + 1, 2), m.widened(x).dtype)
    result[:, 0, 0], result[:, half, 0] = ends.re + ends.im, ends.re - ends.im
    for k in range(1, half // 2 + 1):
        near = m.divided(z.at((slice(None), k)), 2)
        far = z.at((slice(None), half - k))
        far = m.divided(_Complex(far.re, m.wrapped(-far.im)), 2)
        total, difference = m.sum(near, far), m.difference(near, far)
        turned = m.product(difference, transform.halves.at(k - 1))
        result[:, k, 0] = m.half_sum(total.re, turned.re)
        result[:, k, 1] = m.half_sum(total.im, turned.im)
        result[:, half - k, 0] = m.half_sum(total.re, -turned.re)
        result[:, half - k, 1] = m.half_sum(turned.im, -total.im)
    return m.wrapped(result).astype(x.dtype).reshape(node.output.shape)


def irfft(op: spectrum.Irfft, node: Node, x: Array) -> Array:
    """Compute SignalIrfft."""
    half, dtype = op.length // 2, node.inputs[0].dtype
    transform = _Transform(dtype, half, inverse=True)
    m = transform.math
    bins = transform.complex(x.reshape(-1, half + 1, 2))
    z = _Complex(np.zeros_like(bins.re[:, :half]), np.zeros_like(bins.re[:, :half]))
    first, last = bins.re[:, 0], bins.re[:, half]
    ends = m.divided(_Complex(m.wrapped(first + last), m.wrapped(first - last)), 2)
    z.re[:, 0], z.im[:, 0] = ends
    for k in range(1, half // 2 + 1):
        near = m.divided(bins.at((slice(None), k)), 2)
        far = bins.at((slice(None), half - k))
        far = m.divided(_Complex(far.re, m.wrapped(-far.im)), 2)
        even, difference = m.sum(near, far), m.difference(near, far)
        odd = m.product(difference, transform.halves.at(k - 1))
        z.re[:, k], z.im[:, k] = m.sum(even, odd)
        mirrored = m.difference(even, odd)
        z.re[:, half - k], z.im[:, half - k] = mirrored.re, m.wrapped(-mirrored.im)
    samples = np.stack(transform.run(z), axis=-1)
    if m.is_float:
        samples = samples / np.float32(op.length)
    return samples.astype(x.dtype).reshape(node.output.shape)


def auto_scale(_op: spectrum.AutoScale, _node: Node, x: Array) -> tuple[Array, Array]:
    """Compute SignalFftAutoScale: the loudest sample is found in int16, where 32768 wraps."""
    loudest = 0
    for value in map(int, x):
        if value > loudest:
            loudest = value
        elif -value > loudest:
            loudest = -value if value > -(1 << 15) else value
    bits = 15 - loudest.bit_length() if loudest > 0 else 0
    scaled = (x.astype(np.int64) << bits).astype(np.int16)
    return scaled, np.array(bits, np.int32)


def energy(op: spectrum.Energy, node: Node, x: Array) -> Array:
    """Compute SignalEnergy."""
    parts = x.astype(np.int64).reshape(-1, 2)
    result = np.zeros(node.output.shape, np.uint32)
    chosen = slice(op.start, max(op.start, op.end))
    result[chosen] = (parts[chosen] ** 2).sum(axis=1)
    return result
