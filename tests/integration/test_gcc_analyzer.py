"""What `gcc -fanalyzer`, which follows paths through functions, says of generated files."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from microtir.support.resources import runtime_crt
from tests.support.models_of_kinds import MARKS, MODELS, digits, of_file

pytestmark = pytest.mark.tools

# With its own limit gcc gives up most files after some of their paths, and is silent.
TO_THE_END = ("--param=analyzer-bb-explosion-factor=1000", "-Wanalyzer-too-complex")
ONE_POINT = "terminating analysis for this program point"  # of a loop, after eight turns


def _findings(sources: Path, scratch: Path) -> list[str]:
    """Return the warnings of the C files of a folder, also that one is not looked at whole."""
    paths = sorted(map(str, sources.glob("*.c")))
    assert paths
    done = subprocess.run(
        ["gcc", "-std=c99", "-O1", "-fanalyzer", *TO_THE_END, "-fdiagnostics-plain-output",
         f"-I{runtime_crt() / 'include'}", "-c", *paths],
        cwd=scratch, capture_output=True, text=True, check=True,
    )  # fmt: skip
    lines = done.stderr.splitlines()
    return [line for line in lines if ": warning: " in line and ONE_POINT not in line]


def test_nothing_is_found(tmp_path: Path) -> None:
    """Neither the example nor the runtime has a finding."""
    assert _findings(digits("c").export(tmp_path / "c"), tmp_path) == []
    assert _findings(runtime_crt() / "src", tmp_path) == []


@pytest.mark.soak_only
@pytest.mark.model(*MARKS)
def test_nothing_is_found_in_ten_models(models_dir: Path, tmp_path: Path) -> None:
    """The example with the executor `graph`, and for a CPU with assembly; nine models."""
    artifacts = [
        digits("c", "graph"),
        digits("cortex-m4"),
        *(of_file(models_dir / name) for name in MODELS),
    ]
    for number, artifact in enumerate(artifacts):
        assert _findings(artifact.export(tmp_path / str(number)), tmp_path) == []


FAULTS = """
#include <stdint.h>

int32_t unset(int32_t n)
{
    int32_t sums[2];
    if (n > 0) {
        sums[0] = n;
    }
    return sums[0] + sums[1];
}

static const int8_t *row(const int8_t *rows, int32_t n)
{
    return n > 3 ? 0 : &rows[n];
}

int8_t first(const int8_t *rows, int32_t n)
{
    return *row(rows, n);
}
"""


def test_faults_are_found(tmp_path: Path) -> None:
    """An element that is never written is read, and a pointer that is null on one path."""
    folder = tmp_path / "c"
    folder.mkdir()
    (folder / "faults.c").write_text(FAULTS, encoding="utf-8")
    kinds = {line.rpartition(" ")[2] for line in _findings(folder, tmp_path)}
    assert kinds == {
        "[-Wanalyzer-use-of-uninitialized-value]",
        "[-Wanalyzer-null-dereference]",
    }
