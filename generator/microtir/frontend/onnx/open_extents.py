"""Find extents with which a model can be read whose file leaves some open."""

from __future__ import annotations

import copy
import re
import shlex
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from microtir.errors import ExportProblem, Fix, MicrotirError, UnsupportedModelError
from microtir.frontend.onnx.counted_extent import ReadWith
from microtir.frontend.onnx.file import FileValue
from microtir.frontend.onnx.shapes import InputShapes

_TRIED = (16, 32, 64, 128, 224, 8, 2, 1)
"""Extents of sequences and images; the first with which all is right is an example."""

_SAME_ANSWERS = 2  # after so many other extents that change nothing, something else is wrong


def with_example(
    problems: Sequence[MicrotirError],
    inputs: Sequence[FileValue],
    shapes: InputShapes,
    read: ReadWith,
    *,
    model: str,
    reader: str = "from_onnx",
) -> list[MicrotirError]:
    """Return problems, where those of open extents say with which ones the model can be read.

    Args:
        problems: of the model.
        inputs: what the file says of them.
        shapes: what the caller says of them.
        read: reads the model with other shapes.
        model: its path, as the caller has it.
        reader: the function that reads such models.
    """
    if not any(map(_is_open, problems)):
        return list(problems)
    extents = _extents_that_work(inputs, shapes, read)
    if extents is None:
        return list(problems)
    fix = extents.fix(model, reader)
    return [_with_fix(problem, fix) if _is_open(problem) else problem for problem in problems]


def _is_open(problem: MicrotirError) -> bool:
    if not isinstance(problem, UnsupportedModelError):
        return False
    return problem.export is ExportProblem.OPEN_EXTENT


def _with_fix(problem: MicrotirError, fix: Fix) -> MicrotirError:
    named = copy.copy(problem)
    named.fix = fix
    return named


@dataclass(frozen=True, slots=True)
class _Extents:
    """Extents that the user is told to give: of dimensions by name, else of whole inputs."""

    dims: Mapping[str, int]
    shapes: Mapping[str, tuple[int, ...]]

    def fix(self, model: str, reader: str) -> Fix:
        """Return what to do, in Python and on the command line."""
        flags = [f"--dim {shlex.quote(f'{name}={extent}')}" for name, extent in self.dims.items()]
        python = [f"dims={dict(self.dims)!r}"] if self.dims else []
        if self.shapes:
            text = ",".join(
                f"{name}:[{','.join(map(str, shape))}]" for name, shape in self.shapes.items()
            )
            flags.append(f"--input-shapes {shlex.quote(text)}")
            python.append(f"input_shapes={dict(self.shapes)!r}")
        return Fix(
            f"give them, for example: {reader}(..., {', '.join(python)})",
            f"give them, for example: microtir check {shlex.quote(model)} {' '.join(flags)}",
        )


def _extents_that_work(
    inputs: Sequence[FileValue], shapes: InputShapes, read: ReadWith
) -> _Extents | None:
    """Return extents with which a model can be read; None if none of those tried are such.

    Where all give the same problems besides, those of other causes, the first ones do.
    """
    seen: list[tuple[set[str], _Extents]] = []
    for extent in _TRIED:
        extents = _all_of(extent, inputs, shapes)
        if extents is None:
            return None
        _, problems = read(
            InputShapes({**shapes.dims, **extents.dims}, {**shapes.shapes, **extents.shapes})
        )
        if not problems:
            return extents
        seen.append(({str(problem) for problem in problems}, extents))
        if len(seen) > _SAME_ANSWERS and all(said == seen[0][0] for said, _ in seen):
            return seen[0][1]
    return None


def _all_of(extent: int, inputs: Iterable[FileValue], input_shapes: InputShapes) -> _Extents | None:
    """Return one extent for all dimensions that are open; None if a rank is not known."""
    dims: dict[str, int] = {}
    shapes: dict[str, tuple[int, ...]] = {}
    values = [value for value in inputs if value.name not in input_shapes.shapes]
    for value in values:
        if value.shape is None or value.is_sequence:
            return None
        names = [
            e for e in value.shape[1:] if isinstance(e, str) and e and e not in input_shapes.dims
        ]
        dims |= dict.fromkeys(names, extent)
    batches: dict[str, int] = {str(value.shape[0]): 1 for value in values if value.shape}
    said = {name: e for name, e in input_shapes.dims.items() if isinstance(e, int)}
    known = {**batches, **said, **dims}
    dims |= {name: total for name in dims if (total := _sum(name, known)) is not None}
    for value in values:
        stated = value.shape or ()
        if "" in stated[1:]:
            known |= dims
            shapes[value.name] = tuple(
                e if isinstance(e, int) else known.get(e, extent if axis else 1)
                for axis, e in enumerate(stated)
            )
    used = {e for v in values if v.name not in shapes for e in (v.shape or ())}
    return _Extents({name: e for name, e in dims.items() if name in used}, shapes)


def _sum(name: str, known: Mapping[str, int]) -> int | None:
    """Return the extent that the name of a dimension says as a sum: "past + 1"; None if none."""
    parts = [part.strip() for part in name.split("+")]
    if len(parts) < 2 or not all(part in known or re.fullmatch(r"\d+", part) for part in parts):
        return None
    return sum(known[part] if part in known else int(part) for part in parts)
