"""Names of tensors, pools and variables against every macro of the headers that C includes."""

from __future__ import annotations

import re
import shutil
import subprocess

import pytest

from microtir.support.names import c_name, is_identifier

_HEADERS = ("stdint.h", "stddef.h", "math.h", "string.h")
# Compiler -> more flags, and more headers that generated code for its targets includes.
C_COMPILERS: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "gcc": (("-mavx2",), ("immintrin.h",)),
    "clang": (("-mavx2",), ("immintrin.h",)),
    "arm-none-eabi-gcc": (("-mcpu=cortex-m55", "-mfloat-abi=hard"), ("arm_mve.h",)),
    "riscv64-unknown-elf-gcc": (("--specs=picolibc.specs",), ()),
    "avr-gcc": (("-mmcu=atmega2560",), ("avr/pgmspace.h",)),
    "aarch64-linux-gnu-gcc": ((), ("arm_neon.h",)),
}
CPP_COMPILERS = {
    "g++": C_COMPILERS["gcc"], "clang++": C_COMPILERS["clang"],
    "arm-none-eabi-g++": C_COMPILERS["arm-none-eabi-gcc"],
}  # fmt: skip
CASES = [
    *((name, "c", standard) for name in C_COMPILERS for standard in ("c99", "c11", "gnu11")),
    *((name, "c++", standard) for name in CPP_COMPILERS for standard in ("c++17", "gnu++17")),
]
_MACRO = re.compile(r"#define (\w+)(\(?)[^ ]* ?(.*)")


def macros(compiler: str, language: str, standard: str) -> dict[str, str]:
    """Return what macros without arguments stand for; the others need a bracket behind."""
    flags, headers = (C_COMPILERS | CPP_COMPILERS)[compiler]
    text = "".join(f"#include <{header}>\n" for header in (*_HEADERS, *headers))
    done = subprocess.run(
        [compiler, *flags, f"-std={standard}", "-x", language, "-dM", "-E", "-"],
        input=text, capture_output=True, text=True, check=True,
    )  # fmt: skip
    found = map(_MACRO.fullmatch, done.stdout.splitlines())
    return {match[1]: match[3] for match in found if match is not None and not match[2]}


@pytest.mark.parametrize(("compiler", "language", "standard"), CASES)
def test_no_name_is_a_macro(compiler: str, language: str, standard: str) -> None:
    """A tensor called like a macro gave C that did not compile; the form it gets is none.

    A library may define a function as another one. Such a macro changes nothing: source files
    include headers first, so that a name and every use of it become the same other name.
    """
    assert shutil.which(compiler), compiler
    known = macros(compiler, language, standard)
    assert {"NULL", "INT8_MAX", "SIZE_MAX", "__STDC_HOSTED__"} <= set(known)
    kept = {name for name in known if c_name(name) == name}
    assert {name for name in kept if not is_identifier(known[name])} == set()
    assert {c_name(name) for name in known} & set(known) == kept
    assert {c_name(known[name]) for name in kept} == {known[name] for name in kept}


@pytest.mark.parametrize("name", ["NULL", "DIGITS_OK", "int8_t", "linux", "errno", "class", "x"])
def test_the_form_stays_as_it_is(name: str) -> None:
    """What has been given a form is not given another one."""
    assert c_name(c_name(name)) == c_name(name)
