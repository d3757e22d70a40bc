"""Prints prototypes of C functions outside the program, and the files that define them."""

from __future__ import annotations

from microtir.codegen.printer.functions import signature
from microtir.codegen.printer.names import UniqueNames
from microtir.codegen.printer.statements import parameter_text
from microtir.codegen.program import CProgram
from microtir.codegen.source_file import SourceFile
from microtir.errors import UsageError
from microtir.support.code_templates import render
from microtir.tir.extern import CTemplate, ExternFunction, ExternSource, SourceKind


def prototype(extern: ExternFunction) -> str:
    """Return the declaration of a function, without a semicolon."""
    names = UniqueNames((extern.name, *(["device"] if extern.device else [])))
    parameters = [parameter_text(p, names.fresh(p.name), p in extern.writes) for p in extern.params]
    parameters += ["void *device"] if extern.device else []
    result = "int32_t" if extern.returns_status else "void"
    return "\n".join(signature(f"{result} {extern.name}", parameters))


def text_of(source: ExternSource) -> str:
    """Return the C of a file, or of a part of it."""
    return source.text if isinstance(source.text, str) else _printed(source.text)


def _printed(text: CTemplate) -> str:
    inner = {k: _printed(v).strip("\n") for k, v in text.values.items() if isinstance(v, CTemplate)}
    return render(text.template, **{**text.values, **inner})


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
            whole, text = source.kind is SourceKind.FILE, text_of(source)
            if whole and files.setdefault(source.path, text) == text:
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
            "text": text_of(source).strip("\n"),
            "is_body": source.kind is SourceKind.BODY,
        }
        for extern, source in parts
    ]
    return render(
        "c/extern.c.j2",
        includes=[i if i.startswith("<") else f'"{i}"' for i in included],
        functions=functions,
    )  # fmt: skip
