"""Prints prototypes of C functions outside the program, and the files that define them."""

from __future__ import annotations

from microtir.codegen.printer.functions import signature
from microtir.codegen.printer.names import UniqueNames
from microtir.codegen.printer.statements import parameter_text
from microtir.codegen.program import CProgram
from microtir.codegen.source_file import SourceFile
from microtir.errors import UsageError
from microtir.support.code_templates import render
from microtir.tir.ir import ExternFunction, ExternSource, SourceKind


def prototype(extern: ExternFunction) -> str:
    """Return the declaration of a function, without a semicolon."""
    names = UniqueNames((extern.name, *(["device"] if extern.device else [])))
    parameters = [parameter_text(p, names.fresh(p.name), p in extern.writes) for p in extern.params]
    parameters += ["void *device"] if extern.device else []
    result = "int32_t" if extern.returns_status else "void"
    return "\n".join(signature(f"{result} {extern.name}", parameters))


def extern_files(program: CProgram) -> tuple[SourceFile, ...]:
    """Return the files of all functions outside the program, each once.

    Raises:
        UsageError: two have one path and another text, or one has the path of a generated file.
    """
    stems = (program.name, f"{program.name}_weights")
    taken = {f"{stem}.{suffix}" for stem in stems for suffix in "ch"}
    files: dict[str, str] = {}
    parts: dict[str, dict[tuple[ExternFunction, ExternSource], None]] = {}
    for extern in program.externs:
        for source in extern.sources:
            whole = source.kind is SourceKind.FILE
            if whole and files.setdefault(source.path, source.text) == source.text:
                clash = source.path in taken or source.path in parts
            else:
                clash = whole or source.path in taken or source.path in files
                parts.setdefault(source.path, {})[extern, source] = None
            if clash:
                raise UsageError(
                    f"two different files are called '{source.path}'",
                    where=f"the C function '{extern.name}'",
                    fix="give one of them another path",
                )
    files |= {path: _joined(tuple(items)) for path, items in parts.items()}
    return tuple(SourceFile(path, text) for path, text in sorted(files.items()))


def _joined(parts: tuple[tuple[ExternFunction, ExternSource], ...]) -> str:
    """Return a file of definitions and bodies, each behind its prototype."""
    included = dict.fromkeys(i for _, source in parts for i in source.includes)
    functions = [
        {
            "prototype": prototype(extern),
            "text": source.text.strip("\n"),
            "is_body": source.kind is SourceKind.BODY,
        }
        for extern, source in parts
    ]
    return render(
        "c/extern.c.j2",
        includes=[i if i.startswith("<") else f'"{i}"' for i in included],
        functions=functions,
    )  # fmt: skip
