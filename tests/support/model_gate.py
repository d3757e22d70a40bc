"""Reference models: where they are, and a gate that fails CI when one of them was not run.

The models folder is not part of the repository.  A test names the model it runs with
`@pytest.mark.model("kws_int8")` (or `pytest.param(..., marks=pytest.mark.model("kws_int8"))`) and
takes the path from the fixture `models_dir`.  Without the folder those tests are deselected.  With
it, and with CI=true, the session fails unless a test of every model passed.
"""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from tests.support.tools_gate import OPTION

VARIABLE = "MICROTIR_MODELS"
EXPORTED = "exported"
_KEY = "microtir-model"


def find_models(root: Path) -> Path | None:
    """Return the models folder: `MICROTIR_MODELS`, else `../shared/models` beside the checkout."""
    named = os.environ.get(VARIABLE)
    folder = Path(named) if named else root.parent / "shared" / "models"
    return folder if folder.is_dir() else None


def model_names(folder: Path) -> list[str]:
    """Return the names of the models in `folder`, sorted; those of exporters with their folder.

    Which these are says their manifest, so that a file that is gone is missing.
    """
    names = [path.stem for path in folder.glob("*.tflite")]
    manifest = folder / EXPORTED / "manifest.json"
    if manifest.is_file():
        files = [model["file"] for model in json.loads(manifest.read_text("utf-8"))["models"]]
        names += [f"{EXPORTED}/{Path(f).stem}" for f in files if f.endswith(".tflite")]
    return sorted(names)


@pytest.fixture(scope="session")
def models_dir(pytestconfig: pytest.Config) -> Path:
    """Return the models folder; a test that asks for it must carry the mark `model`."""
    folder = find_models(pytestconfig.rootpath)
    assert folder is not None, "a test that takes models_dir must be marked `model(name)`"
    return folder


class ModelGate:
    """Notes which models ran.

    Registered where every report arrives: in the only process or, with xdist, in the controller.
    """

    def __init__(self, folder: Path, required: bool, takes_exported: bool) -> None:
        names = model_names(folder)
        self.expected = [n for n in names if takes_exported or not n.startswith(f"{EXPORTED}/")]
        self.required = required
        self.passed: set[str] = set()

    @property
    def missing(self) -> list[str]:
        """Return models of the folder that no passed test has run."""
        return [name for name in self.expected if name not in self.passed]

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.when == "call" and report.passed:
            self.passed.update(str(value) for key, value in report.user_properties if key == _KEY)

    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        if self.required and self.missing and session.exitstatus == pytest.ExitCode.OK:
            session.exitstatus = pytest.ExitCode.TESTS_FAILED

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        run = len(self.expected) - len(self.missing)
        terminalreporter.write_line(f"models run: {run} of {len(self.expected)}")
        if self.required and self.missing:
            terminalreporter.write_line(
                f"ERROR: models not run: {', '.join(self.missing)}", red=True
            )


def pytest_configure(config: pytest.Config) -> None:
    """Register the gate, except in an xdist worker."""
    folder = find_models(config.rootpath)
    if folder is not None and not hasattr(config, "workerinput"):
        required = os.environ.get("CI") == "true"
        # Models of exporters run compiled, which needs tools.
        config.pluginmanager.register(
            ModelGate(folder, required, not config.getoption(OPTION, default=False))
        )


def pytest_report_header(config: pytest.Config) -> str:
    """Say where the models are."""
    folder = find_models(config.rootpath)
    if folder is None:
        return f"models: none found (set {VARIABLE}); their tests are deselected"
    return f"models: {len(model_names(folder))} in {folder}"


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Deselect model tests where there is no model; note the model's name where there is."""
    present = find_models(config.rootpath) is not None
    kept: list[pytest.Item] = []
    deselected: list[pytest.Item] = []
    for item in items:
        names = [str(mark.args[0]) for mark in item.iter_markers("model")]
        # User properties travel with the report from an xdist worker to the controller.
        item.user_properties.extend((_KEY, name) for name in names)
        (deselected if names and not present else kept).append(item)
    if deselected:
        config.hook.pytest_deselected(items=deselected)
        items[:] = kept
