"""Products of 64 bits on CPUs that multiply 32 bits: of four, with the bits of a long one."""

from __future__ import annotations

import subprocess
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from microtir.codegen.bodies import helper_text
from microtir.codegen.printer.helpers import (
    IN_PARTS,
    SHARED_PARTS,
    UPPER_WORD,
    Helper,
    with_dependencies,
)
from microtir.config import CompilationConfig, Target
from microtir.module.ir_module import IRModule
from microtir.tir.ir import Intrinsic
from microtir.tir.text import parse_function
from tests.support.c_compilers import STRICT, compiler_output
from tests.support.programs import artifact_of

DOUBLING = Intrinsic.SATURATING_ROUNDING_DOUBLING_HIGH_MUL.value
RESCALING = Intrinsic.MULTIPLY_BY_QUANTIZED_MULTIPLIER.value
TABLES = {"speed": IN_PARTS, "balanced": SHARED_PARTS}
# Edges by edges, edges by arbitrary numbers and those by each other, with all shifts to the right.
CHECKS = """
static int64_t long_upper(int64_t a, int64_t b) { return (a * b + INT64_C(2147483648)) >> 32; }
static int64_t doubled(int64_t a, int64_t b)
{
    const int64_t high = (a * b + INT64_C(1073741824)) >> 31;
    return high > INT32_MAX ? INT32_MAX : high;
}
static int64_t rescaled(int64_t a, int64_t b, int32_t right)
{
    const int64_t high = doubled(a, b), half = INT64_C(1) << right >> 1;
    return high < 0 ? -((-high + half) >> right) : (high + half) >> right;
}
static int32_t wrong_pairs(int32_t a, int32_t b)
{
    int32_t wrong = upper_word(a, b) != long_upper(a, b);
    wrong += saturating_rounding_doubling_high_mul(a, b) != doubled(a, b);
    for (int32_t right = 0; right < 31; right++) {
        wrong += multiply_by_quantized_multiplier(a, b, -right) != rescaled(a, b, right);
    }
    return wrong;
}
int32_t wrong_products(int32_t count);
int32_t wrong_products(int32_t count)
{
    static const int32_t edges[] = {0, 1, -1, 2, -2, 32767, 32768, -32768, -32769, 65535, 65536,
        -65535, -65536, 98304, 1073741823, 1073741824, -1073741824, 2147385345, 2147450880,
        2147418112, 2147450879, INT32_MAX - 1, INT32_MAX, INT32_MIN, INT32_MIN + 1, -2147450880};
    const int32_t n = (int32_t)(sizeof edges / sizeof edges[0]);
    uint32_t state = 1u;
    int32_t wrong = 0;
    for (int32_t i = 0; i < n * n; i++) {
        wrong += wrong_pairs(edges[i % n], edges[i / n]);
    }
    for (int32_t i = 0; i < count; i++) {
        state = 1664525u * state + 1013904223u;
        const int32_t a = (int32_t)state;
        state = 1664525u * state + 1013904223u;
        wrong += wrong_pairs(a, (int32_t)state) + wrong_pairs(edges[i % n], a);
    }
    return wrong;
}
"""


def checks(helpers: Mapping[str, Helper]) -> str:
    """Return the C of the function that counts wrong results, with the helpers of a table."""
    used = with_dependencies((UPPER_WORD, DOUBLING, RESCALING), helpers)
    return "\n".join(("#include <stdint.h>", *map(helper_text, used), CHECKS))


def run(text: str, folder: Path, level: str) -> int:
    """Return 0 if all results are right, and no number leaves its type."""
    main = "int main(void) { return wrong_products(4000) != 0; }"
    (folder / "main.c").write_text(f"{text}\n{main}")
    checked = ["-fsanitize=undefined", "-fno-sanitize-recover=all"]
    flags = ["-std=c99", *STRICT, level, *checked]
    assert compiler_output(["gcc", *flags, "main.c", "-o", "program"], folder) == ""
    return subprocess.run([str(folder / "program")], check=False, timeout=60).returncode


