"""Runs a command in this process: diagnostics instead of tracebacks, and the exit status."""

from __future__ import annotations

import sys
import traceback
from collections.abc import Sequence
from contextlib import suppress
from functools import cache
from typing import Any

import typer

from microtir.cli.app import APP
from microtir.cli.output import write_error
from microtir.cli.status import INTERRUPTED
from microtir.cli.tvmc_refused import instead_of
from microtir.errors import MicrotirError, UsageError, nearest
from microtir.support.ending import EndRequested, ends_cleanly

# typer raises click's exceptions, or from some version on its own copies of them.  BadParameter
# is exported by all; UsageError and ClickException are its bases.
_CLICK_ERROR: type[Exception] = typer.BadParameter.__mro__[2]


def run(arguments: Sequence[str] | None = None) -> int:
    """See `microtir.cli.main`."""
    words = list(sys.argv[1:] if arguments is None else arguments)
    debug = _take_debug(words)
    _write_any_text()
    try:
        with ends_cleanly():
            status = int(_command().main(words, "microtir", standalone_mode=False))
        if status == INTERRUPTED:  # typer takes Ctrl-C and says nothing
            write_error("interrupted")
        return status
    except MicrotirError as error:
        return _report(error, debug)
    except _CLICK_ERROR as error:
        return _report(_usage_error(error), debug)
    except (KeyboardInterrupt, typer.Abort):
        write_error("interrupted")
        return INTERRUPTED
    except EndRequested as request:
        with suppress(OSError):  # the terminal may have gone
            write_error(f"ended by {request.name}")
        return request.status
    except Exception as error:  # noqa: BLE001  # the last resort: any defect becomes one line
        return _report_defect(error, debug)


@cache
def _command() -> Any:
    """Return the parser of the command line, which takes as long to make as a short verb to run."""
    return typer.main.get_command(APP)


def _take_debug(arguments: list[str]) -> bool:
    """Remove `--debug`, which is legal anywhere: it is added to a command line that failed."""
    options = arguments[: arguments.index("--")] if "--" in arguments else arguments
    is_debug = "--debug" in options
    if is_debug:
        arguments.remove("--debug")
    return is_debug


def _write_any_text() -> None:
    """Let output replace characters that a terminal lacks: names in a model may hold any."""
    for stream in (sys.stdout, sys.stderr):
        reconfigure = getattr(stream, "reconfigure", None)
        if reconfigure is not None:  # a test may have put another kind of stream here
            reconfigure(errors="backslashreplace")


def _report(error: MicrotirError, debug: bool) -> int:
    if debug:
        traceback.print_exc()
    more = f"\n  more:  {error.more}" if error.more else ""
    write_error(f"error: {error.for_command_line()}{more}")
    return int(error.exit_code)


def _report_defect(error: Exception, debug: bool) -> int:
    if debug:
        traceback.print_exc()
    text = f"{type(error).__name__}: {error}".removesuffix(": ")
    write_error(
        f"internal error, a defect of microtir: {text}\n"
        "  fix:      please report it, with the model if you can; "
        + ("the traceback is above" if debug else "run with --debug for the traceback")
    )
    return int(MicrotirError.exit_code)


def _usage_error(error: Exception) -> UsageError:
    """Return a complaint of the argument parser as a diagnostic of the family."""
    context = getattr(error, "ctx", None)
    where = getattr(context, "command_path", "microtir")
    what = getattr(error, "format_message", lambda: str(error))().rstrip(".")
    unknown = getattr(error, "option_name", None)
    parameter = getattr(error, "param", None)
    fix = f"`{where} --help` lists what there is"
    instead = None if unknown is None else instead_of(unknown)
    if instead is not None:
        what, fix = f"microtir does not have tvmc's option '{unknown}'", instead
    elif unknown is not None and context is not None and what.startswith("No such option"):
        known = [name for known in context.command.params for name in known.opts]
        hint = nearest(unknown, [name for name in [*known, "--help"] if name.startswith("--")])
        what = f"there is no option '{unknown}': {hint}".removesuffix(": ")
    elif parameter is not None and what.startswith("Missing argument"):
        what = f"the argument {parameter.name.upper()} is missing"
    elif parameter is not None and what.startswith("Missing option"):
        what = f"the option {parameter.opts[0]} is missing"
    return UsageError(what, where=where, fix=fix)
