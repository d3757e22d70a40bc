"""A hook of mkdocs: a page of the messages of the package, which the search of the site reads.

Messages stand under the module that writes them, each with its fix, and lead to the page about it.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any

from scripts.prose import MESSAGE, PACKAGE, strings

PAGE = "messages.md"
TOPICS: Mapping[str, str] = MappingProxyType(
    {
        "artifact": "model-library-format.md",
        "boards": "boards.md",
        "cli": "command-line.md",
        "codegen": "executors.md",
        "config": "configuration.md",
        "custom": "custom-operators.md",
        "device": "session.md",
        "external": "external-kernels.md",
        "frontend": "frontend.md",
        "host": "host.md",
        "memory": "memory-pools.md",
        "operators": "operators.md",
        "packages": "packages.md",
        "plan": "search.md",
        "profiling": "profile.md",
        "projects": "boards.md",
        "quantise": "quantise.md",
        "rewrite": "state.md",
        "search": "search.md",
        "studio": "studio.md",
        "te": "te.md",
    }
)
"""The page about the messages of a folder of the package; those of other folders are left out."""

_HEAD = """---
hide:
  - toc
tags:
  - message
---

# Messages

Every message, by the part of microtir that writes it, with what it expects and the fix that it
names. A square (`▪`) stands for a name or a number. `microtir check MODEL` lists all messages of a
model at once.
"""


def on_files(files: Any, config: Any) -> Any:
    """Add the page to those of the site."""
    from mkdocs.structure.files import File

    files.append(File.generated(config, PAGE, content=page()))
    return files


def page() -> str:
    """Return the text of the page."""
    modules = sorted(PACKAGE.rglob("*.py"))
    return _HEAD + "".join(_section(module.relative_to(PACKAGE), module) for module in modules)


def _section(name: Path, module: Path) -> str:
    """Return the messages of a module; nothing if it has none, or is of no topic."""
    topic = TOPICS.get(name.parts[0])
    told = list(_messages(module.read_text("utf-8"))) if topic else []
    if not told:
        return ""
    lines = "".join(f"- {line}\n" for line in dict.fromkeys(told))
    return f"\n## {name.with_suffix('').as_posix()}\n\nSee [{name.parts[0]}]({topic}).\n\n{lines}"


def _messages(content: str) -> Iterator[str]:
    """Yield the messages that a module raises, in the order of its lines."""
    for node in ast.walk(ast.parse(content)):
        if isinstance(node, ast.Call):
            name = getattr(node.func, "attr", getattr(node.func, "id", ""))
            told = (*node.args, *(key.value for key in node.keywords if key.arg in {"fix", "what"}))
            texts = [text.words for value in told for text in strings("", value, "▪")]
            if MESSAGE.search(name) and texts:
                yield "; ".join(f"`{text.replace('`', chr(39))}`" for text in texts)
