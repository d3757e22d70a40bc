"""A hook of mkdocs: a page of every option of the command line, by its help.

The search of the site takes each option as a section of its own, under its name.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from typing import Any

PAGE = "options.md"
_HEAD = """---
hide:
  - toc
search:
  boost: 2
---

# Every option

Options of the command line by name, as `--help-all` describes them, with the verbs that take them.
The page on the [command line](command-line.md) describes the verbs, and
[configuration](configuration.md) the options of a model.
"""


def on_files(files: Any, config: Any) -> Any:
    """Add the page to those of the site."""
    from mkdocs.structure.files import File

    files.append(File.generated(config, PAGE, content=page()))
    return files


def page() -> str:
    """Return the text of the page."""
    verbs = defaultdict[str, dict[str, list[str]]](lambda: defaultdict(list))
    for verb, name, said in _options():
        verbs[name][said].append(verb)
    return _HEAD + "".join(_section(name, verbs[name]) for name in sorted(verbs))


def _options() -> Iterator[tuple[str, str, str]]:
    """Yield verb, name and help of each option of each verb."""
    import typer

    from microtir.cli.app import APP

    def below(command: Any, context: Any, verb: str) -> Iterator[tuple[str, str, str]]:
        for name, child in getattr(command, "commands", {}).items():
            inner = child.make_context(name, [], parent=context, resilient_parsing=True)
            yield from below(child, inner, f"{verb} {name}".strip())
        for parameter in command.get_params(context):
            record = parameter.get_help_record(context)
            if record is not None and parameter.param_type_name == "option" and verb:
                yield verb, max(parameter.opts, key=len), "\n".join(record)

    root = typer.main.get_command(APP)
    yield from below(root, root.make_context("microtir", [], resilient_parsing=True), "")


def _section(name: str, verbs: dict[str, list[str]]) -> str:
    """Return what each verb says of an option."""
    texts = "".join(
        f"\n```text\n{usage}\n```\n\n{_escaped(said)}\n\nVerbs: `{'`, `'.join(sorted(of))}`\n"
        for (usage, said), of in ((text.split("\n", 1), of) for text, of in verbs.items())
    )
    return f"\n## {name}\n{texts}"


def _escaped(text: str) -> str:
    """Return a text whose signs mean nothing in Markdown, but for code."""
    return "".join(f"\\{sign}" if sign in "\\*_{}[]<>#|" else sign for sign in text)
