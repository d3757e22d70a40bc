"""The same model and configuration give the same bytes, wherever and however often."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

import microtir
from microtir.artifact import Artifact
from microtir.config import CompilationConfig
from microtir.graph.ir import Graph
from tests.support.network import python_path
from tests.support.small_models import branching_graph, module_of, quantised_graph

ROOT = Path(__file__).parents[2]
DIGITS = ROOT / "examples" / "digits" / "digits_int8.tflite"
CONFIG = CompilationConfig(
    targets="c -mcpu=cortex-m4",
    module_name="digits",
    workspace_pools=["sram"],
    pass_config={"memory.placement": "exact", "tir.unroll_max_extent": 4},
)
SCRIPT = """
import sys
import microtir
from microtir.config import CompilationConfig
model, config, target = sys.argv[1:]
module = microtir.frontend.from_tflite(model)
microtir.build(module, CompilationConfig.from_json(config)).export(target)
"""


def exported(folder: Path, model: str, seed: str, **environment: str) -> dict[str, bytes]:
    """Return what a fresh process writes that runs in `folder`, file by file."""
    folder.mkdir(parents=True, exist_ok=True)
    base = {k: v for k, v in os.environ.items() if not k.startswith(("PYTHON", "LC_", "LANG"))}
    subprocess.run(
        [sys.executable, "-c", SCRIPT, model, CONFIG.to_json(), "out"],
        cwd=folder,
        env={
            **base,
            "PYTHONPATH": python_path(ROOT / "generator"),
            "PYTHONHASHSEED": seed,
            **environment,
        },
        check=True,
        timeout=120,
    )
    out = folder / "out"
    return {
        path.relative_to(out).as_posix(): path.read_bytes()
        for path in out.rglob("*")
        if path.is_file()
    }


@pytest.fixture(scope="module")
def first(tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    """Return the files of a build in a folder of its own."""
    return exported(tmp_path_factory.mktemp("first"), str(DIGITS), "0")


@pytest.mark.parametrize("seed", ["1", "4242", "random"])
def test_hash_seeds_change_nothing(first: dict[str, bytes], seed: str, tmp_path: Path) -> None:
    """No set or dictionary of objects decides an order in the output."""
    assert exported(tmp_path, str(DIGITS), seed) == first


def test_folders_and_locale_change_nothing(first: dict[str, bytes], tmp_path: Path) -> None:
    """Another folder, a relative path and another locale give the same bytes."""
    elsewhere = tmp_path / "deep er" / "model"
    elsewhere.mkdir(parents=True)
    shutil.copy(DIGITS, elsewhere / DIGITS.name)
    model = f"model/{DIGITS.name}"
    again = exported(tmp_path / "deep er", model, "7", LC_ALL="C", TZ="Asia/Tokyo")
    assert again == first


def test_no_file_names_this_machine(first: dict[str, bytes]) -> None:
    """The folder of model and project is nowhere in the output; lines end in LF."""
    assert len(first) >= 4
    for path, content in first.items():
        assert str(ROOT).encode() not in content, path
        assert b"\r" not in content and content.endswith(b"\n"), path


def sources(artifact: Artifact) -> list[tuple[str, str]]:
    """Path and text of every generated file, in order."""
    return [(file.path, file.text) for file in artifact.sources]


@pytest.mark.parametrize("make", [quantised_graph, branching_graph])
def test_a_second_build_in_one_process_is_the_same(make: Callable[[], Graph]) -> None:
    """No counter or cache of the first compilation reaches the second."""
    one = sources(microtir.build(module_of(make()), CONFIG))
    other = sources(microtir.build(module_of(make()), CONFIG.with_(module_name="other")))
    again = sources(microtir.build(module_of(make()), CONFIG))
    assert one == again != other
