"""Archives on the command line: written by compile, taken by run and micro create-project."""

from __future__ import annotations

import re
import tarfile
from pathlib import Path

import numpy as np
import pytest

import microtir as package
from tests.support.command import INT8, TEST_SET, Command
from tests.support.small_models import module_of, tiny_graph


@pytest.fixture
def archive(microtir: Command, tmp_path: Path) -> Path:
    """Return the example in an archive."""
    path = tmp_path / "module.tar"
    assert microtir("compile", INT8, "-f", "mlf", "-o", path).status == 0
    return path


def test_compile_tells_and_repeats(microtir: Command, archive: Path) -> None:
    """The summary names the archive; the same command writes the same bytes."""
    before = archive.read_bytes()
    result = microtir("compile", INT8, "--output-format", "mlf", "-o", archive)
    assert f"digits_int8.tflite -> {archive}" in result.out
    assert archive.read_bytes() == before


def test_timestamp_is_asked_for(microtir: Command, archive: Path) -> None:
    """Only with --timestamp the time is in the archive."""
    assert microtir("compile", INT8, "-f", "mlf", "-o", archive, "--timestamp").status == 0
    with tarfile.open(archive) as tar:
        stream = tar.extractfile("./metadata.json")
        assert stream is not None
        text = stream.read().decode()
    found = re.search(r'"export_datetime": "(\d{4})-', text)
    assert found is not None and int(found[1]) >= 2024
    refused = microtir("compile", INT8, "-o", archive.parent / "out", "--timestamp")
    assert "requires --output-format mlf" in refused.diagnostic


def test_run_takes_it(microtir: Command, archive: Path, tmp_path: Path) -> None:
    """The outputs are those of the model file."""
    np.savez(tmp_path / "in.npz", image=np.load(TEST_SET)["inputs"][0])
    for model, out in ((archive, "a.npz"), (INT8, "b.npz")):
        result = microtir("run", model, "-i", tmp_path / "in.npz", "-o", tmp_path / out)
        assert (result.status, result.err) == (0, "")
    one, two = (np.load(tmp_path / name)["probabilities"] for name in ("a.npz", "b.npz"))
    assert np.array_equal(one, two)


def test_project_runs_it_on_golden_samples(
    microtir: Command, archive: Path, tmp_path: Path
) -> None:
    """A project from an archive builds, runs and compares like one from the model."""
    folder = tmp_path / "project"
    created = microtir(
        "micro", "create-project", archive, "-o", folder, "--board", "host", "--golden", TEST_SET
    )
    assert (created.status, created.err) == (0, "")
    assert microtir("micro", "build", folder).status == 0
    ran = microtir("micro", "run", folder)
    assert ran.status == 0, ran.out
    assert "digits_int8" in ran.out


def test_project_takes_all_modules_of_it(microtir: Command, tmp_path: Path) -> None:
    """Each module of an archive becomes a model of the project; they share its workspace."""
    config = package.CompilationConfig(targets="c")
    modules = [
        package.build(module_of(tiny_graph()), config.with_(module_name=name))
        for name in ("left", "right")
    ]
    path = package.export_model_library_format(modules, tmp_path / "both.tar")
    folder = tmp_path / "project"
    result = microtir("micro", "create-project", path, "-o", folder, "--board", "host")
    assert "left, right -> " in result.out
    assert microtir("micro", "build", folder).status == 0
    assert microtir("micro", "run", folder).status == 0
    refused = microtir("run", path)
    assert refused.status == 2
    assert "the archive holds 2 models: left, right" in refused.diagnostic


def test_configuration_is_refused(microtir: Command, archive: Path, tmp_path: Path) -> None:
    """What is compiled already heeds no option of a configuration, so none is accepted."""
    result = microtir("run", archive, "--target", "c -mcpu=cortex-m4")
    assert result.status == 2
    assert "'--target' has no effect on an archive" in result.diagnostic
    command = ("micro", "create-project", archive, "-o", tmp_path / "p", "--board", "host")
    result = microtir(*command, "--optimize", "ram")
    assert "'--optimize' has no effect on an archive" in result.diagnostic


def test_other_verbs_want_a_model(microtir: Command, archive: Path) -> None:
    """A verb that compiles says which verbs take an archive."""
    result = microtir("verify", archive)
    assert result.status == 2
    assert "`microtir run` and `microtir package` accept archives" in result.diagnostic


def test_other_tar_is_one_diagnostic(microtir: Command, tmp_path: Path) -> None:
    """A file that is no archive of ours: what it should be, and how to get one."""
    path = tmp_path / "module.tar"
    path.write_text("mine")
    result = microtir("run", path)
    assert result.status == 3
    assert "compile the model again with --output-format mlf" in result.diagnostic
