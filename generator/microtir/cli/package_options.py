"""Defines the options of `microtir package`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from microtir.cli.output import write, write_table
from microtir.errors import ExitCode


def _list_formats(wanted: bool) -> None:
    """Print the formats, and end the program."""
    if not wanted:
        return
    from microtir.packages import all_formats

    rows = [
        (str(known.format), known.title, known.label.value, known.proof) for known in all_formats()
    ]
    write_table(("format", "what it is", "label", "what tests do"), rows, spare=("what it is",))
    write(
        "\nexecuted: built and run, outputs compared; built: compiled with its users' tools;\n"
        "checked: the files obey the format. More: docs/packages.md"
    )
    raise typer.Exit(ExitCode.DONE)


MoreModels = Annotated[
    list[str] | None,
    typer.Argument(metavar="MODEL", help="More models; all share one workspace."),
]
FormatName = Annotated[
    str | None,
    typer.Option(
        "--format",
        "-f",
        metavar="FORMAT",
        help="Whose form the package has; --list says which there are.",
    ),
]
PackagePlace = Annotated[
    Path | None,
    typer.Option(
        "--output",
        "-o",
        metavar="DIR|FILE.zip",
        help="The package's folder, or the archive.",
        show_default=False,
    ),
]
PackageBoard = Annotated[
    str | None,
    typer.Option("--board", metavar="BOARD", help="The board: its target is the default."),
]
Force = Annotated[bool, typer.Option("--force", help="Replaces what is there; it is lost.")]
PackageName = Annotated[
    str | None,
    typer.Option("--package-name", metavar="NAME", help="Its name. Default: from the models'."),
]
PackageVersion = Annotated[
    str, typer.Option("--package-version", metavar="X.Y.Z", help="Its version.")
]
Summary = Annotated[
    str | None, typer.Option("--summary", metavar="LINE", help="What it is, in one line.")
]
Author = Annotated[str | None, typer.Option("--author", metavar="NAME", help="Who answers for it.")]
Licence = Annotated[
    str | None,
    typer.Option(
        "--license", metavar="SPDX", help="The licence of the models, such as Apache-2.0."
    ),
]
Homepage = Annotated[
    str | None, typer.Option("--homepage", metavar="URL", help="Where more is said of it.")
]
Vendor = Annotated[
    str | None,
    typer.Option("--vendor", metavar="NAME", help="Who publishes a CMSIS-Pack."),
]
Definition = Annotated[
    list[str] | None,
    typer.Option(
        "--define", metavar="NAME[=VALUE]", help="A macro for the compiler; several times."
    ),
]
AsJson = Annotated[
    bool, typer.Option("--json", help="Prints what the package says of itself as JSON.")
]
Listing = Annotated[
    bool,
    typer.Option("--list", help="Lists the formats.", is_eager=True, callback=_list_formats),
]
