"""Compilers of this machine and the flags that generated C must pass without a warning."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

from tests.support.compile_cache import compiler_output

__all__ = [
    "CPP_COMPILERS", "C_COMPILERS", "HOST_COMPILERS", "INCLUDES", "STRICT", "STRICT_CPP",
    "compiler_output", "strict_problems",
]  # fmt: skip

STRICT = (
    "-pedantic", "-Wall", "-Wextra", "-Wconversion", "-Wshadow", "-Wcast-qual", "-Wcast-align",
    "-Wundef", "-Wmissing-prototypes", "-Werror",
)  # fmt: skip
STRICT_CPP = ("-pedantic", "-Wall", "-Wextra", "-Wconversion", "-Wshadow", "-Wundef", "-Werror")
INCLUDES = ("-I.", "-Iruntime_crt/include")

# gcc is what the project's tests need anyway; the others are used where they are installed.
_INSTALLED = ("gcc", *(n for n in ("clang", "arm-none-eabi-gcc", "avr-gcc") if shutil.which(n)))


def _small_int_commands() -> dict[str, tuple[str, ...]]:
    """Return commands of Clang, without a C library, for processors with an int of 16 bits."""
    if shutil.which("clang") is None:
        return {}
    said = subprocess.run(
        ["clang", "--print-targets"], capture_output=True, text=True, timeout=60, check=False
    ).stdout
    headers = str(Path(__file__).with_name("freestanding"))
    options = ("-ffreestanding", "-fsyntax-only", "-isystem", headers)
    return {
        f"clang-{target}": ("clang", f"--target={target}", *extra, *options)
        for target, extra in (("avr", ("-mmcu=atmega328p",)), ("msp430", ()))
        if f" {target} " in said
    }


# Name of the test -> command.
C_COMPILERS: dict[str, tuple[str, ...]] = {
    **{name: (name,) for name in _INSTALLED},
    **_small_int_commands(),
}
HOST_COMPILERS = tuple(name for name in C_COMPILERS if name in ("gcc", "clang"))
CPP_COMPILERS = tuple(
    n for n in ("g++", "clang++", "arm-none-eabi-g++") if n == "g++" or shutil.which(n)
)


def strict_problems(folder: Path, compiler: str, standard: str, *flags: str) -> str:
    """Warnings of one compiler about every C file of a folder.

    In C99 it optimises, which finds more; what other standards add is syntax.
    """
    units = sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*.c"))
    assert units, f"no C files in {folder}"
    how = ("-O2", "-c", "-o", "/dev/null") if standard == "c99" else ("-fsyntax-only",)
    command = [*C_COMPILERS[compiler], f"-std={standard}", *STRICT, *INCLUDES, *flags, *how]
    return "".join(compiler_output([*command, unit], folder) for unit in units)
