"""Lists where generated C deviates from MISRA C:2012, and why, as the addon of cppcheck sees it.

The reasons stand in `misra.toml` for generated code, and in MISRA.md of the runtime for its files.
"""

from __future__ import annotations

import re
import tempfile
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path, PurePosixPath

from microtir.artifact import Artifact, layers_at
from microtir.errors import MicrotirError, ToolError
from microtir.evidence.part import Part
from microtir.evidence.tools import programs_of
from microtir.support import processes
from microtir.support.code_templates import render
from microtir.support.resources import runtime_crt, templates
from microtir.support.texts import LINE
from microtir.support.toml_table import TomlTable

RUNTIME = "runtime_crt/"
_FILE = "misra.md"
_TIMEOUT = 1800.0  # seconds
# Files that the application's own C library, or another interface, gives types and names.
_OF_OTHERS = (f"{RUNTIME}microtvm/",)
_FINDING = re.compile(r"^(.+):(\d+): misra-c2012-(\d+\.\d+)$", re.MULTILINE)
_OPTIONS = ("--addon=misra", "--std=c99", "--platform=unix32", "--enable=style", "-q")
_ROW = re.compile(r"^\| (\d+\.\d+) \| (required|advisory) \| (\S.*\S) \|$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Deviation:
    """A rule that some generated C violates: its number, its category, and the reason."""

    rule: str
    category: str
    reason: str


@dataclass(frozen=True, slots=True, order=True)
class Finding:
    """A place of generated C that violates a rule."""

    file: str
    line: int
    rule: str


@cache
def deviations(file: str = "") -> Mapping[str, Deviation]:
    """Return the deviations that have a reason, by rule: those of the runtime for its files."""
    if file.startswith(RUNTIME):
        page = (runtime_crt() / "MISRA.md").read_text("utf-8")
        return {rule: Deviation(rule, *rest) for rule, *rest in _ROW.findall(page)}
    table = TomlTable.load(templates() / "evidence" / "misra.toml", MicrotirError)
    return {
        row.required_text("rule", LINE): Deviation(
            row.required_text("rule", LINE),
            row.required_text("category", LINE),
            row.required_text("reason", LINE),
        )
        for row in table.tables("deviation")
    }


def misra_part(artifact: Artifact) -> tuple[Part, dict[str, str]]:
    """Return the deviations of a compiled model, and the version of cppcheck.

    Raises:
        ToolError: cppcheck failed.
    """
    (cppcheck,) = programs_of("misra").values()
    places = findings(artifact, cppcheck)
    rows, unreasoned = [], set[str]()
    by_rule = defaultdict[tuple[Deviation | None, str], list[Finding]](list)
    for finding in places:
        reason = deviations(finding.file).get(finding.rule)
        if reason is None:
            unreasoned.add(finding.rule)
        by_rule[reason, finding.rule].append(finding)
    order = sorted(by_rule, key=lambda key: (_order(key[1]), str(key[0])))
    for reason, rule in order:
        where = _where(artifact, by_rule[reason, rule])
        category, text = (reason.category, reason.reason) if reason else ("", "**no reason**")
        rows.append((rule, category, text, len(by_rule[reason, rule]), where))
    rules = len({rule for _, rule in by_rule})
    result = f"{rules} rules deviate in {len(places)} places"
    result += (
        f", without a reason: {', '.join(sorted(unreasoned, key=_order))}" if unreasoned else ""
    )
    page = render(
        "evidence/misra.md.j2", module=artifact.metadata.module_name, rows=rows, result=result,
        options=" ".join(_OPTIONS),
    )  # fmt: skip
    version, _ = processes.answer([cppcheck, "--version"], timeout=60.0)
    part = Part(
        "misra",
        {_FILE: page.encode()},
        f"`{_FILE}`",
        "Each rule of MISRA C:2012 from which the C deviates, with the reason and the places.",
        "the addon of cppcheck, which does not check every rule; the reasons",
        result,
        holds=not unreasoned,
    )
    return part, {"cppcheck": version.strip()}


def findings(artifact: Artifact, cppcheck: str) -> list[Finding]:
    """Return the places of an artifact that violate a rule, each once, sorted.

    The values of weights are left out: they are long, and literals in arrays alone.

    Raises:
        ToolError: cppcheck failed.
    """
    weights = f"{artifact.metadata.module_name}_weights.c"
    with tempfile.TemporaryDirectory(prefix="microtir-") as name:
        folder = Path(name)
        units = []
        for file in artifact.sources:
            path = PurePosixPath(file.path)
            if path.suffix not in (".c", ".h") or file.path.startswith(_OF_OTHERS):
                continue
            (folder / path).parent.mkdir(parents=True, exist_ok=True)
            (folder / path).write_text(file.text, "utf-8")
            units += [file.path] * (path.suffix == ".c" and file.path != weights)
        command = [cppcheck, *_OPTIONS, "--template={file}:{line}: {id}", "-I.",
                   f"-I{RUNTIME}include", *units]  # fmt: skip
        try:
            done = processes.run(command, cwd=folder, timeout=_TIMEOUT)
        except TimeoutError as error:
            fix = "leave out the part 'misra'"
            raise ToolError(str(error), where=cppcheck, fix=fix) from None
    if done.returncode != 0 or "misra.py" in done.stderr:
        raise ToolError(
            f"cppcheck failed: {(done.stdout + done.stderr).strip()[:500]}",
            where=cppcheck,
            legal="cppcheck 2.10 with its addon misra",
            fix="install the package 'cppcheck', or leave out the part 'misra'",
        )
    lines = _FINDING.findall(done.stderr)
    return sorted({Finding(file, int(line), rule) for file, line, rule in lines})


def _order(rule: str) -> list[int]:
    return [int(part) for part in rule.split(".")]


def _where(artifact: Artifact, places: list[Finding]) -> str:
    """Return lines by file, and by the C function of a layer where they are in one."""
    main = f"{artifact.metadata.module_name}.c"
    lines = defaultdict[str, list[int]](list)
    for one in places:
        layers = layers_at(artifact.metadata, one.line) if one.file == main else ()
        inside = f" `{layers[0].function}`" if len(layers) == 1 else ""
        lines[f"{one.file}{inside}"].append(one.line)
    return "; ".join(f"{place}: {', '.join(map(str, numbers))}" for place, numbers in lines.items())
