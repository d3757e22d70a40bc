"""What headers declare, header by header, in one spelling: for comparing interfaces.

A type is written without names of parameters, and `const` of a parameter itself, which callers do
not see, is left out. `()` and `(void)` are the same.
"""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath

from pycparser import c_ast, c_generator, c_parser

# Headers of the C library, as far as interfaces need them: the compiler's own are not plain C.
_LIBRARY = {
    "stdint.h": "".join(
        f"typedef {kind} {name}_t;\n"
        for name, kind in {
            "int8": "signed char", "uint8": "unsigned char", "int16": "short",
            "uint16": "unsigned short", "int32": "int", "uint32": "unsigned int",
            "int64": "long", "uint64": "unsigned long", "uintptr": "unsigned long",
        }.items()
    )
    + "#define SIZE_MAX 0xffffffffffffffffu\n#define UINT32_MAX 0xffffffffu\n",
    "stddef.h": "typedef unsigned long size_t;\n#define NULL ((void *)0)\n",
    "stdarg.h": "typedef void *va_list;\n",
    "limits.h": "#define INT_MIN (-2147483647 - 1)\n",
    "sys/types.h": "typedef long ssize_t;\n",
    **{f"{name}.h": "" for name in ("stdio", "stdlib", "string", "assert", "ctype", "inttypes")},
}  # fmt: skip
_GUARD = re.compile(r"_H_$")


@dataclass
class Declarations:
    """What one header declares: types of functions, variables and typedefs by name, and others.

    Members of a struct are written in their order, values of enumerators as numbers.
    """

    functions: dict[str, str] = field(default_factory=dict)
    variables: dict[str, str] = field(default_factory=dict)
    typedefs: dict[str, str] = field(default_factory=dict)
    structs: dict[str, list[str]] = field(default_factory=dict)
    enumerators: dict[str, int] = field(default_factory=dict)
    macros: list[str] = field(default_factory=list)


def declared(
    headers: Sequence[str], folders: Sequence[Path], scratch: Path
) -> Mapping[str, Declarations]:
    """Return what headers below include folders declare; each file is read once.

    Args:
        headers: as they are included.
        folders: where they are found; what they include may lie there, too.
        scratch: an empty folder.
    """
    for name, text in _LIBRARY.items():
        path = scratch / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"#pragma once\n{text}")
    (scratch / "all.h").write_text("".join(f'#include "{name}"\n' for name in headers))
    flags = ["-nostdinc", f"-I{scratch}", *(f"-I{folder}" for folder in folders)]
    flags += ["-D__attribute__(x)=", "-Dinline=", "-xc", str(scratch / "all.h")]
    text = _run("gcc", "-E", *flags)
    tree = c_parser.CParser().parse(re.sub(r"^#pragma.*$", "", text, flags=re.M))
    found: dict[str, Declarations] = {name: Declarations() for name in headers}
    values: dict[str, int] = {}
    for node in tree.ext:
        header = _header(str(node.coord.file), folders)
        to = Declarations() if header is None else found.setdefault(header, Declarations())
        _add(node, to, values)
    defined = {line.split()[1].partition("(")[0] for line in _macros(flags)}
    for header, declarations in found.items():
        path = next(f / header for f in folders if (f / header).exists())
        names = re.findall(r"^ *# *define +(\w+)", path.read_text(), re.M)
        kept = dict.fromkeys(n for n in names if n in defined and not _GUARD.search(n))
        declarations.macros = list(kept)
    return found


def _run(*command: str) -> str:
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == 0, done.stderr
    return done.stdout


def _macros(flags: Sequence[str]) -> list[str]:
    return [line for line in _run("gcc", "-E", "-dM", *flags).splitlines() if line]


def _header(file: str, folders: Sequence[Path]) -> str | None:
    for folder in folders:
        if Path(file).is_relative_to(folder):
            return PurePosixPath(Path(file).relative_to(folder)).as_posix()
    return None


def _add(node: c_ast.Node, to: Declarations, values: dict[str, int]) -> None:
    if isinstance(node, c_ast.FuncDef):
        node = node.decl
    _add_types(node, to, values)
    if isinstance(node, c_ast.Typedef):
        to.typedefs[node.name] = type_text(node.type)
    elif isinstance(node, c_ast.Decl) and node.name:
        kind = to.functions if isinstance(node.type, c_ast.FuncDecl) else to.variables
        kind[node.name] = type_text(node.type)


def _add_types(node: c_ast.Node, to: Declarations, values: dict[str, int]) -> None:
    """Add structs and enumerators that a declaration defines."""
    inner = node.type
    if isinstance(inner, c_ast.TypeDecl):
        inner = inner.type
    if isinstance(inner, (c_ast.Struct, c_ast.Union)) and inner.decls:
        name = inner.name or str(node.name)
        to.structs[name] = [f"{m.name}: {type_text(m.type)}" for m in inner.decls]
    if isinstance(inner, c_ast.Enum) and inner.values:
        last = -1
        for value in inner.values.enumerators:
            last = last + 1 if value.value is None else _number(value.value, values)
            to.enumerators[value.name] = values[value.name] = last


def _number(node: c_ast.Node, values: Mapping[str, int]) -> int:
    """Return the value of a constant expression of integers."""
    text = c_generator.CGenerator().visit(node)
    text = re.sub(r"sizeof\(int\)", "4", re.sub(r"(?<=\d)[uU]\b", "", text))
    result = eval(text, {"__builtins__": {}}, dict(values))  # of our own headers
    return int(result) - (2**32 if result == 2**31 else 0)


def type_text(node: c_ast.Node) -> str:
    """Return a type in the one spelling."""
    return _spelled(node, "").strip()


def _spelled(node: c_ast.Node, inner: str) -> str:
    if isinstance(node, c_ast.TypeDecl):
        base = node.type
        if isinstance(base, c_ast.IdentifierType):
            name = " ".join(base.names)
        elif base.name:
            name = f"{type(base).__name__.lower()} {base.name}"
        else:
            name = type(base).__name__.lower()
        return f"{' '.join([*node.quals, name])} {inner}".rstrip()
    if isinstance(node, c_ast.PtrDecl):
        quals = " ".join(node.quals)
        star = f"*{quals}{' ' if quals and inner else ''}{inner}"
        is_bound = isinstance(node.type, (c_ast.FuncDecl, c_ast.ArrayDecl))
        return _spelled(node.type, f"({star})" if is_bound else star)
    if isinstance(node, c_ast.ArrayDecl):
        size = c_generator.CGenerator().visit(node.dim) if node.dim else ""
        return _spelled(node.type, f"{inner}[{size}]")
    assert isinstance(node, c_ast.FuncDecl), type(node)
    return _spelled(node.type, f"{inner}({', '.join(_parameters(node)) or 'void'})")


def _parameters(node: c_ast.FuncDecl) -> Iterator[str]:
    for parameter in node.args.params if node.args else ():
        if isinstance(parameter, c_ast.EllipsisParam):
            yield "..."
            continue
        kind = parameter.type
        if isinstance(kind, c_ast.TypeDecl):
            kind = c_ast.TypeDecl(None, [], None, kind.type)
        yield type_text(kind)
