"""Says which lines and branches of the generated C the test vectors execute."""

from __future__ import annotations

import json
from collections.abc import Sequence

from microtir.artifact import Artifact
from microtir.certificate import certificate_file, digests_of, runs_of
from microtir.evidence.part import Part
from microtir.evidence.tools import programs_of
from microtir.host.coverage import FunctionCoverage, measure_coverage
from microtir.support.code_templates import render

_FILE = "coverage.md"


def coverage_part(artifact: Artifact) -> tuple[Part, dict[str, str]]:
    """Return what the inputs of the test vectors execute, and the versions of the tools.

    Args:
        artifact: certified.

    Raises:
        ToolError: gcc or gcov failed.
        RunError: a run failed.
    """
    graph, model = artifact.module.graph, artifact.module.model
    assert graph is not None and model is not None
    runs = [inputs for _, inputs in runs_of(graph)]
    if not runs:
        types = ", ".join(sorted({tensor.dtype.value for tensor in graph.inputs}))
        return _part(
            "", f"not measured: the certificate has no rule for inputs of {types}", holds=False
        ), {}
    coverage = measure_coverage(artifact, runs, **programs_of("coverage"))
    claimed = json.loads(artifact.source(certificate_file(artifact)))["vectors"]
    digests = [digests_of(outputs, model) for outputs in coverage.outputs]
    are_equal = [vector["outputs"] for vector in claimed] == digests[: len(claimed)]
    compared = f"{len(claimed)} of {len(runs)} runs have digests in the certificate"
    if claimed:
        compared += ", and all outputs equal them" if are_equal else ", and outputs differ"
    functions = [one for one in coverage.functions if one.lines]
    lines, missed = _sum(functions, "lines"), _sum(functions, "missed")
    branches, taken = (sum(getattr(f, n) for f in functions) for n in ("branches", "taken"))
    executed, ways = _share(lines - missed, lines), _share(taken, branches)
    result = f"{executed} of lines, {ways} of branches; {compared}"
    text = _text(artifact, functions, result)
    return _part(text, result, holds=are_equal), dict(coverage.versions)


def _part(text: str, result: str, *, holds: bool) -> Part:
    return Part(
        "coverage",
        {_FILE: (text or f"# Coverage\n\n{result}\n").encode()},
        f"`{_FILE}`",
        "The lines and branches of the C that the test vectors of the certificate execute, and "
        "each line that they do not execute.",
        "gcc and gcov; a build without optimisation for this machine, where parts for other CPUs "
        "are left out",
        result,
        holds,
    )


def _sum(functions: Sequence[FunctionCoverage], field: str) -> int:
    return sum(len(getattr(function, field)) for function in functions)


def _share(part: int, whole: int) -> str:
    return f"{part:,} of {whole:,} ({100 * part / whole if whole else 100:.1f} %)"


def _text(artifact: Artifact, functions: Sequence[FunctionCoverage], result: str) -> str:
    """Return the page: a row for each function, then each line that is not executed."""
    rows = [
        (one.file, one.function, len(one.lines), len(one.missed), one.branches,
         one.branches - one.taken)
        for one in functions
    ]  # fmt: skip
    sources = {file: artifact.source(file).splitlines() for file in {f.file for f in functions}}
    missed = [
        (f"{one.file}:{line}: {sources[one.file][line - 1].strip()}", why)
        for one in functions
        for numbers, why in ((one.missed, "not executed"), (one.partial, "a branch not taken"))
        for line in numbers
    ]
    return render(
        "evidence/coverage.md.j2", module=artifact.metadata.module_name, result=result, rows=rows,
        missed=missed,
    )  # fmt: skip
