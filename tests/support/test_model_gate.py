"""The gate on reference models."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest

from tests.support.inner_pytest import run_inner

RUNS_BOTH = """
    import pytest

    @pytest.mark.parametrize(
        "name", [pytest.param(n, marks=pytest.mark.model(n)) for n in ("alpha", "beta")]
    )
    def test_model(name, models_dir):
        assert (models_dir / f"{name}.tflite").exists()
"""
RUNS_ONE = """
    import pytest

    @pytest.mark.model("alpha")
    def test_model(models_dir):
        assert models_dir.is_dir()

    @pytest.mark.model("beta")
    def test_other(models_dir):
        pytest.skip("not today")
"""
Inner = Callable[..., pytest.RunResult]


@pytest.fixture
def inner(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> Inner:
    """Run a test file in a pytest of its own, with or without a folder of two models."""

    def run(
        source: str, *, models: bool, ci: bool, workers: int = 0, exported: str = ""
    ) -> pytest.RunResult:
        folder = pytester.path / "models"
        if models:
            folder.mkdir()
            for name in ("alpha", "beta"):
                (folder / f"{name}.tflite").touch()
            if exported:
                (folder / "exported").mkdir()
                listed = {"models": [{"file": f"{exported}.tflite"}, {"file": "other.onnx"}]}
                (folder / "exported" / "manifest.json").write_text(json.dumps(listed))
        monkeypatch.setenv("MICROTIR_MODELS", str(folder))
        monkeypatch.setenv("CI", "true" if ci else "")
        pytester.makeini("[pytest]\nmarkers = model(name): a model")
        pytester.makepyfile(source)
        plugins = "tests.support.model_gate", "xdist"
        return run_inner(pytester, monkeypatch, "-n", str(workers), plugins=plugins)

    return run


@pytest.mark.parametrize("workers", [0, 2])
def test_passes_when_every_model_ran(inner: Inner, workers: int) -> None:
    """All models of the folder ran, in one process or in xdist workers: the session passes."""
    result = inner(RUNS_BOTH, models=True, ci=True, workers=workers)
    assert result.ret == 0
    result.stdout.fnmatch_lines(["models run: 2 of 2"])


@pytest.mark.parametrize("workers", [0, 2])
def test_fails_in_ci_when_a_model_was_skipped(inner: Inner, workers: int) -> None:
    """A skipped model fails the session in CI, and the last lines name it."""
    result = inner(RUNS_ONE, models=True, ci=True, workers=workers)
    assert result.ret == 1
    result.stdout.fnmatch_lines(["models run: 1 of 2", "ERROR: models not run: beta"])


def test_fails_in_ci_when_an_exported_model_is_missing(inner: Inner) -> None:
    """A model that the manifest lists is missing even where its file is."""
    result = inner(RUNS_BOTH, models=True, ci=True, exported="gamma")
    assert result.ret == 1
    result.stdout.fnmatch_lines(["models run: 2 of 3", "ERROR: models not run: exported/gamma"])


def test_only_counts_outside_ci(inner: Inner) -> None:
    """At a developer's desk a part of the suite may run: the gate only says how much did."""
    result = inner(RUNS_ONE, models=True, ci=False)
    assert result.ret == 0
    result.stdout.fnmatch_lines(["models run: 1 of 2"])


def test_deselects_without_models(inner: Inner) -> None:
    """Without a models folder the tests of models are deselected, and the header says so."""
    result = inner(RUNS_BOTH, models=False, ci=True)
    assert result.ret == pytest.ExitCode.NO_TESTS_COLLECTED
    result.stdout.fnmatch_lines(["models: none found*", "*2 deselected*"])
