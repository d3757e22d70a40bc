"""Reads samples with the classes that they belong to: a file of arrays, or a folder for each class.

Samples are real values or those that the model stores; real ones are quantised as the input is.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from microtir.errors import DataFileError, RunError
from microtir.graph.ir import Array
from microtir.host.samples import SampleBatch, read_arrays
from microtir.host.tensors import TensorInfo

_INPUTS, _LABELS = ("inputs", "x", "images", "features"), ("labels", "y", "targets", "classes")
_NUMBER = re.compile("[0-9]{1,9}")
_LEGAL = f"'{_INPUTS[0]}' and '{_LABELS[0]}', with as many entries along their first axes"


@dataclass(frozen=True, slots=True)
class Dataset:
    """Samples of a model's only input, and the class of each.

    `names` are those of all classes, of a dataset that numbers its classes by their names.
    """

    samples: SampleBatch
    labels: tuple[int, ...]
    names: tuple[str, ...] = ()


def read_dataset(path: Path, port: TensorInfo) -> Dataset:
    """Read a dataset for a model with one input.

    Args:
        path: an `.npz` file with samples and labels, counted from 0; or a folder with a folder of
            `.npy` files for each class. Names that are numbers are the classes' own; others have
            the numbers that they have in order.
        port: the input: a sample has its shape, or that without a leading 1.

    Raises:
        DataFileError: something is missing or damaged.
        RunError: samples do not fit the input.
    """
    if path.is_dir():
        return _of_folders(path, port)
    arrays = read_arrays(path)
    inputs, labels = (_first(path, arrays, names) for names in (_INPUTS, _LABELS))
    counts = [len(array) if array.ndim else 0 for array in (inputs, labels)]
    if counts[0] != counts[1] or not labels.size or labels.dtype.kind not in "iubf":
        raise DataFileError(
            f"the file has {counts[0]} samples, and {counts[1]} labels of type {labels.dtype}",
            where=str(path),
            legal=_LEGAL,
        )
    flat = labels.reshape(len(labels), -1)
    if flat.shape[1] > 1:  # one column for each class
        flat = flat.argmax(axis=1, keepdims=True)
    with np.errstate(invalid="ignore"):  # NaN and infinity are refused below
        numbers = flat[:, 0].astype(np.int64)
    if numbers.min() < 0 or (flat[:, 0] != numbers).any():
        raise DataFileError("labels are not classes", where=str(path), legal="0, 1, 2 and so on")
    values = tuple({port.name: _stored(path, port, sample)} for sample in inputs)
    return Dataset(SampleBatch(values), tuple(numbers.tolist()))


def _of_folders(path: Path, port: TensorInfo) -> Dataset:
    folders = sorted(folder for folder in path.iterdir() if folder.is_dir())
    has_numbers = all(_NUMBER.fullmatch(folder.name) for folder in folders)
    numbers = [int(f.name) for f in folders] if has_numbers else range(len(folders))
    values: list[Mapping[str, Array]] = []
    labels: list[int] = []
    for number, folder in zip(numbers, folders, strict=True):
        for file in sorted(folder.glob("*.npy")):
            sample = read_arrays(file)["inputs"]
            values.append({port.name: _stored(file, port, sample)})
            labels.append(number)
    if not values:
        raise DataFileError(
            "it has no samples", where=str(path), legal="a folder of .npy files for each class"
        )
    names = () if has_numbers else tuple(f.name for f in folders)
    return Dataset(SampleBatch(tuple(values)), tuple(labels), names)


def _first(path: Path, arrays: Mapping[str, Array], names: Sequence[str]) -> Array:
    for name in names:
        if name in arrays:
            return arrays[name]
    raise DataFileError(
        f"the file has no array '{names[0]}'. Its arrays are: {', '.join(arrays) or 'none'}",
        where=str(path),
        legal=_LEGAL,
    )


def _stored(where: Path, port: TensorInfo, sample: Array) -> Array:
    """Return a sample as the input stores it."""
    shapes = (port.shape, port.shape[1:]) if port.shape[:1] == (1,) else (port.shape,)
    if sample.shape not in shapes:
        raise RunError(
            f"a sample has the shape {sample.shape}",
            where=str(where),
            legal=" or ".join(map(str, shapes)),
        )
    values = sample.reshape(port.shape)
    if values.dtype.kind == "f" and np.isnan(values).any():
        raise RunError(
            "a sample has values that are not numbers (NaN)",
            where=str(where),
            fix="leave the sample out, or replace its NaN values",
        )
    if values.dtype == port.dtype:
        return values
    is_real = values.dtype.kind == "f" and (port.scale is not None or port.dtype.kind == "f")
    if not is_real:
        raise RunError(
            f"samples have the type {values.dtype}",
            where=str(where),
            legal=f"{port.dtype}, or floats",
        )
    return port.quantise(values)
