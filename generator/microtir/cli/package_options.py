"""Defines the options of `microtir package`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from microtir.cli.output import write, write_table, write_text
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
    write("")
    write_text(
        "executed: built, run, and outputs compared. built: compiled with the tools of the "
        "package's users. checked: only the format of the files was checked. See docs/packages.md"
    )
    raise typer.Exit(ExitCode.DONE)


MoreModels = Annotated[
    list[str] | None,
    typer.Argument(metavar="MODEL", help="More models. All models share one workspace."),
]
FormatName = Annotated[
    str | None,
    typer.Option(
        "--format",
        "-f",
        metavar="FORMAT",
        help="The format of the package. --list shows all formats.",
    ),
]
PackagePlace = Annotated[
    Path | None,
    typer.Option(
        "--output",
        "-o",
        metavar="DIR|FILE.zip",
        help="Folder for the package, or file name of the archive.",
        show_default=False,
    ),
]
PackageBoard = Annotated[
    str | None,
    typer.Option(
        "--board", metavar="BOARD", help="The board, which sets the target unless --target does."
    ),
]
Force = Annotated[
    bool, typer.Option("--force", help="Deletes an existing folder or archive first.")
]
PackageName = Annotated[
    str | None,
    typer.Option(
        "--package-name",
        metavar="NAME",
        help="Name of the package. By default it is made from the names of the models.",
    ),
]
PackageVersion = Annotated[
    str, typer.Option("--package-version", metavar="X.Y.Z", help="Version of the package.")
]
Summary = Annotated[
    str | None,
    typer.Option("--summary", metavar="LINE", help="One line that describes the package."),
]
Author = Annotated[
    str | None, typer.Option("--author", metavar="NAME", help="The maintainer of the package.")
]
Licence = Annotated[
    str | None,
    typer.Option(
        "--license", metavar="SPDX", help="The licence of the models, such as Apache-2.0."
    ),
]
Homepage = Annotated[
    str | None, typer.Option("--homepage", metavar="URL", help="Web page of the package.")
]
Vendor = Annotated[
    str | None,
    typer.Option("--vendor", metavar="NAME", help="The vendor of a CMSIS-Pack."),
]
Definition = Annotated[
    list[str] | None,
    typer.Option(
        "--define",
        metavar="NAME[=VALUE]",
        help="Defines a macro for the compiler. The option may be given several times.",
    ),
]
AsJson = Annotated[bool, typer.Option("--json", help="Prints the facts about the package as JSON.")]
Listing = Annotated[
    bool,
    typer.Option("--list", help="Lists the formats.", is_eager=True, callback=_list_formats),
]
