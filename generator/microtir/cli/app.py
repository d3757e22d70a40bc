"""Defines the program `microtir`: all its verbs."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from microtir.cli import micro
from microtir.cli.boards import boards
from microtir.cli.check_certificate import check_certificate
from microtir.cli.choice import check_choice
from microtir.cli.compile import ARCHIVE, compile_model
from microtir.cli.completion import completion
from microtir.cli.config_options import with_config
from microtir.cli.conform import conform
from microtir.cli.diff import diff
from microtir.cli.doctor import doctor
from microtir.cli.evaluate import evaluate
from microtir.cli.evidence import evidence
from microtir.cli.fit import fit
from microtir.cli.help import Command
from microtir.cli.listings import explain, operators, options, targets
from microtir.cli.models import check, inspect
from microtir.cli.output import write
from microtir.cli.package import package
from microtir.cli.pareto import pareto
from microtir.cli.profile import profile
from microtir.cli.quantise import quantise
from microtir.cli.report import report
from microtir.cli.run import run
from microtir.cli.studio import studio
from microtir.cli.tune import tune
from microtir.cli.verify import verify
from microtir.errors import ExitCode
from microtir.version import __version__


class VerbGroup(TyperGroup):
    """The group of all verbs; a word that is none of them gets a diagnostic like all others."""

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """Find the verb; UsageError with the nearest one if there is none."""
        check_choice("command", args[0], self.list_commands(ctx), ctx.command_path)
        return super().resolve_command(ctx, args)


APP = typer.Typer(
    cls=VerbGroup,
    help="Turns a trained model into plain C for a microcontroller.",
    no_args_is_help=False,
    add_completion=False,
    rich_markup_mode=None,  # rich takes longer to load than all the rest of --help
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)


@APP.callback(invoke_without_command=True)
def program(
    context: typer.Context,
    version: Annotated[bool, typer.Option("--version", help="Prints the version.")] = False,
    debug: Annotated[
        bool,
        typer.Option(
            "--debug", help="Prints a traceback with an error. The option may also follow a verb."
        ),
    ] = False,
) -> None:
    """Turns a trained model into plain C for a microcontroller."""
    assert not debug  # process.py takes it off the command line; it is declared for the help
    if version:
        write(f"microtir {__version__}")
        raise typer.Exit(ExitCode.DONE)
    if context.invoked_subcommand is None:
        write(context.get_help())
        raise typer.Exit(ExitCode.DONE)


APP.command("compile", cls=Command)(with_config(compile_model))
APP.command("verify", cls=Command)(with_config(verify))
APP.command("run", cls=Command)(with_config(run))
APP.command("evaluate", cls=Command)(with_config(evaluate))
APP.command("profile", cls=Command)(with_config(profile))
APP.command("pareto", cls=Command)(with_config(pareto))
APP.command("tune", cls=Command)(with_config(tune))
APP.command("check", cls=Command)(with_config(check))
APP.command("check-certificate", cls=Command)(check_certificate)
APP.command("evidence", cls=Command)(with_config(evidence))
APP.command("conform", cls=Command)(conform)
APP.command("inspect", cls=Command)(inspect)
APP.command("quantise", cls=Command)(with_config(quantise))
APP.command("fit", cls=Command)(with_config(fit))
APP.command("report", cls=Command)(with_config(report))
APP.command("studio", cls=Command)(studio)
APP.command("diff", cls=Command)(with_config(diff))
APP.command("package", cls=Command)(with_config(package))
APP.command("boards", cls=Command)(boards)
APP.command("doctor", cls=Command)(doctor)
APP.command("options", cls=Command)(options)
APP.command("operators", cls=Command)(operators)
APP.command("targets", cls=Command)(targets)
APP.command("explain", cls=Command)(explain)
APP.command("completion", cls=Command)(completion)

MICRO = typer.Typer(
    cls=VerbGroup,
    help="Creates, builds, flashes and runs projects for boards.",
    no_args_is_help=False,
    rich_markup_mode=None,
)
MICRO.command("create-project", cls=Command)(with_config(micro.create))
MICRO.command("create", cls=Command, hidden=True)(with_config(micro.create))
MICRO.command("build", cls=Command)(micro.build_project)
MICRO.command("flash", cls=Command)(micro.flash)
MICRO.command("run", cls=Command)(micro.run)
APP.add_typer(MICRO, name="micro")

TVMC = typer.Typer(
    cls=VerbGroup,
    help="Accepts command lines of tvmc, with its defaults (module.tar, microTVM's C interface).",
    no_args_is_help=False,
    rich_markup_mode=None,
)
TVMC.command("compile", cls=Command)(
    with_config(
        compile_model,
        tvmc={"output": Path("module.tar"), "output_format": ARCHIVE, "force": True},
    )
)
TVMC.command("run", cls=Command)(with_config(run, tvmc={}))
TVMC_MICRO = typer.Typer(
    cls=VerbGroup,
    help="Creates, builds and flashes projects for boards.",
    no_args_is_help=False,
    rich_markup_mode=None,
)
TVMC_MICRO.command("create-project", cls=Command)(with_config(micro.create, tvmc={}))
TVMC_MICRO.command("create", cls=Command)(with_config(micro.create, tvmc={}))
TVMC_MICRO.command("build", cls=Command)(micro.build_project)
TVMC_MICRO.command("flash", cls=Command)(micro.flash)
TVMC.add_typer(TVMC_MICRO, name="micro")
APP.add_typer(TVMC, name="tvmc")
