"""`microtir evidence` writes a folder that shows what is known of a compiled model."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from microtir.cli.board_options import LimitingBoard
from microtir.cli.building import build_model
from microtir.cli.choice import check_choice
from microtir.cli.model import Model
from microtir.cli.output import write, write_json, write_table
from microtir.cli.progress import Progress
from microtir.cli.quantise_options import with_quantiser
from microtir.cli.quantised import print_cost_below
from microtir.cli.quantiser import Quantiser
from microtir.config import CompilationConfig
from microtir.errors import ExitCode, UsageError

if TYPE_CHECKING:
    from microtir.evidence import Evidence
    from microtir.quantise.summary import Summary

_WHERE = "microtir evidence"


@with_quantiser
def evidence(
    model: Model,
    config: CompilationConfig,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", metavar="DIR", help="Folder for the evidence."),
    ] = None,
    without: Annotated[
        list[str] | None,
        typer.Option(
            "--without",
            metavar="PART",
            help="Leaves out a part, and notes this in README.md. check: the check of the "
            "certificate. coverage: the line counts of gcov. misra: the violations of MISRA C "
            "that cppcheck finds.",
        ),
    ] = None,
    board: LimitingBoard = None,
    force: Annotated[
        bool,
        typer.Option("--force", help="Deletes other files in the folder first."),
    ] = False,
    quantiser: Quantiser | None = None,
    as_json: Annotated[bool, typer.Option("--json", help="Prints the summary as JSON.")] = False,
) -> ExitCode:
    """Writes a folder of evidence for a safety case of a compiled model.

    The folder contains C, certificate, coverage, deviations from MISRA C, traceability,
    versions, and the bill of materials. README.md in the folder explains what each file shows,
    and under which assumptions. Exit status 1 means that a part does not support its claim.
    """
    from microtir.evidence import PARTS, evidence_of
    from microtir.support.files import check_new_folder, write_folder

    if output is None:
        raise UsageError("the output folder is missing", where=_WHERE, fix="add -o DIR")
    for name in without or ():
        check_choice("part", name, PARTS, "--without")
    check_new_folder(output, force=force)
    with Progress() as progress:
        built = build_model(model, config, progress, board, None, quantiser)
        contents = evidence_of(built.artifact, without or (), progress.show)
        write_folder(output, contents.files, force=force)
        price = built.quantised.summary() if built.quantised else None
    _print(contents, price, output, as_json=as_json)
    return ExitCode.DONE if contents.holds else ExitCode.ANSWER_IS_NO


def _print(contents: Evidence, price: Summary | None, folder: Path, *, as_json: bool) -> None:
    if as_json:
        parts = {p.name: {"result": p.result, "holds": p.holds} for p in contents.parts}
        paid = {} if price is None else {"quantisation": price.to_dict()}
        write_json({"output": str(folder), "files": sorted(contents.files), "parts": parts, **paid})
        return
    write(f"{len(contents.files)} files in {folder}; begin with README.md")
    rows = [(p.name, "yes" if p.holds else "no", p.result) for p in contents.parts]
    write_table(("part", "holds", "result"), rows)
    if price is not None:
        print_cost_below(price)
