"""Reads what a generated header declares, for cffi.

The header is preprocessed by the compiler that builds it and parsed by pycparser, so that cffi
sees exactly the declarations that C sees; a prototype written by hand could differ from them.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from pycparser import c_ast, c_generator, c_parser

from microtir.host.toolchain import Compiler, run_compiler

_LINE_MARKER = re.compile(r'#(?:line)? (\d+) "(?P<file>[^"]*)".*')
# cffi knows the types of <stdint.h>; pycparser needs to be told that they are types.
_STDINT = "".join(
    f"typedef {sign} {base} {prefix}int{bits}_t;\n"
    for bits, base in ((8, "char"), (16, "short"), (32, "int"), (64, "long long"))
    for sign, prefix in (("signed", ""), ("unsigned", "u"))
)


def declarations(compiler: Compiler, folder: Path, headers: Sequence[str]) -> str:
    """Return the structs and functions that generated headers themselves declare, as text for cffi.

    Args:
        compiler: the one that compiles the sources.
        folder: holds the headers.
        headers: their names.

    Raises:
        ToolError: a header does not get through the preprocessor.
    """
    arguments = ["-std=c99", "-E", "-I.", "-Iruntime_crt/include"]
    arguments.append("-D__attribute__(list)=")  # no C that pycparser knows; no type depends on them
    arguments += [part for name in headers for part in ("-include", name)]
    # The empty file of every Unix: the headers are all that there is to preprocess.
    text = run_compiler(compiler, [*arguments, "-x", "c", "/dev/null"], folder)
    tree = c_parser.CParser().parse(_STDINT + _own_lines(text, frozenset(headers)))
    generator = c_generator.CGenerator()
    return "\n".join(
        f"{generator.visit(node)};" for node in tree.ext if not isinstance(node, c_ast.Typedef)
    )


def _own_lines(text: str, names: frozenset[str]) -> str:
    """Return the lines of preprocessed text that come from the named files themselves."""
    lines, is_own = [], False
    for line in text.splitlines():
        marker = _LINE_MARKER.match(line)
        if marker is not None:
            is_own = Path(marker["file"]).name in names
        elif is_own:
            lines.append(line)
    return "\n".join(lines) + "\n"
