"""Which tests a change affects, shown on small trees."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from microtir.support import resources
from tests.affected import (
    EVERYTHING,
    GATES,
    LOADERS,
    Repository,
    changed_since,
)
from tests.layering.source import BESIDE, PACKAGE, ROOT, Module, parse

SOURCES = {
    "__init__.py": (
        "from microtir.version import __version__\n"
        "if TYPE_CHECKING:\n    from microtir.driver import lower"
    ),
    "version.py": "",
    "resources.py": "def templates(): ...",
    "driver.py": "from microtir.codegen.printer import text",
    "codegen/__init__.py": "",
    "codegen/printer.py": "from microtir import resources\nroot = resources.templates()",
    "ir.py": "",
    "report.py": "from microtir.ir import Node",
    "search/__init__.py": "",
    "search/fit.py": "",
    "cli.py": "def main():\n    from microtir.report import html",
    "__main__.py": "from microtir.cli import main",
    "tests/__init__.py": "",
    "tests/conftest.py": 'pytest_plugins = ["tests.support.command", "tests.support.hooks"]',
    "tests/support/command.py": (
        "from microtir.cli import main\n@pytest.fixture\ndef microtir(): ..."
    ),
    "tests/support/hooks.py": "def pytest_addoption(parser): ...",
    "tests/support/cases.py": "from microtir.ir import Node",
    "tests/support/pages.py": 'text = (ROOT / "docs").read_text()',
    "tests/layering/test_graph.py": "",
    "tests/codegen/test_printer.py": "from microtir.codegen import printer",
    "tests/driver/test_lower.py": "from microtir import lower",
    "tests/driver/test_page.py": "from tests.support.pages import follow\nfollow('report.md')",
    "tests/ir/test_ir.py": "from tests.support.cases import node",
    "tests/cli/test_command.py": "def test_it(microtir): ...",
    "tests/cli/test_process.py": (
        'import subprocess\ndef test_it():\n    run([sys.executable, "-m", "microtir", "fit"])'
    ),
    "tests/search/test_fit.py": (
        'def test_it():\n    """Of microtir.report."""\n    set("microtir.search.fit.pool", 1)'
    ),
    "tests/search/test_script.py": 'run("scripts/figures.py")',
    "tests/search/test_recorded.py": 'read(ROOT / "benchmarks" / "recorded.json")',
    "scripts/figures.py": "import microtir.ir",
}


def modules(sources: dict[str, str]) -> list[Module]:
    """Return a tree of sources, by their paths as messages print them."""
    return [parse(path, text) for path, text in sources.items()]


SMALL = Repository(modules(SOURCES))
PRINTS = ["codegen/test_printer", "driver/test_lower"]
STARTS = ["cli/test_command", "cli/test_process"]


@pytest.mark.parametrize(
    ("changed", "names"),
    [
        # through others, under TYPE_CHECKING and inside functions; the public name has a home
        ("generator/microtir/codegen/printer.py", [*PRINTS, "cli/test_process"]),
        ("generator/microtir/codegen/__init__.py", [*PRINTS, "cli/test_process"]),
        # by a fixture, as a program, by a helper, and by a script that a test starts
        ("generator/microtir/report.py", STARTS),
        ("generator/microtir/ir.py", [*STARTS, "ir/test_ir", "search/test_script"]),
        ("tests/support/cases.py", ["ir/test_ir"]),
        ("scripts/figures.py", ["search/test_script"]),
        # by its name in a text, but not in a docstring
        ("generator/microtir/search/fit.py", ["search/test_fit"]),
        # a test itself
        ("tests/cli/test_command.py", ["cli/test_command"]),
        # what is not Python: by its loader, by its name, by its folder
        ("templates/c/deep/a.c.j2", [*PRINTS, "cli/test_process"]),
        ("benchmarks/recorded.json", ["search/test_recorded"]),
        ("docs/report.md", ["driver/test_page"]),
        ("docs/other.md", []),
        ("tests/golden/ir/a.txt", ["ir/test_ir"]),
        # a page that only the gates read, and a module that is gone
        ("CHANGES.md", []),
        ("generator/microtir/gone.py", []),
    ],
)
def test_a_change_affects_what_depends_on_it(changed: str, names: list[str]) -> None:
    """The tests that depend on a file, sorted, and no others but the gates."""
    assert SMALL.affected([changed]) == [GATES, *(f"tests/{n}.py" for n in sorted(names))]


@pytest.mark.parametrize(
    "changed",
    [
        "pyproject.toml", "tests/conftest.py", "tests/support/hooks.py",
        "tests/support/command.py", "generator/microtir/__init__.py",
        "generator/microtir/version.py", "unknown.bin",
    ],
)  # fmt: skip
def test_a_change_can_affect_everything(changed: str) -> None:
    """What every test loads, and what nothing is known of."""
    every = [path for path in SOURCES if path.rpartition("/")[2].startswith("test_")]
    found = SMALL.affected([changed, "docs/report.md"])
    others = {path for path in every if not path.startswith(GATES)}
    assert found == EVERYTHING or {*found} == {GATES, *others}


def test_what_a_test_loads_is_among_its_imports() -> None:
    """The graph holds every module that Python loads for a few test files of this repository."""
    names = ["tests.test_soak", "tests.tir.test_text"]
    code = (
        "import sys\nfor name in sys.argv[1:]: __import__(name)\n"
        "for name, module in sys.modules.items(): print(name, vars(module).get('__file__', ''))"
    )
    command = [sys.executable, "-c", code, *names]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    lines = (line.partition(" ") for line in done.stdout.splitlines() if line.endswith(".py"))
    tops = ("microtir", *BESIDE)
    ours = [Path(path) for name, _, path in lines if name.partition(".")[0] in tops]
    assert len(ours) > 20
    loaded = [
        parse(path.relative_to(base).as_posix(), path.read_text("utf-8"))
        for path in ours
        for base in (PACKAGE if path.is_relative_to(PACKAGE) else ROOT,)
    ]
    repository = Repository(loaded)
    for name in {module.name for module in loaded} - repository.of_root:
        assert not repository.reaching([name]).isdisjoint(names), name


def test_loaders_are_there() -> None:
    """Each function that finds files of a folder is one of the module `resources`."""
    assert all(callable(getattr(resources, loader)) for loader in LOADERS.values())
    assert all((ROOT / folder).is_dir() for folder in LOADERS)


def test_changes_are_those_since_a_commit(tmp_path: Path) -> None:
    """Files of later commits, of the working tree and new ones count; ignored ones do not."""

    def git(*arguments: str) -> None:
        identity = ["-c", "user.name=a", "-c", "user.email=a@example.com"]
        subprocess.run(
            ["git", *identity, *arguments], cwd=tmp_path, check=True, capture_output=True
        )

    git("init")
    (tmp_path / ".gitignore").write_text("*.pyc\n")
    for name in ("same", "edited", "committed", "deleted"):
        (tmp_path / name).write_text("before")
    git("add", ".")
    git("commit", "-m", "first")
    (tmp_path / "committed").write_text("after")
    git("commit", "-am", "second")
    (tmp_path / "edited").write_text("after")
    (tmp_path / "deleted").unlink()
    (tmp_path / "new").write_text("new")
    (tmp_path / "new.pyc").write_text("new")
    assert changed_since("HEAD~1", tmp_path) == ["committed", "deleted", "edited", "new"]
    with pytest.raises(SystemExit, match=r"affected: .*nowhere"):
        changed_since("nowhere", tmp_path)