@pytest.mark.parametrize("goal", TABLES)
@pytest.mark.parametrize("level", ["-O0", "-O2"])
def test_results_are_those_of_long_products(goal: str, level: str, tmp_path: Path) -> None:
    """Extreme and arbitrary factors, with every shift to the right."""
    assert run(checks(TABLES[goal]), tmp_path, level) == 0


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("(rest + 1, 1)", "(rest, 1)"),
        ("+ 16384", "+ 16383"),
        ("(int32_t)(low >> 16)", "(int32_t)(low >> 17)"),
        ("(middle & 65535)", "middle"),
        ("b & 65535", "b & 32767"),
        ("a == INT32_MIN && b == INT32_MIN", "a == INT32_MIN && b == INT32_MAX"),
    ],
)
def test_a_wrong_part_is_noticed(old: str, new: str, tmp_path: Path) -> None:
    """A helper with one mistake gives a wrong result, or a number that leaves its type."""
    text = checks(IN_PARTS)
    assert old in text
    assert run(text.replace(old, new), tmp_path, "-O0") != 0


WORD = "cast(int32, product >> int64(32)) + cast(int32, product >> int64(31) & int64(1))"
ROUNDED = "cast(int64, x[i]) * cast(int64, x[i + 1]) + int64({}) >> int64(32)"


def printed(lines: str, target: str, goal: str = "balanced") -> str:
    """Return the C of a function with some lines in its loop."""
    function = parse_function(f"""
func f(x: int32[8], y: int32[8], z: int64[8]):
  for i in range(0, 7):
    {lines}
""")
    config = CompilationConfig.from_target(Target(target)).with_(
        optimize=goal, module_name="default"
    )
    module = IRModule(functions=(replace(function, exported=True),), config=config, is_lowered=True)
    return artifact_of(module).source("default.c")


NAMED = """let product: int64 = cast(int64, x[i]) * cast(int64, x[i + 1])
    let high: int32 = {}
    y[i] = high
"""
PRINTED = {
    NAMED.format(WORD): "const int32_t high = upper_word(x[i], x[i + 1]);",
    f"{NAMED.format(WORD)}    z[i] = product":
        "const int64_t product = long_product(x[i], x[i + 1]);",
    f"y[i] = cast(int32, {ROUNDED.format(1 << 31)})": "y[i] = upper_word(x[i], x[i + 1]);",
    f"y[i] = cast(int32, {ROUNDED.format((5 << 32) + (1 << 31))})":
        "y[i] = upper_word(x[i], x[i + 1]) + 5;",
    f"y[i] = cast(int32, {ROUNDED.format((-5 << 32) + (1 << 31))})":
        "y[i] = upper_word(x[i], x[i + 1]) - 5;",
    f"y[i] = cast(int32, {ROUNDED.format(1 << 30)})":
        "y[i] = (int32_t)shift_right_i64(long_product(x[i], x[i + 1]) + 1073741824, 32);",
    "z[i] = cast(int64, x[i]) * z[i + 1]": "z[i] = (int64_t)x[i] * z[i + 1];",
}  # fmt: skip


@pytest.mark.parametrize("lines", PRINTED)
def test_forms_are_for_cpus_without_long_products(lines: str) -> None:
    """An M0 and an M23 take them; all other CPUs have the C of a product of 64 bits."""
    assert PRINTED[lines] in printed(lines, "c -mcpu=cortex-m0")
    assert PRINTED[lines] in printed(lines, "c -mcpu=cortex-m23")
    for target in ("c", "c -mcpu=cortex-m3", "c -march=rv32imc", "c -mcpu=atmega2560"):
        source = printed(lines, target)
        assert "upper_word" not in source
        assert "long_product" not in source


def test_only_speed_copies_the_product() -> None:
    """A function takes less flash than copies of it do."""
    lines = f"y[i] = cast(int32, {ROUNDED.format(1 << 31)})"
    for goal in ("flash", "ram", "balanced"):
        assert "__attribute__((noinline))\n#endif" in printed(lines, "c -mcpu=cortex-m0", goal)
    assert "static inline int32_t upper_word(" in printed(lines, "c -mcpu=cortex-m0", "speed")
