"""Values as C literals, and the printing of numbers by the application."""

from __future__ import annotations

import math
import subprocess
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from microtir.artifact import C_TYPES
from microtir.dtype import DType
from microtir.graph.ir import TensorType
from microtir.module.ir_module import Port, PortKind
from microtir.projects.samples import arbitrary_samples, sample_array
from microtir.support import resources

PRINTER = """
#include <stdio.h>
#include <stdlib.h>
#include "platform.h"
#include "text.h"
void platform_write(const uint8_t *bytes, uint32_t count) { fwrite(bytes, 1, count, stdout); }
int main(void)
{
    char kind;
    char text[64];
    while (scanf(" %c %63s", &kind, text) == 2) {
        if (kind == 'r') {
            text_real(strtod(text, NULL));
        } else if (kind == 's') {
            text_signed(strtoll(text, NULL, 10));
        } else {
            text_unsigned(strtoull(text, NULL, 10));
        }
        text_write("\\n");
    }
    return 0;
}
"""


def _port(dtype: DType, shape: tuple[int, ...]) -> Port:
    return Port(PortKind.INPUT, "t", "t", TensorType(shape, dtype))


@pytest.fixture(scope="module")
def printed(tmp_path_factory: pytest.TempPathFactory) -> Callable[[list[str]], list[str]]:
    """Print numbers with the application's own functions."""
    folder = tmp_path_factory.mktemp("printer")
    source = resources.templates() / "projects" / "application"
    (folder / "main.c").write_text(PRINTER)
    flags = ["-Wall", "-Wextra", "-Werror", "-fsanitize=undefined", "-fno-sanitize-recover"]
    files = [folder / "main.c", source / "text.c"]
    command = ["gcc", *flags, f"-I{source}", *map(str, files), "-o", str(folder / "printer")]
    subprocess.run(command, check=True)

    def run(lines: list[str]) -> list[str]:
        text = "\n".join(lines)
        done = subprocess.run(
            [str(folder / "printer")], input=text, capture_output=True, text=True, check=True
        )
        return done.stdout.splitlines()

    return run


@settings(deadline=None, max_examples=25)
@given(st.lists(st.floats(), min_size=1, max_size=40))
def test_reals_have_seven_digits(
    printed: Callable[[list[str]], list[str]], values: list[float]
) -> None:
    """Every number is printed in one form, with an error in the seventh digit at most."""
    for value, text in zip(values, printed([f"r {v!r}" for v in values]), strict=True):
        if math.isnan(value) or math.isinf(value):
            assert text == repr(value)
            continue
        mantissa, exponent = text.lstrip("-").split("e")
        assert len(mantissa) == 8
        assert abs(float(text) - value) <= abs(value) * 1e-6 + 5e-324, exponent


@settings(deadline=None, max_examples=25)
@given(st.lists(st.integers(-(2**63), 2**63 - 1), min_size=1, max_size=40))
def test_integers(printed: Callable[[list[str]], list[str]], values: list[int]) -> None:
    """Integers of 64 bit are printed in decimal, the lowest, too."""
    assert printed([f"s {value}" for value in values]) == [str(value) for value in values]
    assert printed(["u 18446744073709551615"]) == ["18446744073709551615"]


@pytest.mark.parametrize("dtype", list(DType))
def test_literals_keep_their_values(dtype: DType, tmp_path: Path) -> None:
    """The extreme values of each type survive a C compiler that takes warnings as errors."""
    if dtype.is_float:
        limits = np.finfo(dtype.value)
        extremes = [limits.max, limits.min, limits.tiny, 0.1, np.nan, np.inf, -np.inf, -0.0]
    else:
        extremes = [dtype.min, dtype.max, 0, 1]
    values = np.array(extremes, dtype=dtype.value).reshape(-1, 1)
    array = sample_array("a", _port(dtype, (1,)), values)
    text = "#include <stdint.h>\n#include <stdio.h>\n"
    text += f"static const {C_TYPES[dtype]} a[{array.elements}] = {{\n"
    text += "\n".join(array.lines) + "\n};\n"
    text += "int main(void) { return fwrite(a, sizeof a, 1, stdout) != 1; }\n"
    (tmp_path / "a.c").write_text(text)
    flags = ["-std=c99", "-Wall", "-Wextra", "-Wconversion", "-pedantic", "-Werror"]
    command = ["gcc", *flags, str(tmp_path / "a.c"), "-o", str(tmp_path / "a")]
    subprocess.run(command, check=True)
    raw = subprocess.run([str(tmp_path / "a")], check=True, capture_output=True).stdout
    found = np.frombuffer(raw, dtype=dtype.value)
    np.testing.assert_array_equal(found, values.reshape(-1))
    assert array.bytes == len(raw)


def test_arbitrary_samples_are_always_the_same() -> None:
    """The values are legal for their type and known: no machine gives others."""
    ports = [
        _port(DType.INT8, (2, 3)),
        Port(PortKind.INPUT, "f", "f", _port(DType.FLOAT32, ()).type),
    ]
    samples = arbitrary_samples(ports)
    assert samples.inputs["t"].tolist() == [[[88, 66, -21], [-62, 2, -25]]]
    assert samples.inputs["f"].shape == (1,)
    assert abs(float(samples.inputs["f"][0])) < 1
