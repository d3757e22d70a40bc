"""Options that several verbs take about boards."""

from __future__ import annotations

from typing import Annotated

import typer

Board = Annotated[
    str,
    typer.Option(
        "--board",
        metavar="BOARD",
        help="The board; `microtir boards` lists them. Without --target its own is taken.",
        show_default=False,
    ),
]
MaybeBoard = Annotated[
    str | None,
    typer.Option(
        "--board",
        metavar="BOARD",
        help="Runs it on this emulated board instead of this machine; without --target the "
        "board's own is taken.",
    ),
]
Timeout = Annotated[
    float,
    typer.Option("--timeout", metavar="SECONDS", min=0.1, help="How long a program may run."),
]
