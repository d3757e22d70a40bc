"""`microtir check-certificate` runs the checker that lies beside a certificate's C, too."""

from __future__ import annotations

import runpy
from pathlib import Path
from typing import Annotated

import typer

from microtir.errors import ExitCode


def check_certificate(
    certificate: Annotated[
        Path, typer.Argument(metavar="CERTIFICATE", help="The file NAME.certificate.json.")
    ],
    folder: Annotated[
        Path | None,
        typer.Argument(metavar="[FOLDER]", help="The C files. Default: CERTIFICATE's folder."),
    ] = None,
    run: Annotated[
        str | None,
        typer.Option("--run", metavar="CC", help="Compiles the C and runs the test vectors."),
    ] = None,
) -> ExitCode:
    """Checks a certificate against the generated C.

    It runs certcheck.py, which does not need microtir. Exit status 1 means that a claim is not
    proven.
    """
    from microtir.certificate import checker_path

    arguments = [str(path) for path in (certificate, folder) if path is not None]
    arguments += ["--run", run] if run is not None else []
    return ExitCode(runpy.run_path(str(checker_path()))["main"](arguments))
