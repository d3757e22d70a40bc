"""Defects of microTVM's platform hooks: D16, D17; what an application defines, and its template."""

from __future__ import annotations

import subprocess
from pathlib import Path

from microtir.support.resources import runtime_crt
from tests.support.c_compilers import STRICT, compiler_output

INTERFACE = runtime_crt() / "microtvm" / "base"


def test_d16_the_timer_has_one_unit() -> None:
    """Documented in microseconds, computed in seconds: here parameter and comment agree."""
    text = (INTERFACE / "include" / "tvm" / "runtime" / "crt" / "platform.h").read_text()
    before, _ = text.split("tvm_crt_error_t TVMPlatformTimerStop(double *elapsed_time_seconds);")
    comment = before.rsplit("/*", 1)[1]
    assert "in seconds" in comment
    assert "micro" not in comment


_MAIN = r"""
#include <stdio.h>
#include <string.h>
#include <tvm/runtime/crt/platform.h>

static size_t formatted(char *buffer, size_t size, const char *format, ...)
{
    size_t length;
    va_list arguments;
    va_start(arguments, format);
    length = TVMPlatformFormatMessage(buffer, size, format, arguments);
    va_end(arguments);
    return length;
}

int main(void)
{
    char buffer[8] = "#######";
    double seconds = -1.0;
    (void)formatted(buffer, 4, "%d", 123456);
    (void)TVMPlatformTimerStart();
    (void)TVMPlatformTimerStop(&seconds);
    printf("%s %d %d\n", buffer, buffer[4] == '#', seconds >= 0.0);
    return 0;
}
"""


def test_d17_the_template_heeds_sizes_and_writes_results(tmp_path: Path) -> None:
    """It formatted beyond the buffer, and stopped the timer without a time."""
    (tmp_path / "main.c").write_text(_MAIN)
    template = (INTERFACE / "templates" / "platform.c.template").read_text()
    (tmp_path / "platform.c").write_text(template)
    command = ["gcc", "-std=c99", *STRICT, f"-I{INTERFACE / 'include'}", "-fsanitize=address"]
    assert not compiler_output([*command, "main.c", "platform.c", "-o", "main"], tmp_path)
    done = subprocess.run(["./main"], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["123", "1", "1"]
