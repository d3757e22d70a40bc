"""Check samples, and take some of them to measure with."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from microtir.errors import UsageError, nearest
from microtir.graph.ir import Array, Graph, Tensor
from microtir.graph.port_names import by_own_names

_MOST_MEASURED = 64  # samples


@dataclass(frozen=True, slots=True)
class Samples:
    """Arguments of runs, by name, of the graph's own shapes and types.

    Args:
        calibrated: runs whose values decide the ranges.
        measured: runs that measure what integers cost; those of `calibrated` where there are no
            others.
        warnings: of what looks wrong without being an error.
    """

    calibrated: tuple[Mapping[str, Array], ...]
    measured: tuple[Mapping[str, Array], ...]
    warnings: tuple[str, ...]

    @staticmethod
    def of(graph: Graph, arrays: Mapping[str, Array], holdout: float) -> Samples:
        """Return the samples of a graph.

        Args:
            graph: whose arguments they are.
            arrays: for each argument an array whose first axis counts samples; a leading 1 of the
                shape may be missing behind it.
            holdout: the share that is measured with.

        Raises:
            UsageError: an array is missing, unknown, of another shape or type, or holds a value
                that is not finite.
        """
        names = [tensor.name for tensor in graph.arguments]
        arrays = by_own_names(arrays, graph.port_name, "samples")
        for name in arrays:
            if name not in names:
                raise UsageError(
                    f"'{name}' is not an input of the model",
                    where="samples",
                    legal=", ".join(names),
                    fix=nearest(name, names) or None,
                )
        checked = {t.name: _checked(graph, t, arrays) for t in graph.arguments}
        counts = {name: len(array) for name, array in checked.items()}
        if len(set(counts.values())) > 1:
            what = f"the inputs have different numbers of samples ({counts})"
            raise UsageError(what, where="samples")
        count = next(iter(counts.values()), 1)
        runs = [{name: array[n] for name, array in checked.items()} for n in range(count)]
        warnings = tuple(_warnings(graph, checked, count))
        if graph.states:  # runs follow each other, so that none may be left out
            return Samples(tuple(runs), tuple(runs), warnings)
        numbers = frozenset(held_out(count, holdout))
        held = [run for n, run in enumerate(runs) if n in numbers]
        rest = [run for n, run in enumerate(runs) if n not in numbers]
        measured = (held or runs)[:_MOST_MEASURED]
        return Samples(tuple(rest or runs), tuple(measured), warnings)


def held_out(count: int, share: float) -> tuple[int, ...]:
    """Return the numbers of samples that measure and do not calibrate: one in so many."""
    period = round(1 / share) if share > 0 else count + 1
    return tuple(range(period - 1, count, period))


def _checked(graph: Graph, tensor: Tensor, arrays: Mapping[str, Array]) -> Array:
    """Return the samples of an input, in its type and shape."""
    where, shape = f"samples: '{tensor.name}'", graph.type_of_all(tensor).shape
    if tensor.name not in arrays:
        raise UsageError(
            f"there are no samples for the input '{tensor.name}'",
            where="samples",
            legal=f"an array {_shape_text(shape)} of {tensor.dtype.value}",
        )
    array = np.asarray(arrays[tensor.name])
    bare = shape[1:] if shape[:1] == (1,) else shape
    if array.ndim == 0 or len(array) == 0 or array.shape[1:] not in (shape, bare):
        what = f"the samples have the shape {array.shape}"
        raise UsageError(what, where=where, legal=_shape_text(bare))
    kind = np.dtype(tensor.dtype.value)
    is_legal = array.dtype == kind or (kind.kind == "f" and array.dtype.kind == "f")
    if kind.kind in "iu" and array.dtype.kind in "iu":
        is_legal = tensor.dtype.min <= array.min() and array.max() <= tensor.dtype.max
    if not is_legal:
        raise UsageError(
            f"the samples have the type {array.dtype}"
            + ", but the model is quantised already" * (tensor.type.quantization is not None),
            where=where,
            legal=kind.name,
            fix="give samples of this type, scaled as for the training of the model",
        )
    with np.errstate(over="ignore"):  # what float32 cannot hold is not finite then
        values = np.ascontiguousarray(array.reshape(len(array), *shape), kind)
    if kind.kind == "f":
        finite = np.isfinite(values).reshape(len(values), -1).all(axis=1)
        if not finite.all():
            raise UsageError(
                f"sample {int(np.argmin(finite))} contains a value that is not finite",
                where=where,
                legal="numbers",
                fix="leave the sample out, or replace its NaN values",
            )
    return values


def _shape_text(shape: tuple[int, ...]) -> str:
    return f"(samples, {', '.join(map(str, shape))})" if shape else "(samples,)"


def _warnings(graph: Graph, arrays: Mapping[str, Array], count: int) -> list[str]:
    """Return what looks wrong: one sample, an input that never changes."""
    warnings = []
    if count == 1:
        warnings.append("there is only one sample, which sets the ranges; no other sample "
        "measures the error")  # fmt: skip
    for tensor in graph.arguments:
        array = arrays[tensor.name]
        if tensor.dtype.is_float and array.min() == array.max():
            warnings.append(f"all samples of '{tensor.name}' are {float(array.flat[0]):g}")
        elif tensor.dtype.is_float and count > 1 and (array == array[0]).all():
            warnings.append(f"all samples of '{tensor.name}' are equal")
    return warnings
