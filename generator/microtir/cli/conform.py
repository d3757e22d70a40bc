"""`microtir conform` tests kernels against the meaning of the operators that they compute."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from microtir.cli.output import write
from microtir.errors import ExitCode, UsageError

if TYPE_CHECKING:
    from microtir.conform import Function

_SHOWN = 3  # findings of a function
_MOST_CASES = 10_000


def conform(
    folder: Annotated[Path, typer.Argument(metavar="FOLDER", help="The kernels' sources.")],
    spec: Annotated[
        str,
        typer.Option(
            "--spec", metavar="SPEC", help="The interface: cmsis-nn, esp-nn or a file NAME.toml."
        ),
    ],
    output: Annotated[
        Path | None,
        typer.Option(
            "-o", "--output", metavar="FOLDER", help="Keeps the programs, with a Makefile."
        ),
    ] = None,
    run: Annotated[
        bool, typer.Option("--run/--no-run", help="Builds and runs the programs on this machine.")
    ] = True,
    cases: Annotated[
        int, typer.Option("--cases", metavar="N", help="Cases for each function.")
    ] = 60,
    seed: Annotated[int, typer.Option("--seed", metavar="N", help="Seed of the random cases.")] = 0,
    force: Annotated[
        bool, typer.Option("--force", help="Overwrites files in the output folder.")
    ] = False,
) -> ExitCode:
    """Tests kernels against the numpy references of the operators that they compute.

    It writes C programs, builds them with sanitizers, and runs them. Exit status 1 means that a
    function does not conform.
    """
    from microtir.conform import defined_functions, load_spec, program_files
    from microtir.support.files import write_folder

    if not 1 <= cases <= _MOST_CASES or seed < 0:
        raise UsageError(
            f"--cases is {cases} and --seed is {seed}",
            where="--cases, --seed",
            legal=f"1 to {_MOST_CASES} cases, and a seed of 0 or more",
        )
    if output is None and not run:
        raise UsageError(
            "without -o there is nothing to do", where="--no-run", fix="add -o with a folder"
        )
    described = load_spec(spec)
    functions = defined_functions(folder, described)
    files = program_files(folder, described, functions, cases, seed)
    with tempfile.TemporaryDirectory() as scratch:
        place = output or Path(scratch) / "conform"
        write_folder(place, {name: text.encode() for name, text in files.items()}, force=force)
        if output is not None:
            write(f"{len(functions)} programs are in {output}; `make -C {output} run` runs them")
        return _tested(place, functions, cases) if run else ExitCode.DONE


def _tested(place: Path, functions: tuple[Function, ...], cases: int) -> ExitCode:
    """Build and run the programs of a folder, and print what they found."""
    from microtir.conform import build_programs, run_programs

    build_programs(place)
    verdicts = run_programs(place, functions)
    width = max(len(function.name) for function in functions)
    for verdict in verdicts:
        word = "FAILS" if verdict.findings else "conforms"
        write(f"{verdict.function.name:{width}}  {cases} cases  {word}")
        for finding in verdict.findings[:_SHOWN]:
            write(f"    {finding}")
    wrong = sum(bool(verdict.findings) for verdict in verdicts)
    write(f"{len(verdicts) - wrong} of {len(verdicts)} functions conform")
    return ExitCode.ANSWER_IS_NO if wrong else ExitCode.DONE
