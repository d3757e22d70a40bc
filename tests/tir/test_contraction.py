"""Where a product and its sum are rounded once: in the program, for CPUs that have it."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace

import pytest

import microtir
from microtir import CompilationConfig, te
from microtir.dtype import DType
from microtir.te import Expr

Formula = Callable[[SimpleNamespace], Expr]
INT32 = DType.INT32
FORMULAS: dict[str, tuple[Formula, str]] = {
    "sum": (lambda t: t.a + t.b * t.c, "fused_multiply_add(b[i], c[i], a[i])"),
    "product first": (lambda t: t.a * t.b + t.c, "fused_multiply_add(a[i], b[i], c[i])"),
    "difference": (lambda t: t.a - t.b * t.c, "fused_multiply_add(-b[i], c[i], a[i])"),
    "minus": (lambda t: t.a * t.b - t.c, "fused_multiply_add(a[i], b[i], -c[i])"),
    "literal": (lambda t: t.a * t.b - 2.0, "fused_multiply_add(a[i], b[i], -2.0f)"),
    "two products": (
        lambda t: t.a * t.b + t.c * t.d,
        "fused_multiply_add(a[i], b[i], apart(c[i] * d[i]))",
    ),
    "apart": (lambda t: te.no_fp_contract(t.a * t.b) + t.c, "apart(a[i] * b[i]) + c[i]"),
    "integers of floats": (
        lambda t: te.cast(DType.FLOAT32, te.cast(INT32, t.a * t.b + t.c)) + t.d,
        "apart(a[i] * b[i]) + c[i]",
    ),
    "negated": (lambda t: -(t.a * t.b) + t.c, "-apart(a[i] * b[i]) + c[i]"),
    "product": (lambda t: t.a * t.b, "= apart(a[i] * b[i])"),
    "chain": (lambda t: t.a * t.b * t.c, "= apart(a[i] * b[i] * c[i])"),
    "quotient": (lambda t: t.a * t.b / t.c, "= a[i] * b[i] / c[i]"),
}


def printed(formula: Formula, target: str) -> str:
    """Return the C of a formula of four tensors."""
    tensors = {name: te.placeholder((4,), DType.FLOAT32, name) for name in "abcd"}

    def element(i: Expr) -> Expr:
        return formula(SimpleNamespace(**{name: x[i] for name, x in tensors.items()}))

    y = te.compute((4,), element, "y")
    config = CompilationConfig(targets=target, module_name="m")
    return microtir.build(te.create_schedule(y), config).source("m.c")


@pytest.mark.parametrize("name", FORMULAS)
def test_products_are_fused_with_sums(name: str) -> None:
    """The C says what is fused, by rules that do not depend on a compiler."""
    formula, text = FORMULAS[name]
    assert text in printed(formula, "c -mcpu=cortex-m4")


@pytest.mark.parametrize("cpu", ["cortex-m3", "cortex-m4+nofp", "cortex-r5", "x86-64"])
def test_other_cpus_round_twice(cpu: str) -> None:
    """Without an instruction it would take a library, or a dozen operations in double."""
    for formula, _ in FORMULAS.values():
        assert "fused_multiply_add(" not in printed(formula, f"c -mcpu={cpu}")
