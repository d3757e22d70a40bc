"""Mistakes in kernels are found: each mutant computes layers wrongly that are named for it."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.execute.mutants import MUTANTS
from tests.support.network import python_path
from tests.support.seeds import VARIABLE

ROOT = Path(__file__).resolve().parents[2]
COPIED = ("boards", "generator", "runtime_crt", "templates")


@pytest.fixture(scope="module")
def package(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the package and of what lies beside it."""
    root = tmp_path_factory.mktemp("package")
    for name in COPIED:
        shutil.copytree(ROOT / name, root / name)
    (root / "examples").symlink_to(ROOT / "examples")
    return root


@pytest.fixture
def damaged(package: Path, request: pytest.FixtureRequest) -> Iterator[Path]:
    """The copy with a mistake."""
    mutant = MUTANTS[request.param]
    path = package / mutant.path
    before = path.read_text(encoding="utf-8")
    assert before.count(mutant.old) == 1, f"{mutant.path} does not hold {mutant.old!r} once"
    path.write_text(before.replace(mutant.old, mutant.new), encoding="utf-8")
    yield package
    path.write_text(before, encoding="utf-8")


@pytest.mark.quick
def test_the_texts_of_mutants_stand_in_their_files() -> None:
    """A file that is written otherwise would leave its mutants undone until the soak."""
    texts = {mutant.path: (ROOT / mutant.path).read_text("utf-8") for mutant in MUTANTS.values()}
    assert [name for name, m in MUTANTS.items() if texts[m.path].count(m.old) != 1] == []


@pytest.mark.soak_only
@pytest.mark.parametrize(
    ("damaged", "name"), [(name, name) for name in MUTANTS], ids=MUTANTS, indirect=["damaged"]
)
def test_layers_of_a_mutant_are_wrong(damaged: Path, name: str, tmp_path: Path) -> None:
    """At least one layer of the kinds that are named for it differs from the reference."""
    mutant = MUTANTS[name]
    environment = {
        **os.environ,
        "PYTHONPATH": python_path(damaged / "generator", ROOT),
        # The file changes within a second, which is what the cache of bytecode knows of its time.
        "PYTHONDONTWRITEBYTECODE": "1",
        # The soak's layers of the seeds of `make test` must find it; those of another need not.
        VARIABLE: "0",
    }
    done = subprocess.run(
        [
            sys.executable, "-m", "tests.execute.wrong_layers", mutant.core, str(tmp_path),
            *mutant.kinds,
        ],
        cwd=ROOT, env=environment, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-2000:]
    assert done.stdout.split(), "no layer differs"
