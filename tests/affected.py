"""The tests that a change can affect, by the imports that the gates of the layers read.

`python -m tests.affected COMMIT` prints the test files whose modules import, directly or through
others, a module that differs from the commit; changes that are not committed and new files count.
A test also depends on

- plugins and conftest files whose fixtures it asks for, and what these import;
- modules that it or a helper of it names in a text: what it starts as a program, or patches;
- files that are not Python, where it or a helper of it names the file or a folder around it, or
  imports what loads files of that folder (`LOADERS`).

The gates in tests/layering read everything and are always there.  A file of which nothing of that
is known affects all tests.  What was deleted affects those who used it, who have changed, too.
"""

from __future__ import annotations

import argparse
import ast
import re
import subprocess
import sys
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path, PurePosixPath

from tests.layering.facts import Facts
from tests.layering.graph import module_graph
from tests.layering.imports import PACKAGE_NAME
from tests.layering.source import BESIDE, PACKAGE, ROOT, Module, module_name, repository_modules

EVERYTHING = ["tests"]
GATES = "tests/layering"
LOADERS = {
    "templates": "templates",
    "runtime_crt": "runtime_crt",
    "boards": "boards",
    "examples": "example",
}
"""Folders, and the functions of the module `resources` that find their files."""

_FOR_ALL = frozenset({"pyproject.toml", "tests/__init__.py", "tests/conftest.py"})
_PACKAGE = PACKAGE.relative_to(ROOT).as_posix() + "/"
_GOLDEN = "tests/golden/"
_PAGES = "tests.support.pages"
_TEST = re.compile(r"tests/(?:.*/)?test_\w+\.py")
_MODULE = re.compile(rf"\b(?:{'|'.join((PACKAGE_NAME, *BESIDE))})(?:\.\w+)+")
_READS_PACKAGE = re.compile(r"""generator["']? ?/ ?["']?microtir""")
_QUOTED = re.compile(rf"""["']{PACKAGE_NAME}\.""")
_PROGRAM = re.compile(
    rf"(?:import|-m) {PACKAGE_NAME}\b|from {PACKAGE_NAME} import|^{PACKAGE_NAME}$"
)


