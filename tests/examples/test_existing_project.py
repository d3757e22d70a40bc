"""docs/existing-project.md and examples/freertos: their C compiles, links where they say, and runs.

With a clone of FreeRTOS-Kernel in FREERTOS_DIR the example runs in QEMU, and with one of RIOT in
RIOT_DIR the block for RIOT runs on this machine.
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from microtir import CompilationConfig, frontend
from tests.support import shared_programs
from tests.support.network import python_path
from tests.support.pages import ROOT, blocks

PAGE = "existing-project.md"
EXAMPLE = ROOT / "examples" / "freertos"
STAND_INS = ROOT / "tests" / "support" / "rtos_stand_ins"
KERNEL = os.environ.get("FREERTOS_DIR")
RIOT = os.environ.get("RIOT_DIR")
SOURCES_OF_MICROPYTHON, MICROPYTHON = map(os.environ.get, ("MICROPYTHON_DIR", "MICROPYTHON"))
SYSTEMS = {"c": "gcc -std=c99", "cpp": "g++ -std=c++11"}
ARM = ("arm-none-eabi-gcc", "-mcpu=cortex-m4", "-mthumb", "-O2", "-std=c99")
MEMORY = """MEMORY {
    FLASH (rx) : ORIGIN = 0x08000000, LENGTH = 1M
    QSPI (r) : ORIGIN = 0x90000000, LENGTH = 1M
    ITCM (rx) : ORIGIN = 0x00000000, LENGTH = 64K
    RAM (rw) : ORIGIN = 0x20000000, LENGTH = 256K
}
"""


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Write the two models of the page, each in a folder that has its name."""
    folder = tmp_path_factory.mktemp("existing")
    for name, file in (("digits", "digits_int8"), ("digits_float", "digits_float")):
        config = CompilationConfig(targets="c -mcpu=cortex-m4", module_name=name)
        model = frontend.from_tflite(ROOT / "examples" / "digits" / f"{file}.tflite")
        shared_programs.build(model, config).export(folder / name)
    return folder


def includes(models: Path) -> list[str]:
    """Return the options that name folders of headers."""
    folders = (models / "digits", models / "digits_float", STAND_INS)
    return [f"-I{folder}" for folder in folders]


def run(command: list[str]) -> str:
    """Return what a program prints; all of it is shown where it fails."""
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{shlex.join(command)}\n{done.stdout}{done.stderr}"
    return done.stdout


@pytest.mark.parametrize("language", SYSTEMS)
def test_blocks_compile(language: str, models: Path, tmp_path: Path) -> None:
    """Each block of C and C++ is a file that compiles without a warning."""
    found = blocks(PAGE, language)
    assert len(found) == {"c": 6, "cpp": 1}[language]
    for number, block in enumerate(found):
        file = tmp_path / f"block{number}.{language}"
        file.write_text(block, encoding="utf-8")
        warnings = ["-Wall", "-Wextra", "-Werror", "-fsyntax-only"]
        run([*SYSTEMS[language].split(), *warnings, *includes(models), str(file)])


def test_sections_are_where_the_page_says(models: Path, tmp_path: Path) -> None:
    """Linked with the lines of the page, weights lie in the QSPI flash and code in the ITCM."""
    (lines,) = blocks(PAGE, "ld")
    definitions = ["-D" + line for line in "\n".join(blocks(PAGE, "text")).splitlines()]
    script, program = tmp_path / "link.ld", tmp_path / "program.elf"
    rest = ".text : { *(.text*) *(.rodata*) } > FLASH .bss : { *(.bss*) } > RAM"
    script.write_text(f"{MEMORY}SECTIONS {{ {rest}\n{lines} }}\n")
    calls = [tmp_path / "call.c", tmp_path / "copy.c"]
    for file, block in zip(calls, (blocks(PAGE, "c")[i] for i in (0, 1)), strict=True):
        file.write_text(block)
    sources = [str(models / "digits" / f"digits{end}.c") for end in ("", "_weights")]
    link = [
        "-nostartfiles",
        "-Wl,-e,classify",
        "-Wl,--fatal-warnings",
        "-Wl,--no-warn-rwx-segments",
    ]
    files = [*sources, *map(str, calls)]
    linking = [*link, "-T", str(script), "-o", str(program)]
    run([*ARM, *definitions, *includes(models), *files, *linking])
    listed = run(["arm-none-eabi-nm", str(program)])
    places = {name: int(at, 16) for at, _, name in map(str.split, listed.splitlines())}
    own = {name: at >> 24 for name, at in places.items() if name.startswith("digits_")}
    text = (models / "digits" / "digits_weights.c").read_text()
    weights = re.findall(r"(\w+)\[\d+\] = \{$", text, re.MULTILINE)
    assert {own.pop(name) for name in weights} == {0x90}
    assert set(own.values()) == {0x00} and "digits_run" in own
    assert places["copy_code"] >> 24 == 0x08 and places["itcm_load"] >> 24 == 0x08
    assert 0 == places["itcm_start"] < places["itcm_end"]


