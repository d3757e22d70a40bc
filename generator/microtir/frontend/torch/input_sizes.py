"""Settle the sizes that a program leaves open, from what the caller says of its inputs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from microtir.errors import Fix, MicrotirError, UnsupportedModelError, UsageError
from microtir.frontend.onnx.file import FileValue
from microtir.frontend.torch.program import FileProgram, FileTensor, Named
from microtir.frontend.torch.symbols import Expression, Symbol, symbols_of, value_of
from microtir.graph.names import brief
from microtir.operators.common.torch_operands import OtherType


def file_values(program: FileProgram, file: str) -> tuple[tuple[FileValue, FileTensor], ...]:
    """Return the inputs that a caller gives, in order: as a caller is asked for them, and as read.

    Raises:
        UnsupportedModelError: one is no tensor, or of a type that the graph does not have.
    """
    values = []
    for spec in program.inputs:
        if spec.kind != "user_input" or spec.value is None:
            continue
        tensor = None
        if isinstance(spec.value, Named):
            tensor = program.graph.tensors.get(spec.value.name)
        if not isinstance(spec.value, Named) or tensor is None:
            raise _no_tensor(brief(str(spec.value)), file)
        if isinstance(tensor.dtype, OtherType):
            raise _other_type(spec.value.name, tensor.dtype, file)
        shape = tuple(map(_open_extent, tensor.sizes))
        values.append((FileValue(spec.value.name, tensor.dtype, shape), tensor))
    return tuple(values)


def symbols_of_inputs(
    values: Sequence[tuple[FileValue, FileTensor]],
    shapes: Mapping[str, tuple[int, ...]],
    file: str,
) -> Mapping[str, int]:
    """Return what each symbol is in inputs of known shapes.

    Raises:
        UsageError: an extent contradicts another one.
    """
    known: dict[str, int] = {}
    sizes: list[tuple[str, Expression, int]] = []
    for value, tensor in values:
        shape = shapes.get(value.name, ())
        sizes += ((value.name, *pair) for pair in zip(tensor.sizes, shape, strict=False))
    for _, size, extent in sizes:
        if isinstance(size, Symbol):
            known.setdefault(size.name, extent)
    for name, size, extent in sizes:
        if symbols_of(size) <= known.keys() and value_of(size, known, file) != extent:
            raise _contradiction(name, extent, value_of(size, known, file), file)
    return known


def check_ranges(program: FileProgram, symbols: Mapping[str, int], file: str) -> None:
    """Refuse sizes that the program was not exported for.

    Raises:
        UsageError: one is outside of the range that the program states.
    """
    for name, extent in symbols.items():
        least, most = program.ranges.get(name, (1, None))
        if extent < least or (most is not None and extent > most):
            raise _out_of_range(name, extent, (max(least, 1), most), file)


def _open_extent(size: Expression) -> int | str:
    """Return an extent as callers name it: a number, a symbol, or "?" of what follows from some."""
    if isinstance(size, int):
        return size
    return size.name if isinstance(size, Symbol) else "?"


def _no_tensor(name: str, file: str) -> UnsupportedModelError:
    return UnsupportedModelError(
        f"its input {name} is a number, not a tensor",
        where=file,
        legal="inputs that are tensors",
        fix="export the model with the number as a constant, or as a tensor",
    )


def _other_type(name: str, dtype: OtherType, file: str) -> UnsupportedModelError:
    return UnsupportedModelError(
        f"it has the type {dtype.name}",
        where=f"{file}: input {brief(name)!r}",
        legal="float16, bfloat16, float32, float64 (all computed in float32), integers, bool",
        fix="give real and imaginary parts as two inputs (torch.complex in the model)",
    )


def _contradiction(name: str, extent: int, wanted: int, file: str) -> MicrotirError:
    return UsageError(
        f"one of its extents is {extent}, but the shapes of other inputs require {wanted}",
        where=f"{file}: input {brief(name)!r}",
        fix=Fix("correct `input_shapes`", "correct --input-shapes"),
    )


def _out_of_range(
    name: str, extent: int, limits: tuple[int, int | None], file: str
) -> MicrotirError:
    least, most = limits
    end = "on" if most is None else f"to {most}"
    return UsageError(
        f"dimension {brief(name)!r} has the extent {extent}",
        where=file,
        legal=f"from {least} {end}, as the model was exported",
        fix=Fix(f"set it: dims={{{name!r}: {least}}}", f"set it: --dim {name}={least}"),
    )
