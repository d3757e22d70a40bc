"""Read samples for the inputs of a float model, and their classes or wanted numbers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType

import numpy as np

from microtir.errors import DataFileError, UsageError
from microtir.graph.ir import Array, Graph, Node, Tensor
from microtir.host.samples import key_of, read_arrays
from microtir.operators.arithmetic.definition import Mul
from microtir.operators.division.definition import Div
from microtir.quantise.cost import fitted_labels

_LABELS = ("labels", "y", "targets", "classes")
_BYTE = 255
_CHANNELS = 4  # at most, in pictures

_LAYOUTS: Mapping[tuple[int, ...], str] = MappingProxyType(
    {(1, 0): "axes swapped", (1, 2, 0): "channels first", (2, 0, 1): "channels last"}
)
"""Orders of the axes of a sample that another layout has, and what is said of each."""


@dataclass(frozen=True, slots=True)
class FloatSamples:
    """Samples of a model's inputs.

    Args:
        inputs: of each input an array, whose first axis counts samples.
        labels: of each sample its class, or the numbers that the first output should be; None
            where the file says nothing of it.
        doubts: sentences about samples that do not look like those that a model is trained on.
    """

    inputs: Mapping[str, Array]
    labels: Array | None
    doubts: tuple[str, ...]


def read_float_samples(path: Path, graph: Graph, labels: str | None = None) -> FloatSamples:
    """Read an `.npz` file with an array for each input, or an `.npy` file for the only one.

    Keys are the names or aliases of the inputs, or `inputs.NAME`; the only input may have any name,
    such as `inputs`, `x`, or none at all.

    Args:
        path: of the file.
        graph: of the model.
        labels: the name of the array that says what is right; by default `labels` or `y`.

    Raises:
        DataFileError: the file is missing, damaged or too large, or lacks an array.
        UsageError: samples have the axes of another layout, or labels do not fit the output.
    """
    arrays = read_arrays(path)
    named = _label_key(path, arrays, graph, labels)
    others = {name: array for name, array in arrays.items() if name != named}
    inputs = {tensor.name: _input(path, others, tensor, graph) for tensor in graph.arguments}
    for tensor in graph.arguments:
        _check_layout(path, tensor, inputs[tensor.name])
    known = None if named is None else arrays[named]
    counts = sorted({len(array) for array in inputs.values() if array.ndim})
    if known is not None and known.shape[:1] not in [(count,) for count in counts]:
        what = f"the array '{named}' has the shape {known.shape}, but there are {counts} samples"
        raise DataFileError(what, where=str(path))
    known = None if known is None else fitted_labels(known, graph.type_of_all(graph.results[0]))
    doubts = [text for t in graph.arguments for text in _doubts(graph, t, inputs[t.name])]
    unread = [f"'{n}'" for n, a in others.items() if not any(a is i for i in inputs.values())]
    doubts += [f"not read: {name}; --labels NAME names the expected results" for name in unread]
    return FloatSamples(inputs, known, tuple(doubts))


def _label_key(
    path: Path, arrays: Mapping[str, Array], graph: Graph, named: str | None
) -> str | None:
    """Return the name of the array that says what is right."""
    if named is not None:
        if named not in arrays:
            raise DataFileError(
                f"the file has no array '{named}'. Its arrays are: {', '.join(arrays) or 'none'}",
                where=str(path),
            )
        return named
    names = {name for t in graph.arguments for name in (t.name, *graph.aliases_of(t))}
    return next((key for key in _LABELS if key in arrays and key not in names), None)


def _input(path: Path, arrays: Mapping[str, Array], tensor: Tensor, graph: Graph) -> Array:
    names = (tensor.name, *graph.aliases_of(tensor))
    keys, *others = ([name, f"inputs.{name}"] for name in names)
    known = key_of(path, arrays, (keys, *others))
    if known is not None:
        return arrays[known]
    if len(graph.arguments) == 1:
        if "inputs" in arrays:
            return arrays["inputs"]
        if len(arrays) == 1:
            return next(iter(arrays.values()))
        keys.append("inputs")
    raise DataFileError(
        f"the file has no array for the input '{tensor.name}'. Its arrays are: "
        f"{', '.join(arrays) or 'none'}",
        where=str(path),
        legal=" or ".join(f"'{key}'" for key in keys),
    )


def _check_layout(path: Path, tensor: Tensor, array: Array) -> None:
    """Refuse pictures whose channels stand at the other end, or sequences, with what turns them."""
    shape = tensor.shape[1:] if tensor.shape[:1] == (1,) else tensor.shape
    sample = array.shape[1:]
    if len(sample) == len(shape) + 1 and sample[:1] == (1,):
        sample = sample[1:]
    if len(sample) != len(shape) or sample == shape:
        return
    lead = array.ndim - len(shape)
    for order, what in _LAYOUTS.items():
        if len(order) == len(shape) and tuple(sample[axis] for axis in order) == shape:
            axes = (*range(lead), *(axis + lead for axis in order))
            raise UsageError(
                f"the samples of '{tensor.name}' have the shape {array.shape}, with their {what}",
                where=str(path),
                legal=f"the shape (samples, {', '.join(map(str, shape))})",
                fix=f"store them with their axes in the order {axes}",
            )


def _doubts(graph: Graph, tensor: Tensor, array: Array) -> list[str]:
    """Return what is odd about the scale of samples; integers in floats are pixels, most likely.

    A model that begins with arithmetic, as a layer of Rescaling is, may want them as they are.
    """
    if not tensor.dtype.is_float or array.dtype.kind != "f" or not array.size:
        return []
    what = f"all samples of '{tensor.name}' are from {array.min():g} to {array.max():g}"
    readers = [node for node in graph.nodes if tensor in node.inputs]
    divisor = max((_divisor(node) for node in readers), default=0.0)
    if np.abs(array).max() <= 1 and _BYTE / 3 < divisor < _BYTE * 1.2:
        return [f"{what}, and the model divides them by {divisor:g} itself: it may want pixels"]
    scales_itself = any(node.op.name in ("mul", "sub", "add", "div") for node in readers)
    is_byte = array.min() >= 0 and _CHANNELS < array.max() <= _BYTE
    is_resized = array.ndim > 3 and array.max() > _BYTE * 0.8
    if scales_itself or not is_byte or not (is_resized or np.array_equal(array, np.rint(array))):
        return []
    return [f"{what}: if the model was trained on pixels of 0 to 1, divide them by {_BYTE}"]


def _divisor(node: Node) -> float:
    """Return the number that a node divides its input by; 0 if it does something else."""
    numbers = [t.data for t in node.inputs if t.data is not None and t.type.elements == 1]
    number = float(numbers[0].reshape(())) if numbers else 0.0
    if isinstance(node.op, Div):
        return number
    return 1 / number if isinstance(node.op, Mul) and number else 0.0
