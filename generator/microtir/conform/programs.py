"""Writes the test programs: one for each function, what runs them, and a Makefile."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from microtir.conform.case import NUMBERS, Case, draw_cases
from microtir.conform.spec import Function, Spec
from microtir.errors import UsageError
from microtir.graph.ir import Array
from microtir.support.code_templates import render
from microtir.support.texts import path_problem

_ARENA = 1 << 18
_COMMENT = re.compile(r"/\*.*?\*/|//[^\n]*", re.DOTALL)
_SAFE_FOLDER = re.compile(r"[A-Za-z0-9_.+/@%,~-]+")


def kernel_sources(folder: Path, spec: Spec) -> tuple[str, ...]:
    """Return the C files of kernels, as paths below their folder.

    Raises:
        UsageError: there are none, or `make` could misread a name.
    """
    if not _SAFE_FOLDER.fullmatch(folder.absolute().as_posix()):
        raise UsageError(
            "the name of the folder contains a character that make could misread",
            where=str(folder),
            legal="letters, digits and _ . + / @ % , ~ -",
        )
    files = {
        path.relative_to(folder).as_posix()
        for pattern in spec.sources
        for path in folder.glob(pattern)
        if path.is_file()
    }
    if not files:
        raise UsageError(
            "there is no source of these kernels" if folder.is_dir() else "there is no such folder",
            where=str(folder),
            legal=f"a folder with {' '.join(spec.sources)}",
            fix="name the folder with the functions of the specification",
        )
    for file in files:
        if problem := path_problem(file):
            raise UsageError(f"the name '{file}' {problem}", where=str(folder))
    return tuple(sorted(files))


def defined_functions(folder: Path, spec: Spec) -> tuple[Function, ...]:
    """Return the functions that sources or headers of a folder define, as macros, too.

    Raises:
        UsageError: it defines none of them, or there are no sources.
    """
    files = [folder / name for name in kernel_sources(folder, spec)]
    headers = [path for name in spec.includes for path in sorted((folder / name).glob("*.h"))]
    texts = [_COMMENT.sub(" ", path.read_text("utf-8", "replace")) for path in (*files, *headers)]
    text = "\n".join(texts)
    functions = tuple(f for f in spec.functions if _is_defined(f.name, text))
    if not functions:
        raise UsageError(
            f"the source files define none of the functions of '{spec.name}'",
            where=str(folder),
            legal=", ".join(function.name for function in spec.functions),
        )
    return functions


def _is_defined(name: str, text: str) -> bool:
    body = rf"\b{name}\s*\([^;{{}}]*\)\s*\{{"
    return re.search(rf"{body}|#[ \t]*define[ \t]+{name}\b", text) is not None


def program_files(
    folder: Path, spec: Spec, functions: Sequence[Function], count: int, seed: int
) -> dict[str, str]:
    """Return all files of a test by name.

    Args:
        folder: the kernels.
        spec: their interface.
        functions: which of its functions are tested.
        count: cases for each function.
        seed: of the random numbers.
    """
    files = {
        "conform.h": render("conform/conform.h.j2", numbers=NUMBERS),
        "conform.c": render("conform/conform.c.j2", arena=_ARENA),
        "Makefile": render(
            "conform/Makefile.j2",
            kernels=folder.absolute().as_posix(),
            includes=spec.includes,
            defines=spec.defines,
            programs=[program_name(function) for function in functions],
            sources=kernel_sources(folder, spec),
        ),
    }
    for function in functions:
        cases = draw_cases(function, count, seed)
        files[f"{program_name(function)}.c"] = _program(spec, function, cases, seed)
    return files


def program_name(function: Function) -> str:
    """Return the name of the program that tests a function."""
    return f"test_{function.name}"


def _program(spec: Spec, function: Function, cases: Sequence[Case], seed: int) -> str:
    arrays: list[dict[str, str]] = []
    rows = []
    for number, case in enumerate(cases):
        fields = [(name, str(value)) for name, value in case.numbers.items() if value]
        for name, array in (*case.arrays.items(), ("expected", case.expected)):
            arrays.append(_array(f"{name}_{number}", array))
            fields.append((name, f"{name}_{number}"))
            if array.dtype == np.int8:
                fields.append((f"{name}_bytes", f"sizeof {name}_{number}"))
        rows.append({"text": case.text, "fields": fields})
    return render(
        "conform/program.c.j2",
        function=function.name,
        headers=spec.headers,
        prelude=spec.prelude,
        alignment=function.alignment,
        scratch=function.scratch,
        call=function.call.strip("\n"),
        seed=seed,
        arrays=arrays,
        cases=rows,
        count=len(rows),
    )


def _array(name: str, array: Array) -> dict[str, str]:
    values = ", ".join(map(str, array.ravel().tolist()))
    return {"type": f"{array.dtype.name}_t", "name": name, "elements": values}
