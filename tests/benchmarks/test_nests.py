"""Loop nests state what the emulator counted, at sizes that no figure was fitted to."""

from __future__ import annotations

import pytest

from benchmarks import nests, operators
from benchmarks.operator_rows import cases

WITHIN = 0.2
SAMPLE = (
    "int8: dense, 10 rows of 64 to 2, 1 outputs",
    "int8: log-softmax, 32 rows of 32, 10 a row",
    "int8: l2-norm, 32 rows of 32, 7 a row",
    "int8: add of 32 constants, 16x16x32, 10 channels",
    "int8: multiply, 16x16x32, 5 channels",
    "int8: quantize, 16x16x32, 7 channels",
    "int8: dequantize, 16x16x32, 7 channels",
    "int8: gather, 32 rows of 32",
    "int16: transposed convolution 3x3, stride 2, 8x8x16",
    "int16: softmax, 32 rows of 32",
    "int16: tanh, 16x16x32",
    "uint8: uint8 to int8, 16x16x32",
    "uint8: bilinear, 8x8x32 to 16x16",
)


CASES = (
    *(("cortex-m4", name) for name in SAMPLE),
    ("cortex-m0", "int8: batch matmul 4x16x32x16"),
    ("cortex-m0", "int8: l2-norm, 32 rows of 32"),
    ("cortex-m0", "int8: transposed convolution 3x3, stride 2, 8x8x16"),
    ("rv32imc", "int8: batch matmul 4x16x32x16"),
    ("rv32imc", "int8: softmax, 32 rows of 32"),
    ("rv32imc", "int8: dequantize, 16x16x32"),
    ("rv32imc", "int8: max pooling 3x3, 16x16x32"),
)


@pytest.mark.parametrize(("cpu", "name"), CASES)
def test_stated_is_near_what_was_recorded(cpu: str, name: str) -> None:
    """Nothing is measured here: `benchmarks/operators.json` has what the emulator counted."""
    case = next(case for case in cases() if case.full_name == name)
    _, stated = operators.stated(case, cpu)
    recorded = operators.read_recorded()[cpu][name].instructions
    assert abs(stated / recorded - 1) < WITHIN


def test_figures_are_found_again() -> None:
    """Layers of known figures give these; what no layer has is what is expected of it."""
    true = {"turn": 2.0, "load_8": 1.0, "mla_int": 1.5, "exp": 50.0}
    works = (
        {"turn": n, "load_8": n + 9 * (n % 5), "mla_int": n % 7, "exp": n % 3} for n in range(5, 60)
    )
    layers = [
        nests.Layer(work, round(1000 * sum(true[kind] * n for kind, n in work.items())))
        for work in works
    ]
    figures = nests.fitted(
        [nests.Layer({k: 1000 * n for k, n in x.work.items()}, x.measured) for x in layers]
    )
    assert figures == pytest.approx(true, rel=0.1)
    assert nests.expected("load_8") < nests.expected("exp")
    assert nests.expected("add_float") < nests.expected("add_float", has_floats=False)