def test_the_example_compiles(models: Path, tmp_path: Path) -> None:
    """The program for FreeRTOS compiles against stand-ins for the kernel's headers."""
    samples = tmp_path / "samples.h"
    data = ROOT / "examples" / "digits" / "digits_test.npz"
    run([sys.executable, str(EXAMPLE / "samples.py"), str(data), str(samples)])
    flags = ["-Wall", "-Wextra", "-Werror", f"-I{tmp_path}", "-fsyntax-only"]
    run([*ARM, *flags, *includes(models), str(EXAMPLE / "main.c")])


@pytest.mark.skipif(KERNEL is None, reason="FREERTOS_DIR names no clone of FreeRTOS-Kernel")
def test_two_models_in_three_tasks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """All outputs are right though the tick stops tasks within runs; no stack is used up."""
    monkeypatch.setenv("PYTHONPATH", python_path(ROOT / "generator"))
    python = shlex.quote(sys.executable)
    said = run(
        ["make", "-s", "-C", str(EXAMPLE), "run", f"FREERTOS_DIR={KERNEL}", f"BUILD={tmp_path}",
         f"PYTHON={python}", f"MICROTIR={python} -m microtir"]
    )  # fmt: skip
    row = re.compile(r"^(\w+): 40 of 40 right, (\d+) of (\d+) bytes of stack$", re.MULTILINE)
    stacks = {name: (int(used), int(size)) for name, used, size in row.findall(said)}
    assert stacks.keys() == {"shared", "floats", "own"}, said
    assert all(used < size for used, size in stacks.values())
    (switches,) = re.findall(r"^(\d+) switches of tasks$", said, re.MULTILINE)
    assert int(switches) > 120  # more than one a run


RIOT_MAKEFILE = """APPLICATION = digits_app
BOARD = native64
RIOTBASE = {}
{}
include $(RIOTBASE)/Makefile.include
"""
RIOT_MAIN = """
#include <stdio.h>
#include <stdlib.h>

int main(void)
{
    start_digits(); /* has run when this returns: its priority is higher */
    for (int i = 0; i < DIGITS_PROBABILITIES_ELEMENTS; i++) {
        printf("%d,", probabilities[i]);
    }
    printf("\\n");
    fflush(stdout);
    _Exit(0);
}
"""


@pytest.mark.skipif(RIOT is None, reason="RIOT_DIR names no clone of RIOT")
def test_the_thread_of_riot(models: Path, tmp_path: Path) -> None:
    """Built for RIOT on Linux, the block of the page computes what the model computes."""
    (task,) = (block for block in blocks(PAGE, "c") if "thread_create" in block)
    page = (ROOT / "docs" / PAGE).read_text(encoding="utf-8")
    lines = re.findall(r"^    ((?:DIRS|USEMODULE|INCLUDES) \+= .*)$", page, re.MULTILINE)
    assert len(lines) == 3
    shutil.copytree(models / "digits", tmp_path / "digits")
    (tmp_path / "digits" / "Makefile").write_text("include $(RIOTBASE)/Makefile.base\n")
    (tmp_path / "Makefile").write_text(RIOT_MAKEFILE.format(RIOT, "\n".join(lines)))
    image = np.load(ROOT / "examples" / "digits" / "digits_test.npz")
    values = ", ".join(map(str, image["inputs"][0].reshape(-1)))
    filled = task.replace("image[DIGITS_IMAGE_ELEMENTS],", f"image[] = {{{values}}},")
    (tmp_path / "main.c").write_text(filled + RIOT_MAIN)
    run(["make", "-s", "-C", str(tmp_path)])
    program = str(tmp_path / "bin" / "native64" / "digits_app.elf")
    ended = subprocess.run(
        [program], stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False, timeout=20
    )
    expected = ",".join(map(str, image["outputs"][0].reshape(-1)))
    assert f"{expected},\n" in ended.stdout, ended.stdout + ended.stderr


@pytest.mark.skipif(
    SOURCES_OF_MICROPYTHON is None or MICROPYTHON is None,
    reason="MICROPYTHON_DIR and MICROPYTHON name no clone of MicroPython and no interpreter",
)
def test_a_native_module_of_micropython(tmp_path: Path) -> None:
    """The file that the lines of the page make is imported by an interpreter, and computes."""
    model = frontend.from_tflite(ROOT / "examples" / "digits" / "digits_int8.tflite")
    config = CompilationConfig(targets="c", module_name="digits")
    shared_programs.build(model, config).export(tmp_path / "digits")
    (native,) = (block for block in blocks(PAGE, "c") if "dynruntime" in block)
    (tmp_path / "native.c").write_text(native)
    (tmp_path / "Makefile").write_text(*blocks(PAGE, "make"))
    facts = [f"MPY_DIR={SOURCES_OF_MICROPYTHON}", "ARCH=x64"]
    run(["make", "-s", "-C", str(tmp_path), *facts])
    data = np.load(ROOT / "examples" / "digits" / "digits_test.npz")
    image, expected = (list(data[key][0].tobytes()) for key in ("inputs", "outputs"))
    (tmp_path / "call.py").write_text(
        f"import sys\nsys.path.insert(0, {str(tmp_path)!r})\nimport digits_native\n"
        f"out = bytearray(10)\nprint(digits_native.run(bytearray({image}), out), list(out))\n"
    )
    assert run([str(MICROPYTHON), str(tmp_path / "call.py")]) == f"0 {expected}\n"
