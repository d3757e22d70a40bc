"""C functions outside the program: their prototypes, and the files that define them."""

from __future__ import annotations

from microtir.codegen.environment import render
from microtir.codegen.functions import signature
from microtir.codegen.names import UniqueNames
from microtir.codegen.program import Program
from microtir.codegen.source_file import SourceFile
from microtir.codegen.statements import parameter_text
from microtir.errors import UsageError
from microtir.tir.ir import ExternFunction, ExternSource


def prototype(extern: ExternFunction) -> str:
    """The declaration of a function, without `extern`, which C leaves out for functions."""
    names = UniqueNames((extern.name,))
    parameters = [parameter_text(p, names.fresh(p.name), p in extern.writes) for p in extern.params]
    result = "int32_t" if extern.returns_status else "void"
    return "\n".join(signature(f"{result} {extern.name}", parameters)) + ";"


def extern_files(program: Program) -> tuple[SourceFile, ...]:
    """The files of all functions outside the program, each once.

    Raises:
        UsageError: two have one path and another text, or one has the path of a generated file.
    """
    stems = (program.name, f"{program.name}_weights")
    taken = {f"{stem}.{suffix}" for stem in stems for suffix in "ch"}
    files: dict[str, str] = {}
    for extern in program.externs:
        for source in extern.sources:
            text = _text(extern, source)
            if source.path in taken or files.setdefault(source.path, text) != text:
                raise UsageError(
                    f"two different files are called '{source.path}'",
                    where=f"the C function '{extern.name}'",
                    fix="give one of them another path",
                )
    return tuple(SourceFile(path, text) for path, text in files.items())


def _text(extern: ExternFunction, source: ExternSource) -> str:
    if not source.bare:
        return source.text
    return render("c/extern.c.j2", prototype=prototype(extern), text=source.text.strip("\n"))
