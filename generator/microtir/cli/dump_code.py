"""`--dump-code` writes what a model becomes on its way to C beside the output."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from microtir.cli.choice import check_choice
from microtir.errors import UsageError
from microtir.support.files import replace_file

if TYPE_CHECKING:
    from microtir.cli.building import Built
    from microtir.cli.graph_log import GraphLog

_FORMATS = ("graph", "tir", "c")
# Formats of tvmc that nothing here has.
_INSTEAD = {
    "relay": "there is no Relay: graph has the operators of the model",
    "asm": "compile the generated C with -S",
    "ll": "compile the generated C with clang -S -emit-llvm",
}
_WHERE = "--dump-code"

DumpCode = Annotated[
    str | None,
    typer.Option(
        _WHERE,
        metavar="|".join(_FORMATS),
        help="Writes OUTPUT.graph (operators after each pass), OUTPUT.tir (the program from which "
        "C is printed) or OUTPUT.c. Commas separate several formats.",
    ),
]


def dump_formats(text: str | None) -> tuple[str, ...]:
    """Return the formats that a comma separates.

    Raises:
        UsageError: one is unknown, or exists in tvmc only.
    """
    formats = tuple(part.strip() for part in text.split(",")) if text is not None else ()
    for name in formats:
        if name in _INSTEAD:
            raise UsageError(
                f"microtir does not have tvmc's format '{name}'",
                where=_WHERE,
                legal=", ".join(_FORMATS),
                fix=_INSTEAD[name],
            )
        check_choice("format", name, _FORMATS, _WHERE)
    return formats


def log_of(formats: tuple[str, ...]) -> GraphLog | None:
    """Return a log of graphs if one of the formats shows them."""
    if "graph" not in formats:
        return None
    from microtir.cli.graph_log import GraphLog

    return GraphLog()


def write_dumps(formats: tuple[str, ...], built: Built, log: GraphLog | None, output: Path) -> None:
    """Write each as a file beside the output, whose name begins with that of the output.

    Raises:
        OutputError: a file cannot be written.
    """
    for name in formats:
        replace_file(output.with_name(f"{output.name}.{name}"), _text(name, built, log).encode())


def _text(name: str, built: Built, log: GraphLog | None) -> str:
    if name == "graph":
        from microtir.graph.text import to_text as graph_text

        assert log is not None, "a graph that is dumped is noted"
        return f"{log.text()}--- planned\n{graph_text(built.program.graph)}"
    if name == "tir":
        from microtir.tir.text import to_text

        return to_text(built.artifact.module.functions, constants=False)
    return built.artifact.source(f"{built.artifact.metadata.module_name}.c")
