"""Reads a specification: which functions an interface has, and how each of them is called."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from microtir.conform.kind import RANGES, Kind, Range
from microtir.errors import ConfigError, UsageError, nearest
from microtir.support import resources
from microtir.support.texts import IDENTIFIER, TEXT, WORD, Rule
from microtir.support.toml_table import TomlTable

_LARGEST_ALIGNMENT = 16  # bytes, to which the programs align memory
_FILES = re.compile(r"[A-Za-z0-9_.+*-][A-Za-z0-9_.+*/-]*")
_INTEGERS = re.compile(r"-?\d{1,5}(\.\.-?\d{1,5}( step [1-9]\d{0,3})?)?")


def _range_problem(text: str) -> str:
    return "" if _INTEGERS.fullmatch(text) else "is no range"


def _order(axes: str) -> Rule:
    return Rule(
        f"the letters of {axes} in another order",
        lambda text: "" if sorted(text) == sorted(axes) else f"has other letters than {axes}",
    )


_PATTERN = Rule(
    "paths below the folder, of letters, digits and _ . + - / *",
    lambda text: "" if _FILES.fullmatch(text) and ".." not in text else "is no such path",
)
_RANGE = Rule("integers such as '3', '1..8' or '4..32 step 4'", _range_problem)
_IMAGE_AXES = "nhwc"
_WEIGHT_AXES: Mapping[Kind, str] = {
    Kind.CONVOLUTION: "ohwi",
    Kind.DEPTHWISE: "ihwo",
    Kind.DENSE: "oi",
}


class SpecError(ConfigError):
    """A field of a specification is wrong; `where` names file and field."""


@dataclass(frozen=True, slots=True)
class Function:
    """One function of an interface.

    Args:
        call: C statements that call it for the case `c` and return 0, or what went wrong.
        scratch: C expression for the bytes of scratch memory that it asks for.
        ranges: what of each extent it takes, where that is less than its kind.
        alignment: of pointers to int8, in bytes.
        image_order: permutation of (N, H, W, C) in memory.
        weight_order: permutation of the axes of weights in memory, if it has weights.
    """

    name: str
    kind: Kind
    call: str
    scratch: str
    ranges: Mapping[str, Range]
    alignment: int
    image_order: tuple[int, ...]
    weight_order: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Spec:
    """An interface of kernels.

    Args:
        headers: what a caller includes.
        includes: folders of headers below that of the kernels.
        sources: patterns of C files below it.
        defines: macros to compile with.
        prelude: C before the calls, such as helpers that fill in structs.
    """

    name: str
    headers: tuple[str, ...]
    includes: tuple[str, ...]
    sources: tuple[str, ...]
    defines: tuple[str, ...]
    prelude: str
    functions: tuple[Function, ...]


def built_in_specs() -> tuple[str, ...]:
    """Return the names of the specifications that come with microtir."""
    return tuple(sorted(path.stem for path in (resources.templates() / "conform").glob("*.toml")))


def load_spec(name: str) -> Spec:
    """Read a specification by its name, or by the path of a TOML file.

    Raises:
        UsageError: there is none of this name.
        SpecError: a field is wrong.
    """
    if name.endswith(".toml"):
        return _read_spec(Path(name))
    if name not in built_in_specs():
        hint = nearest(name, built_in_specs())
        raise UsageError(
            f"there is no specification '{name}'" + (f": {hint}" if hint else ""),
            where="--spec",
            legal=f"{', '.join(built_in_specs())}, or a file NAME.toml",
        )
    return _read_spec(resources.templates() / "conform" / f"{name}.toml")


def _read_spec(file: Path) -> Spec:
    table = TomlTable.load(file, SpecError)
    functions = tuple(map(_read_function, table.tables("function")))
    spec = Spec(
        name=table.required_text("name", WORD),
        headers=table.texts("headers", WORD),
        includes=table.texts("includes", _PATTERN),
        sources=table.texts("sources", _PATTERN) or ("**/*.c",),
        defines=table.texts("defines", WORD),
        prelude=table.text("prelude", TEXT) or "",
        functions=functions,
    )
    table.done()
    names = [function.name for function in functions]
    if not names or len(set(names)) != len(names):
        what = "a function is named twice" if names else "no function is described"
        raise table.problem("function", what, "tables [[function]], each of another name")
    return spec


def _read_function(table: TomlTable) -> Function:
    kind = table.required_choice("kind", Kind)
    alignment = table.integer("alignment") or 1
    if alignment > _LARGEST_ALIGNMENT or alignment & (alignment - 1):
        raise table.problem("alignment", f"got {alignment}", "1, 2, 4, 8 or 16 bytes")
    axes = _WEIGHT_AXES.get(kind, "")
    order = (table.text("weights", _order(axes)) if axes else None) or axes
    image = table.text("image", _order(_IMAGE_AXES)) or _IMAGE_AXES
    function = Function(
        name=table.required_text("name", IDENTIFIER),
        kind=kind,
        call=table.required_text("call", TEXT),
        scratch=table.text("scratch", TEXT) or "0",
        ranges=_read_ranges(table.table("ranges"), kind),
        alignment=alignment,
        image_order=tuple(map(_IMAGE_AXES.index, image)),
        weight_order=tuple(map(axes.index, order)),
    )
    table.done()
    return function


def _read_ranges(table: TomlTable | None, kind: Kind) -> Mapping[str, Range]:
    ranges = dict(RANGES[kind])
    if table is None:
        return ranges
    for name, legal in RANGES[kind].items():
        text = table.text(name, _RANGE)
        if text is None:
            continue
        low, _, rest = text.partition("..")
        high, _, step = rest.partition(" step ")
        drawn = Range(int(low), int(high or low), int(step or 1))
        if not legal.low <= drawn.low <= drawn.high or drawn.high > 16 * max(legal.high, 1):
            raise table.problem(name, f"got '{text}'", f"{legal.low} to {16 * legal.high}")
        ranges[name] = drawn
    table.done()
    return ranges
