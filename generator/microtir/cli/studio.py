"""`microtir studio` serves a page on which people drop a model and look at what it becomes."""

from __future__ import annotations

import os
import sys
import webbrowser
from pathlib import Path
from typing import Annotated

import typer

from microtir.cli.model import EXAMPLE, EXAMPLES, model_path, reading_of
from microtir.cli.output import write
from microtir.errors import ExitCode, ToolError
from microtir.support.resources import install_extra


def studio(
    model: Annotated[
        str | None,
        typer.Argument(
            metavar="[MODEL]",
            help="A model that the page opens first. Without a model, the page asks for a file.",
            show_default=False,
        ),
    ] = None,
    port: Annotated[
        int,
        typer.Option(
            "--port",
            metavar="N",
            min=0,
            max=65535,
            help="Port on 127.0.0.1. 0 selects any free port.",
        ),
    ] = 0,
    timeout: Annotated[
        float,
        typer.Option("--timeout", metavar="SECONDS", min=1, help="Time limit for a plan."),
    ] = 600.0,
    no_browser: Annotated[
        bool, typer.Option("--no-browser", help="Prints the address, and does not open a browser.")
    ] = False,
) -> ExitCode:
    """Opens a web page that shows boards, memory, layers, C and trade-offs of a model side by side.

    Only this machine can open the page, at an address with a token. Ctrl-C ends the server.
    """
    _check_packages()
    from microtir.studio.limits import WorkerLimits
    from microtir.studio.models import ModelFile
    from microtir.studio.server import serve

    named = [*([model] if model is not None else []), *(EXAMPLE + name for name in EXAMPLES)]
    files = []
    for name in dict.fromkeys(named):
        said = reading_of(name)
        path = model_path(name)
        label = name if name.startswith(EXAMPLE) else path.name
        files.append(
            ModelFile(
                label, path, said.signature, said.dims, said.input_shapes, said.has_range
            )
        )  # fmt: skip

    def ready(address: str, start: Path) -> None:
        write(f"studio: {address}\nCtrl-C ends it.")
        if not no_browser and _has_desktop():
            webbrowser.open(start.as_uri())

    serve(files, 0 if model is not None else None, port, WorkerLimits(timeout), ready)
    return ExitCode.DONE


def _check_packages() -> None:
    """Refuse to go on without what serves the page.

    Raises:
        ToolError: says how to install it.
    """
    try:
        import starlette  # noqa: F401  # whether it is there
        import uvicorn  # noqa: F401
    except ImportError:
        raise ToolError(
            "the studio needs the packages starlette and uvicorn, which are not installed",
            where="microtir studio",
            fix=install_extra("studio"),
        ) from None


def _has_desktop() -> bool:
    """Return whether a browser would open a window, and not take the terminal."""
    is_unix = sys.platform not in ("darwin", "win32")
    return not is_unix or bool(os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY"))
