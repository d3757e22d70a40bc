"""Counts which lines and branches of the generated C runs execute, with gcc and gcov."""

from __future__ import annotations

import tempfile
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any

from microtir.artifact import Artifact
from microtir.errors import ToolError
from microtir.graph.ir import Array
from microtir.host.backend import Harness
from microtir.host.build import InstrumentedProgram
from microtir.host.model import Model
from microtir.host.toolchain import find_compiler
from microtir.support import processes
from microtir.support.reading import WrongDataError, parse_json

_TIMEOUT = 600.0  # seconds


@dataclass(frozen=True, slots=True)
class FunctionCoverage:
    """The lines and branches of a C function that runs executed.

    Args:
        file: the C file, as the artifact names it.
        function: its name.
        lines: the numbers of its lines with code.
        missed: those of them that no run executed.
        branches: how many ways conditions can go.
        taken: how many of these some run went.
        partial: lines of which a way was not taken, and that were executed.
    """

    file: str
    function: str
    lines: tuple[int, ...]
    missed: tuple[int, ...]
    branches: int
    taken: int
    partial: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Coverage:
    """Coverage by function, what the runs gave, and the versions of the tools."""

    functions: tuple[FunctionCoverage, ...]
    outputs: tuple[Mapping[str, Array], ...]
    versions: Mapping[str, str]


def measure_coverage(
    artifact: Artifact, runs: Iterable[Mapping[str, Array]], gcc: str, gcov: str
) -> Coverage:
    """Compile an artifact without optimisation, run it from its first state on, and count.

    Args:
        artifact: a model.
        runs: inputs of each run by name; a state goes from one to the next.
        gcc: name or path of GCC.
        gcov: that of its gcov.

    Raises:
        ToolError: gcc or gcov failed.
        RunError: the program failed, or inputs do not fit it.
    """
    compiler = find_compiler(gcc)
    with tempfile.TemporaryDirectory(prefix="microtir-") as name:
        folder = Path(name).resolve()
        program = InstrumentedProgram(artifact, compiler, folder)
        units = program.compile()
        model = Model(artifact, Harness(artifact, program.executable))
        outputs = tuple(model.run_sequence(runs))
        functions = [one for unit in units for one in _counted(gcov, unit, folder)]
    version, _ = processes.answer([gcov, "--version"], timeout=60.0)
    tools = {"gcc": compiler.version, "gcov": version.partition("\n")[0]}
    return Coverage(tuple(functions), outputs, tools)


def _counted(gcov: str, unit: str, folder: Path) -> Iterable[FunctionCoverage]:
    counts = PurePosixPath(unit).with_suffix(".gcda")
    command = [gcov, "--json-format", "--stdout", "--branch-probabilities", str(counts)]
    if not (folder / counts).is_file():  # a file without code
        return ()
    done = processes.run(command, cwd=folder, timeout=_TIMEOUT)
    try:
        files = parse_json(done.stdout)["files"]
    except (WrongDataError, KeyError):
        raise ToolError(
            f"gcov gave no counts for {unit}: {done.stderr.strip()[:300]}",
            where=gcov,
            legal="gcov of GCC 10 or newer, with the same version as gcc",
            fix="install gcc and gcov from one package",
        ) from None
    return [one for file in files for one in _functions(file)]


def _functions(file: Mapping[str, Any]) -> Sequence[FunctionCoverage]:
    lines = defaultdict[str, list[Any]](list)
    for line in file["lines"]:
        lines[line.get("function_name", "")].append(line)
    return [_function(file["file"], name, counted) for name, counted in lines.items()]


def _function(file: str, name: str, lines: Sequence[Any]) -> FunctionCoverage:
    branches = [branch for line in lines for branch in line["branches"]]
    executed = [line for line in lines if line["count"]]
    return FunctionCoverage(
        file,
        name,
        tuple(line["line_number"] for line in lines),
        tuple(line["line_number"] for line in lines if not line["count"]),
        len(branches),
        sum(branch["count"] > 0 for branch in branches),
        tuple(
            line["line_number"]
            for line in executed
            if any(branch["count"] == 0 for branch in line["branches"])
        ),
    )
