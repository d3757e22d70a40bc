"""Choices by masks, which take the same instructions for all data, have the values of branches."""

from __future__ import annotations

import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from microtir.codegen.bodies import helper_text
from microtir.codegen.printer.helpers import with_dependencies
from microtir.config import CompilationConfig, Target
from microtir.module.ir_module import IRModule
from microtir.tir.text import parse_function
from tests.support.c_compilers import STRICT, compiler_output
from tests.support.programs import artifact_of

# A masked form, and the form or expression that it equals; exponents and shifts are from 0 to 30.
EQUAL = {
    "masked_min_i32(a, b)": "min_i32(a, b)",
    "masked_max_i32(a, b)": "max_i32(a, b)",
    "masked_near_min_i32(a / 2, b / 2)": "min_i32(a / 2, b / 2)",
    "masked_near_max_i32(a / 2, b / 2)": "max_i32(a / 2, b / 2)",
    "masked_min_i64(a * far, b * far)": "min_i64(a * far, b * far)",
    "masked_max_i64(a * far, b * far)": "max_i64(a * far, b * far)",
    "masked_near_min_i64(a, b)": "min_i64(a, b)",
    "masked_near_max_i64(a, b)": "max_i64(a, b)",
    "masked_select_i32(less_mask_i32(a, b), 3, a)": "a < b ? 3 : a",
    "masked_truncdiv_i32(a, n)": "a / ((int32_t)1 << n)",
    "masked_truncdiv_i64(a * far, n)": "a * far / ((int64_t)1 << n)",
    "masked_shift_left_i32(b % 2, n)": "shift_left_i32(b % 2, n)",
    "long_product(a, b)": "(int64_t)a * b",
    "masked_count_leading_zeros((uint32_t)a)": "count_leading_zeros((uint32_t)a)",
    "masked_rounding_divide_by_pot(a, n)": "rounding_divide_by_pot(a, n)",
    "masked_saturating_rounding_doubling_high_mul(a, b)":
        "saturating_rounding_doubling_high_mul(a, b)",
    "masked_multiply_by_quantized_multiplier(a, b, -n)":
        "multiply_by_quantized_multiplier(a, b, -n)",
    "masked_multiply_by_quantized_multiplier(a % 4096, b, n % 8)":
        "multiply_by_quantized_multiplier(a % 4096, b, n % 8)",
}  # fmt: skip
PROGRAM = """
int main(void)
{{
    const int64_t far = INT64_C(4294967296);
    const int32_t edges[] = {{0, 1, -1, 2, -2, 255, -128, 65535, 65536, -65536, 1073741824,
        -1073741824, 2147418112, INT32_MAX, INT32_MAX - 1, INT32_MIN, INT32_MIN + 1}};
    uint32_t state = 1u;
    int32_t wrong = 0;
    for (int32_t i = 0; i < 4000; i++) {{
        int32_t a = edges[i % 17];
        int32_t b = edges[i / 17 % 17];
        if (i >= 289) {{
            state = 1664525u * state + 1013904223u;
            a = (int32_t)state;
            state = 1664525u * state + 1013904223u;
            b = (int32_t)state;
        }}
        const int32_t n = i % 31;
{checks}
    }}
    return wrong != 0;
}}
"""


def _program(equal: dict[str, str]) -> str:
    text = "\n".join(f"        wrong += {form} != ({value});" for form, value in equal.items())
    names = {name for name in with_all() if f"{name}(" in text}
    helpers = "\n".join(map(helper_text, with_dependencies(names)))
    return f"#include <stdint.h>\n{helpers}\n{PROGRAM.format(checks=text)}"


def with_all() -> list[str]:
    """Return the names of the helpers of integers."""
    return [name for pair in EQUAL.items() for text in pair for name in _called(text)]


def _called(text: str) -> list[str]:
    return [part.rpartition(" ")[2] for part in text.split("(")[:-1] if part[-1:].isalnum()]


@pytest.mark.parametrize("flag", ["-D__x86_64__", "-D__thumb__"])
@pytest.mark.parametrize("level", ["-O0", "-O2"])
def test_values_are_equal(flag: str, level: str, tmp_path: Path) -> None:
    """Each form has the value of the one with a branch; the long product on Thumb-1, too."""
    (tmp_path / "main.c").write_text(_program(EQUAL))
    checks = ["-fsanitize=undefined", "-fno-sanitize-recover=all"]
    flags = ["-std=c99", *STRICT, "-Wno-builtin-macro-redefined", flag, level, *checks]
    assert compiler_output(["gcc", *flags, "main.c", "-o", "program"], tmp_path) == ""
    subprocess.run([str(tmp_path / "program")], check=True, timeout=60)


def test_a_wrong_form_is_noticed(tmp_path: Path) -> None:
    """A program with one wrong pair fails."""
    (tmp_path / "main.c").write_text(_program({"masked_min_i32(a, b)": "max_i32(a, b)"}))
    assert compiler_output(["gcc", "-std=c99", "main.c", "-o", "program"], tmp_path) == ""
    assert subprocess.run([str(tmp_path / "program")], check=False, timeout=60).returncode == 1


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("min(x[i], 9)", "masked_min_i32(x[i], 9)"),
        ("max(x[i], 0)", "masked_near_max_i32(x[i], 0)"),
        ("min(i * 2, 9)", "min_i32(i * 2, 9)"),
        ("select(x[i] >= 3, 7, i)", "masked_select_i32(less_mask_i32(x[i], 3), i, 7)"),
        ("select(x[i] >= 3, 7, x[i])", "x[i] >= 3 ? 7 : x[i]"),
        ("truncdiv(x[i], 8)", "masked_truncdiv_i32(x[i], 3)"),
        ("1 << x[i]", "masked_shift_left_i32(1, x[i])"),
    ],
)
def test_only_choices_by_data_are_masked(value: str, text: str) -> None:
    """An index is chosen as before; so is all on a CPU that shifts in loops."""
    function = parse_function(f"""
func f(x: int32[8], y: int32[8]):
  for i in range(0, 8):
    y[i] = {value}
""")

    def source(target: str, *, constant_time: bool) -> str:
        config = CompilationConfig.from_target(Target(target)).with_(
            constant_time=constant_time, module_name="default"
        )
        module = IRModule(
            functions=(replace(function, exported=True),), config=config, is_lowered=True
        )
        return artifact_of(module).source("default.c")

    for target in ("c -mcpu=cortex-m0", "c -mcpu=cortex-m4"):
        assert f"y[i] = {text};" in source(target, constant_time=True)
    assert ("mask" in source("c -march=rv32imc", constant_time=True)) == ("mask" in text)
    assert "mask" not in source("c -mcpu=cortex-m0", constant_time=False)
    assert "mask" not in source("c -mcpu=atmega2560", constant_time=True)
