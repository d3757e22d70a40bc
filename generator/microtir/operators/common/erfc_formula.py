"""Compute the complementary error function, which C libraries of small targets leave out."""

from __future__ import annotations

from microtir import te
from microtir.dtype import DType

# Coefficients of a polynomial in t = 1 / (1 + z / 2): log(erfc(z) / t) + z^2, fitted at Chebyshev
# nodes for z from 0 to 12; float32 arithmetic adds more than what the fit leaves, 6e-8.
_COEFFICIENTS = (
    -1.2654823, 0.9993481, 0.38035414, 0.065232605, -0.09025552,
    0.09432117, -0.9097404, 1.3186527, -0.7501815, 0.157751,
)  # fmt: skip


def erfc(z: te.Expr) -> te.Expr:
    """Return the function of z >= 0."""
    z = te.bind("z", z)
    t = te.bind("t", te.const(1.0, DType.FLOAT32) / (z * 0.5 + 1.0))
    polynomial = te.const(_COEFFICIENTS[-1], DType.FLOAT32)
    for coefficient in reversed(_COEFFICIENTS[:-1]):
        polynomial = polynomial * t + coefficient
    return t * te.exp(polynomial - z * z)
