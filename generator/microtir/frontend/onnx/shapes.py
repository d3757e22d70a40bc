"""Shapes of inputs: what the file says, and what the caller says where it is silent."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import count, takewhile

from microtir.errors import ExportProblem, Fix, ModelFileError, UnsupportedModelError, UsageError
from microtir.frontend.onnx.file import MAX_RANK, FileValue
from microtir.graph.names import brief

_OUTERMOST = "one range, for a dimension of all inputs that has only extents of 1 before it"


@dataclass(frozen=True, slots=True)
class InputShapes:
    """Extents that the caller gives.

    Args:
        dims: of dimensions that the file gives a name; a range for what each run says anew.
        shapes: of whole inputs, by name; an extent of each may be such a range.
    """

    dims: Mapping[str, int | range] = field(default_factory=dict)
    shapes: Mapping[str, Sequence[int | range]] = field(default_factory=dict)

    @property
    def most(self) -> int | None:
        """Return the end of the range that an extent has; None if none has one."""
        extents = [*self.dims.values(), *(e for shape in self.shapes.values() for e in shape)]
        return next((_most(extent) for extent in extents if isinstance(extent, range)), None)

    def with_most(self, most: int) -> InputShapes:
        """Return the same with one extent in the place of the range."""

        def most_of(extent: int | range) -> int:
            return most if isinstance(extent, range) else extent

        return InputShapes(
            {name: most_of(extent) for name, extent in self.dims.items()},
            {name: tuple(map(most_of, shape)) for name, shape in self.shapes.items()},
        )

    def check(self, inputs: Sequence[FileValue], file: str) -> None:
        """Refuse what is said of inputs that contradicts the file.

        Raises:
            UsageError: there is no such dimension or input, or it has another shape.
        """
        names = {value.name: value for value in inputs}
        dims = {extent for value in inputs for extent in value.shape or () if extent}
        for name in (*self.dims.keys() - dims, *self.shapes.keys() - names.keys()):
            raise UsageError(
                f"no input has {brief(name)!r}",
                where=file,
                legal="inputs: {}; dimensions: {}".format(
                    ", ".join(map(brief, names)),
                    ", ".join(str(dim) for dim in dims if isinstance(dim, str)) or "none",
                ),
            )
        for name, extent in self.dims.items():
            if isinstance(extent, range):
                self._check_range(name, extent, inputs, file)
        for name in self.shapes:
            self._check_shape(names[name], f"{file}: input {brief(name)!r}")
        self._check_ranges(inputs, file)

    def tensors_of(self, value: FileValue) -> tuple[FileValue, ...]:
        """Return the tensors of an input: those of a sequence have a number behind its name.

        A sequence of which nobody says what it has stays as it is.
        """
        if not value.is_sequence:
            return (value,)
        names = takewhile(self.shapes.__contains__, (f"{value.name}.{n}" for n in count()))
        tensors = tuple(replace(value, name=name, is_sequence=False) for name in names)
        return tensors or (value,)

    def of(self, value: FileValue, file: str) -> tuple[int, ...]:
        """Return the shape of an input. A first extent that nobody gives is a batch of 1.

        Raises:
            UnsupportedModelError: an extent is not known.
            ModelFileError: an extent is below 0.
        """
        where = f"{file}: input {brief(value.name)!r}"
        if value.is_sequence:
            raise _open_sequence(value, where)
        if value.name in self.shapes:
            return tuple(map(_most, self.shapes[value.name]))
        if value.shape is None:
            raise _unknown("its shape is not known", value, where)
        if len(value.shape) > MAX_RANK:
            raise ModelFileError(
                f"it has {len(value.shape)} dimensions", where=where, legal=f"at most {MAX_RANK}"
            )
        extents = []
        for axis, extent in enumerate(value.shape):
            known = self._extent(extent) if isinstance(extent, str) else extent
            if known is None and axis == 0:
                known = 1
            if known is None:
                raise _unknown(f"axis {axis} has the extent {extent or 'unknown'!r}", value, where)
            if known < 0:
                raise ModelFileError(
                    f"axis {axis} has the extent {known}", where=where, legal="0 or more",
                    fix="export the model again",
                )  # fmt: skip
            extents.append(known)
        return tuple(extents)

    def _extent(self, name: str) -> int | None:
        """Return the extent of a dimension, of a range the most."""
        extent = self.dims.get(name)
        return None if extent is None else _most(extent)

    def _check_range(
        self, name: str, extents: range, inputs: Sequence[FileValue], file: str
    ) -> None:
        """Refuse a range of anything but what lies outermost in all inputs.

        Raises:
            UsageError: it begins elsewhere than at 1, or the dimension lies within another.
        """
        where = f"{file}: dimension {brief(name)!r}"
        fix = Fix(f"give {name!r}: range(1, 9)", f"give --dim {name}=1..8")
        _check_ends(extents, where, fix)
        for value in inputs:
            axes = [axis for axis, extent in enumerate(value.shape or ()) if extent == name]
            is_given = value.name in self.shapes
            if is_given or len(axes) != 1 or not self._is_outermost(value, axes[0]):
                raise UsageError(
                    "a dimension with a range must be the outermost dimension of input "
                    f"{brief(value.name)!r} (after extents of 1), and no other dimension",
                    where=where,
                    legal=_OUTERMOST,
                    fix=Fix(f"give it one extent: {name!r}: 16", f"give it one: --dim {name}=16"),
                )

    def _is_outermost(self, value: FileValue, axis: int) -> bool:
        """Return whether axes in front of one have one element, as an open batch has."""
        ahead = [self._extent(e) if isinstance(e, str) else e for e in (value.shape or ())[:axis]]
        return all(extent == 1 or (extent is None and n == 0) for n, extent in enumerate(ahead))

    def _check_shape(self, value: FileValue, where: str) -> None:
        extents = tuple(self.shapes[value.name])
        stored = value.shape if value.shape is not None else ("",) * len(extents)
        fits = len(extents) == len(stored) and all(
            isinstance(known, str) or known == extent
            for known, extent in zip(stored, extents, strict=True)
        )
        least = min((min(e, default=1) if isinstance(e, range) else e for e in extents), default=1)
        if not fits or least < 1:
            raise UsageError(
                f"it cannot have the shape ({', '.join(map(_text, extents))})", where=where,
                legal=str(tuple(known or "any" for known in stored)),
                fix=Fix("correct `input_shapes`", "correct --input-shapes"),
            )  # fmt: skip

    def _check_ranges(self, inputs: Sequence[FileValue], file: str) -> None:
        """Refuse ranges in shapes that are not one range, outermost in all inputs.

        Raises:
            UsageError: one begins elsewhere than at 1, or stands elsewhere.
        """
        ranged = {
            name: [(axis, e) for axis, e in enumerate(shape) if isinstance(e, range)]
            for name, shape in self.shapes.items()
        }
        ranges = [(name, *place) for name, places in ranged.items() for place in places]
        if not ranges:
            return
        name, _, first = ranges[0]
        fix = Fix(f"give {name!r}: (range(1, 9), ...)", f"give --input-shapes {name}:[1..8,...]")
        _check_ends(first, f"{file}: input {brief(name)!r}", fix)
        names = {value.name for value in inputs}
        for other in sorted(names | ranged.keys()):
            places = ranged.get(other, [])
            ahead = self.shapes[other][: places[0][0]] if places else ()
            if [e for _, e in places] != [first] or any(extent != 1 for extent in ahead):
                raise UsageError(
                    f"the shape of input {brief(name)!r} has the range {_text(first)}. The first "
                    f"extent of {brief(other)!r} that is not 1 must be the same range",
                    where=file,
                    legal=_OUTERMOST,
                    fix=Fix("correct `input_shapes`", "correct --input-shapes"),
                )


def _most(extent: int | range) -> int:
    return max(extent, default=0) if isinstance(extent, range) else extent


def _text(extent: int | range) -> str:
    return f"{extent.start}..{extent.stop - 1}" if isinstance(extent, range) else str(extent)


def _check_ends(extents: range, where: str, fix: Fix) -> None:
    """Refuse a range that begins elsewhere than at 1.

    Raises:
        UsageError: it does, or it has one number.
    """
    if len(extents) < 2 or extents.step != 1 or min(extents) != 1:
        raise UsageError(
            f"its range is {_text(extents)}",
            where=where,
            legal="a range that begins at 1 and ends at 2 or more",
            fix=fix,
        )


def _open_sequence(value: FileValue, where: str) -> UnsupportedModelError:
    return UnsupportedModelError(
        "the number of tensors in its sequence is not known",
        where=where,
        legal="sequences whose number of tensors is known at compile time",
        fix=Fix(
            f"give their shapes: input_shapes={{'{value.name}.0': (2, 3), ...}}",
            f"give their shapes: --input-shapes {value.name}.0:[2,3],{value.name}.1:[2,3]",
        ),
    )


def _example(value: FileValue) -> str:
    """Return extents that would do, as the flag has them: a batch of 1, and 16 of what is open."""
    shape = ("", "", "", 3) if value.shape is None else value.shape
    open_axes = (1, *(16,) * len(shape))
    pairs = zip(shape, open_axes, strict=False)
    return ",".join(str(known if isinstance(known, int) else other) for known, other in pairs)


def _unknown(what: str, value: FileValue, where: str) -> UnsupportedModelError:
    names = [extent for extent in value.shape or () if isinstance(extent, str) and extent]
    name = names[-1] if names else "NAME"
    return UnsupportedModelError(
        what,
        where=where,
        legal="inputs whose extents are known at compile time",
        fix=Fix(
            f"give them: from_onnx(..., dims={{{name!r}: 16}}), or input_shapes=",
            f"give them: --dim {name}=16, or --input-shapes {value.name}:[{_example(value)}]",
        ),
        export=ExportProblem.OPEN_EXTENT,
        export_value=value.name,
    )
