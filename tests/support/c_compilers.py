"""Compilers of this machine and the flags that generated C must pass without a warning."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

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


def compiler_output(command: Sequence[str], folder: Path) -> str:
    """Return what a compiler says that refuses; an empty string if it accepts."""
    done = subprocess.run(
        list(command), cwd=folder, capture_output=True, text=True, timeout=120, check=False
    )
    return "" if done.returncode == 0 else done.stderr or f"status {done.returncode}"


def strict_problems(folder: Path, compiler: str, standard: str, *flags: str) -> str:
    """Return a compiler's warnings about every C file of a folder, optimised to find more."""
    units = sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*.c"))
    assert units, f"no C files in {folder}"
    command = [*C_COMPILERS[compiler], f"-std={standard}", "-O2", *STRICT, *INCLUDES, *flags]
    return "".join(
        compiler_output([*command, "-c", unit, "-o", "/dev/null"], folder) for unit in units
    )
