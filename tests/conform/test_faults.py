"""Planted faults are noticed, and correct kernels conform: those of the tests, and of libraries."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from microtir.conform import load_spec, run
from microtir.conform.programs import program_name
from tests.conform.faults import FAULTS, Fault
from tests.support.command import Command

KERNELS = Path(__file__).parent / "kernels"
TYPES = Path(__file__).parents[1] / "support/cmsis_nn_stand_in/Include/arm_nn_types.h"

# Without optimisation: a fault is compiled for some cases.
FLAGS = (
    "-std=gnu99", "-O0", "-fsanitize=address,undefined", "-fno-sanitize=shift-base",
    "-fno-sanitize-recover=all",
)  # fmt: skip

LAYOUTS = {
    "cmsis-nn": ("Include", "arm_nnfunctions.h", "Source/Tests", "cmsis.c", "s8"),
    "esp-nn": ("include", "esp_nn.h", "src/tests", "esp.c", "ansi"),
}
"""Where headers and sources of each interface lie, and the end of names of sources."""


def kernel_folder(folder: Path, spec: str) -> Path:
    """Make a folder of the tests' kernels in an interface."""
    headers, header, sources, adapter, end = LAYOUTS[spec]
    for name in (headers, sources, "src/common"):
        (folder / name).mkdir(parents=True, exist_ok=True)
    for file in (KERNELS / header, KERNELS / "kernels.h", TYPES):
        shutil.copy(file, folder / headers)
    shutil.copy(KERNELS / "kernels.c", folder / sources / f"kernels_{end}.c")
    shutil.copy(KERNELS / adapter, folder / sources / f"{adapter[:-2]}_{end}.c")
    return folder


def is_missed(fault: Fault, place: Path, spec: str) -> bool:
    """Build the program of a fault's function with the fault, and return whether it passes."""
    _, _, sources, adapter, end = LAYOUTS[spec]
    text = (KERNELS / "kernels.c").read_text()
    assert text.count(fault.old) == 1, fault.what
    (place / "fault.c").write_text(text.replace(fault.old, fault.new))
    objects = ["conform.o", f"kernels/{sources}/{adapter[:-2]}_{end}.o"]
    program = program_name(next(f for f in load_spec(spec).functions if f.name == fault.function))
    subprocess.run(
        ["gcc", *FLAGS, f"-I{KERNELS}", "fault.c", f"{program}.o", *objects, "-o", "faulty"],
        cwd=place, check=True, capture_output=True,
    )  # fmt: skip
    return subprocess.run([place / "faulty"], capture_output=True, check=False).returncode == 0


@pytest.mark.parametrize("spec", LAYOUTS)
def test_no_planted_fault_is_missed(spec: str, microtir: Command, tmp_path: Path) -> None:
    """Correct kernels conform; with any of the faults, their program fails."""
    kernels = kernel_folder(tmp_path / "kernels", spec)
    place = tmp_path / "programs"
    result = microtir("conform", str(kernels), "--spec", spec, "-o", str(place))
    assert result.status == 0, result.out
    assert "8 of 8 functions conform" in result.out
    names = {function.name for function in load_spec(spec).functions}
    faults = [fault for fault in FAULTS if fault.function in names]
    assert len(faults) >= 7
    assert [fault.what for fault in faults if is_missed(fault, place, spec)] == []


def test_faults_are_small_and_have_reports() -> None:
    """Each of at least 25 faults changes at most five lines, and the page names its report."""
    page = (KERNELS.parents[2] / "docs/conform.md").read_text()
    assert len(FAULTS) >= 25
    for fault in FAULTS:
        old, new = fault.old.splitlines(), fault.new.splitlines()
        changed = [line for line in new if line not in old]
        assert 1 <= len(changed) <= 5
        owner, _, number = fault.report.partition("#")
        assert owner.count("/") == 1
        assert number.isdigit()
        assert f"| {fault.what} | `{fault.function}` | [{fault.report}](" in page


def test_a_failure_names_case_element_and_values(microtir: Command, tmp_path: Path) -> None:
    """The verb ends with status 1 and says which output of which case differs, and how."""
    kernels = kernel_folder(tmp_path, "esp-nn")
    source = kernels / "src/tests/kernels_ansi.c"
    source.write_text(source.read_text().replace("memset(pixel, -128,", "memset(pixel, 0,"))
    result = microtir("conform", str(kernels), "--spec", "esp-nn", "--cases", "10")
    assert result.status == 1
    assert "7 of 8 functions conform" in result.out
    assert "esp_nn_max_pool_s8                10 cases  FAILS" in result.out
    finding = next(line for line in result.out.splitlines() if "output[" in line)
    assert "max_pool_2d of" in finding
    assert re.search(r"output\[\d+\] is -?\d+, expected -\d+; \d+ of \d+ differ", finding)


def test_a_kernel_that_never_ends_fails(
    microtir: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its program is ended, and the others are run."""
    monkeypatch.setattr(run, "_PROGRAM_TIMEOUT", 2.0)
    kernels = kernel_folder(tmp_path, "esp-nn")
    source = kernels / "src/tests/kernels_ansi.c"
    endless = "for (;;) { } memset(pixel, -128,"
    source.write_text(source.read_text().replace("memset(pixel, -128,", endless))
    result = microtir("conform", str(kernels), "--spec", "esp-nn", "--cases", "2")
    assert result.status == 1
    assert "did not end in 2 seconds" in result.out
    assert "7 of 8 functions conform" in result.out


def _library(spec: str, variable: str) -> Any:
    """Return a case that runs where a variable names the folder of a library."""
    missing = pytest.mark.skipif(variable not in os.environ, reason=f"{variable} names no folder")
    return pytest.param(spec, variable, marks=missing)


@pytest.mark.parametrize(
    ("spec", "variable"),
    [_library("cmsis-nn", "MICROTIR_CMSIS_NN"), _library("esp-nn", "MICROTIR_ESP_NN")],
)
def test_libraries_conform(spec: str, variable: str, microtir: Command) -> None:
    """The library in the folder that a variable names conforms."""
    result = microtir("conform", os.environ[variable], "--spec", spec)
    assert result.status == 0, result.out