@dataclass(frozen=True)
class Repository:
    """The modules of the package and of what lies beside it, and who depends on whom.

    Args:
        modules: as `repository_modules` gives them.
    """

    modules: Sequence[Module]

    @cached_property
    def facts(self) -> Mapping[str, Facts]:
        """Return what is known of each module, by its name."""
        return {module.name: Facts(module) for module in self.modules}

    @cached_property
    def plugins(self) -> Mapping[str, str]:
        """Return conftest modules and plugins, each with the folder of tests that has it."""
        found: dict[str, str] = {}
        for name in self.facts:
            if name.rpartition(".")[2] == "conftest":
                folder = name.rpartition(".")[0]
                listed = [t for t in self.facts[name].texts if t in self.facts]
                found |= dict.fromkeys((name, *listed), folder)
        return found

    @cached_property
    def scripts(self) -> Mapping[str, list[str]]:
        """Return the modules beside the package by the name of their file."""
        found = defaultdict[str, list[str]](list)
        for module in self.modules:
            if module.name.partition(".")[0] in BESIDE:
                found[PurePosixPath(module.path).name].append(module.name)
        return found

    @cached_property
    def dependents(self) -> Mapping[str, frozenset[str]]:
        """Return the modules that depend on a module without another between them."""
        found = defaultdict[str, set[str]](set)
        for name, targets in module_graph(self.modules).items():
            for target in (name, *targets, *self._named(name), *self._asked(name)):
                found[target].add(name)
                # Importing runs the `__init__` of the folders; that of the package is for all.
                while target := target.rpartition(".")[0]:
                    found[target].add(name)
        return {name: frozenset(names) for name, names in found.items()}

    def _named(self, name: str) -> Iterator[str]:
        """Yield the modules that a module names in texts."""
        if not name or name in self.plugins:
            return
        facts = self.facts[name]
        is_beside = name.partition(".")[0] in BESIDE
        if is_beside:
            scripts = {part for part in facts.parts if part.endswith(".py")}
            yield from (n for script in scripts for n in self.scripts.get(script, ()) if n != name)
        elif not _QUOTED.search(facts.module.text):
            return
        starts = is_beside and "subprocess" in facts.module.text
        for text in facts.texts:
            for match in _MODULE.findall(text):
                target = match.removeprefix(f"{PACKAGE_NAME}.")
                while target not in self.facts and target:
                    target = target.rpartition(".")[0]
                yield target
            if starts and _PROGRAM.search(text):
                yield from ("", "__main__")

    def _asked(self, name: str) -> Iterator[str]:
        """Yield the plugins and conftest modules that serve a module of tests."""
        for plugin, folder in self.plugins.items():
            if plugin != name and name.startswith(f"{folder}."):
                facts = self.facts[plugin]
                if facts.serves_all or facts.fixtures & self.facts[name].arguments:
                    yield plugin

    def affected(self, changed: Iterable[str]) -> list[str]:
        """Return the test files that changed files can affect, sorted; folders for all of them.

        Args:
            changed: paths below the root of the repository.
        """
        starts = set[str]()
        for path in changed:
            found = self._touched(path)
            if found is None:
                return EVERYTHING
            starts |= found
        paths = (self.facts[name].module.path for name in self.reaching(starts) & self.facts.keys())
        files = sorted(path for path in paths if _TEST.fullmatch(path))
        return [GATES, *(path for path in files if not path.startswith(f"{GATES}/"))]

    def reaching(self, starts: Iterable[str]) -> set[str]:
        """Return the modules that depend on some, through others or not, and these themselves."""
        names, waiting = set[str](), list(starts)
        while waiting:
            if (name := waiting.pop()) not in names:
                names.add(name)
                waiting += self.dependents.get(name, ())
        return names

    @cached_property
    def of_root(self) -> frozenset[str]:
        """Return the modules that importing anything of the package loads."""
        root = self.facts[""].module
        loaded = replace(root, tree=ast.Module([n for n in root.tree.body if _is_import(n)], []))
        others = [module for module in self.modules if module.name]
        return frozenset(("", *module_graph([loaded, *others])[""]))

    def _touched(self, path: str) -> set[str] | None:
        """Return the modules that a file belongs to, None if that could be any."""
        if path in _FOR_ALL:
            return None
        if path.endswith(".py"):
            name = module_name(path.removeprefix(_PACKAGE))
            if name in self.of_root:
                return None
            scope = self.plugins.get(name)
            served = {n for n in self.facts if n.startswith(f"{scope}.")} if scope else set()
            readers = self.package_readers if path.startswith(_PACKAGE) else set()
            return {name} | readers | served
        return self._of_data(path)

    def _of_data(self, path: str) -> set[str] | None:
        """Return the modules that use a file that is not Python."""
        folders = path.split("/")
        first, last = folders[0], folders[-1]
        found = self._readers(
            (first, last) if first in LOADERS else [f for f in folders if f != "tests"]
        )
        if path.startswith(_GOLDEN):
            owner = ".".join(("tests", *folders[2:-1]))
            return {n for n in self.facts if n.rpartition(".")[0] == owner} | self._readers([last])
        if folders[:-1] == ["docs"] and last.endswith(".md"):
            found = self._readers([last]) | self._readers_of_all_pages
        if loader := LOADERS.get(first):
            found |= {name for name, facts in self.facts.items() if loader in facts.loads}
        return found or (set() if path.endswith(".md") else None)

    @cached_property
    def _readers_of_all_pages(self) -> set[str]:
        """Return the modules that name the folder of the pages, and no page of their own.

        Who takes a page from the helpers of pages names it.
        """
        named = self._readers(["docs"]) - {_PAGES}
        texts = {name: self.facts[name] for name in named}
        return {
            name
            for name, facts in texts.items()
            if "glob(" in facts.module.text or not any(p.endswith(".md") for p in facts.parts)
        }

    @cached_property
    def package_readers(self) -> set[str]:
        """Return the modules that name the folder of the package, to read its sources."""
        found = (n for n, facts in self.facts.items() if _READS_PACKAGE.search(facts.module.text))
        return {name for name in found if name.partition(".")[0] in BESIDE}

    def _readers(self, parts: Sequence[str]) -> set[str]:
        """Return the modules beside the package that name a file or a folder around it."""
        return {
            name
            for name, facts in self.facts.items()
            if name.partition(".")[0] in BESIDE and not facts.parts.isdisjoint(parts)
        }


def _is_import(node: ast.stmt) -> bool:
    return isinstance(node, ast.Import | ast.ImportFrom)


def changed_since(base: str, root: Path = ROOT) -> list[str]:
    """Return the paths of files that differ from a commit, new ones among them."""
    commands = (
        ["git", "diff", "--name-only", "--no-renames", "-z", base, "--"],
        ["git", "ls-files", "--others", "--exclude-standard", "-z"],
    )
    found = set[str]()
    for command in commands:
        done = subprocess.run(command, cwd=root, capture_output=True, text=True, check=False)
        if done.returncode:
            sys.exit(f"affected: {done.stderr.strip()}")
        found |= set(filter(None, done.stdout.split("\0")))
    return sorted(found)


def main(arguments: Sequence[str]) -> int:
    """Print the affected test files, a line each, for `pytest @FILE`."""
    parser = argparse.ArgumentParser(prog="python -m tests.affected", description=__doc__)
    parser.add_argument("base", help="commit, tag or branch that the working tree is compared with")
    base = parser.parse_args(arguments).base
    changed = changed_since(base)
    tests = Repository(repository_modules()).affected(changed)
    total = "all" if tests == EVERYTHING else f"the gates and {len(tests) - 1}"
    sys.stderr.write(f"affected: {len(changed)} files changed; {total} test files\n")
    sys.stdout.write("".join(f"{path}\n" for path in tests))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
