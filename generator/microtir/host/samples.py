"""Reads inputs and expected outputs from files, or makes inputs up."""

from __future__ import annotations

import io
import math
import re
import warnings
import zipfile
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from pathlib import Path
from types import MappingProxyType
from typing import IO, Any

import numpy as np
from numpy.lib import format as npy

from microtir.errors import DataFileError, MicrotirError, RunError
from microtir.graph.ir import Array
from microtir.graph.names import brief
from microtir.module.ir_module import ModelInfo, Port, PortKind
from microtir.support.names import c_name

# What an .npz and an .npy file start with; a .npz file without arrays has no local header.
_SIGNATURES = (b"PK\x03\x04", b"PK\x05\x06", b"\x93NUMPY")
_NPY = _SIGNATURES[-1]
_HEADERS = MappingProxyType({
    (1, 0): npy.read_array_header_1_0, (2, 0): npy.read_array_header_2_0,
})  # fmt: skip
_NUMBER = re.compile(r"_\d+$")  # behind a name that was taken
MAX_BYTES = 2 * 2**30  # of the arrays of a file, unpacked
MAX_ARRAYS = 10_000
MAX_RANK = 32  # of numpy's arrays
_LENGTH_BYTES = {(1, 0): 2, (2, 0): 4}
_LONGEST_HEADER = 10_000  # as numpy has it
_SIGNATURE_BYTES = max(map(len, _SIGNATURES))


class Fill(Enum):
    """The content of made-up inputs, in stored units: 1 of an int8 input is one step, not 1.0."""

    ZEROS = "zeros"
    ONES = "ones"
    RANDOM = "random"


@dataclass(frozen=True, slots=True)
class SampleBatch:
    """Several samples: of each run its arrays by port name, each of the port's own shape.

    A sample is one run or, of a model with a state, a sequence of as many as `steps` says. Its
    first run begins with the state that the file gives, whatever was run before.
    `stacked` is False where a file held one sample without an axis that counts samples.
    """

    values: tuple[Mapping[str, Array], ...]
    stacked: bool = True
    steps: int | None = None

    def __len__(self) -> int:
        return len(self.values)

    def samples(self) -> Iterator[tuple[Mapping[str, Array], ...]]:
        """Yield the runs of each sample."""
        count = self.steps or 1
        for first in range(0, len(self.values), count):
            yield self.values[first : first + count]

    def first(self, samples: int) -> SampleBatch:
        """Return so many samples of those that there are."""
        return replace(self, values=self.values[: samples * (self.steps or 1)])

    def stack(self, outputs: Sequence[Mapping[str, Array]]) -> dict[str, Array]:
        """Return the outputs of each run for an `.npz` file by name, with the axes of the file."""
        if not self.stacked:
            return dict(outputs[0])
        arrays = {name: np.stack([run[name] for run in outputs]) for name in outputs[0]}
        if self.steps is None:
            return arrays
        return {n: a.reshape(-1, self.steps, *a.shape[1:]) for n, a in arrays.items()}


def filled(
    ports: Sequence[Port], count: int, fill: Fill, seed: int = 0, steps: int | None = None
) -> SampleBatch:
    """Make inputs up: the same for the same seed, on every machine.

    Random integers cover the whole range of their type; random floats are standard normal.
    """
    generator = np.random.default_rng(seed)
    runs = range(count * (steps or 1))
    return SampleBatch(
        tuple({port.name: _filled(port, fill, generator) for port in ports} for _ in runs),
        steps=steps,
    )


def _filled(port: Port, fill: Fill, generator: np.random.Generator) -> Array:
    shape, dtype = port.type.shape, np.dtype(port.type.dtype.value)
    if fill is Fill.ZEROS:
        return np.zeros(shape, dtype)
    if fill is Fill.ONES:
        return np.ones(shape, dtype)
    if dtype.kind == "f":
        return np.asarray(generator.standard_normal(shape)).astype(dtype)
    if dtype.kind == "b":
        return np.asarray(generator.integers(0, 2, shape)).astype(dtype)
    limits = np.iinfo(dtype)
    return generator.integers(limits.min, limits.max, shape, dtype, endpoint=True)


def read_golden(path: Path, model: ModelInfo) -> tuple[SampleBatch, SampleBatch]:
    """Return inputs and expected outputs from an `.npz` file.

    Its keys are `inputs` and `outputs`, or `inputs.NAME` and `outputs.NAME` for a model with
    several; NAME is the model's name of the tensor, its name in C or an alias; an output whose name
    an input has, too, which has a number behind it here, goes by that name.  The first axis counts
    samples; of a model with a state a second one may count the steps of each, which is a sequence
    then; a leading 1 of the model's shape may be missing behind them.  Other keys are not read.

    Raises:
        DataFileError: the file is missing, unreadable, or lacks a tensor.
        RunError: a shape or type does not fit the model.
    """
    arrays, has_state = read_arrays(path), bool(model.states)
    names = frozenset(name for port in model.inputs for name in (port.name, *port.aliases))
    outputs = _stacks(path, arrays, model.outputs, has_state, inputs=names)
    if not model.inputs:
        return replace(outputs, values=tuple({} for _ in outputs.values)), outputs
    inputs = _stacks(path, arrays, model.inputs, has_state)
    if (len(inputs), inputs.steps or 1) != (len(outputs), outputs.steps or 1):
        raise DataFileError(
            f"the file has {_counted(inputs)} of inputs, but {_counted(outputs)} of outputs",
            where=str(path),
        )
    return inputs, outputs


def _counted(batch: SampleBatch) -> str:
    of_steps = f" of {batch.steps} steps" if batch.steps else ""
    return f"{len(batch) // (batch.steps or 1)} samples{of_steps}"


def read_inputs(path: Path, model: ModelInfo) -> SampleBatch:
    """Return inputs from an `.npy` file (of the only input) or an `.npz` file.

    Keys of an `.npz` file are the names of the inputs, in the model or in C, or those of
    `read_golden`.  An array has the input's shape, or one axis before it that counts samples, or
    two, as in `read_golden`.

    Raises:
        DataFileError: the file is missing, unreadable, or lacks an input.
        RunError: a shape or type does not fit the model.
    """
    arrays, ports = read_arrays(path), model.inputs
    inputs = {port.name: _port_array(path, arrays, port, ports, bare=True) for port in ports}
    if all(inputs[port.name].shape == port.type.shape for port in ports):
        for port in ports:
            _check_dtype(path, port, inputs[port.name])
        return SampleBatch((inputs,), stacked=False)
    return _stacks(path, arrays, ports, bool(model.states), bare=True)


def read_arrays(path: Path) -> dict[str, Array]:
    """Read all arrays of a file; that of an `.npy` file goes by the name `inputs`.

    Raises:
        DataFileError: the file is missing, damaged, or larger than its header may say.
    """
    try:
        with path.open("rb") as file:
            start = file.read(_SIGNATURE_BYTES)
            if not start.startswith(_SIGNATURES):
                raise _no_arrays(path, "it does not start as a .npz or .npy file does")
            file.seek(0)
            if start.startswith(_NPY):
                return {"inputs": _array(path, file, "", _Room(path))}
            with zipfile.ZipFile(file) as archive:
                return dict(_arrays(path, archive))
    except OSError as error:
        raise DataFileError(
            f"the file cannot be read: {error.strerror or error}", where=str(path)
        ) from None
    except MicrotirError:
        raise
    except Exception as error:  # noqa: BLE001  # what zipfile and numpy raise is part of no list
        why = error.args[0] if error.args else type(error).__name__
        raise _no_arrays(path, str(why)) from None


class _Room:
    """A count of the bytes that a file may still unpack to."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._left = MAX_BYTES

    def take(self, size: int) -> None:
        """Count bytes that are about to be made; DataFileError if they are too many."""
        self._left -= size
        if self._left < 0:
            raise DataFileError(
                f"the file's arrays have more than {MAX_BYTES} bytes",
                where=str(self._path),
                fix="split the samples into several files",
            )


def _arrays(path: Path, archive: zipfile.ZipFile) -> Iterator[tuple[str, Array]]:
    """Yield the arrays of an `.npz` file, each read no further than its own header says."""
    room = _Room(path)
    members = [member for member in archive.infolist() if member.filename.endswith(".npy")]
    if len(members) > MAX_ARRAYS:
        raise _no_arrays(path, f"it has {len(members)} arrays, more than {MAX_ARRAYS}")
    for member in members:
        with archive.open(member) as stream:
            yield member.filename.removesuffix(".npy"), _array(path, stream, member.filename, room)


def _array(path: Path, stream: IO[bytes], name: str, room: _Room) -> Array:
    """Read one array; what its header claims is counted before any of it is unpacked."""
    version = npy.read_magic(stream)
    if version not in _HEADERS:
        raise _no_arrays(path, f"'{name}' is of the version {version}")
    shape, in_columns, dtype = _header(path, stream, version, name)
    if dtype.hasobject:
        raise _no_arrays(path, f"'{name}' holds objects of Python")
    if any(extent < 0 for extent in shape) or len(shape) > MAX_RANK:
        raise _no_arrays(path, f"'{name}' has the shape {shape[:MAX_RANK]}")
    size = math.prod(shape) * dtype.itemsize
    room.take(size)
    content = stream.read(size)
    if len(content) != size:
        raise _no_arrays(path, f"'{name}' has {len(content)} bytes of the {size} in its header")
    values: Array = np.frombuffer(content, dtype)
    return values.reshape(shape, order="F" if in_columns else "C")


def _header(
    path: Path, stream: IO[bytes], version: tuple[int, int], name: str
) -> tuple[tuple[int, ...], bool, np.dtype[Any]]:
    """Read what an array is; numpy would read 4 GiB of it before it finds that too long."""
    start = stream.read(_LENGTH_BYTES[version])
    length = int.from_bytes(start, "little")
    if length > _LONGEST_HEADER:
        raise _no_arrays(path, f"'{name}' has a header of {length} bytes")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of what Python 2 wrote, which is read all the same
        return _HEADERS[version](io.BytesIO(start + stream.read(length)))


def _no_arrays(path: Path, why: str) -> DataFileError:
    return DataFileError(
        f"the file's arrays cannot be read: {why}",
        where=str(path),
        legal="a .npz or .npy file without pickled objects",
        fix="write the file with numpy.savez(path, inputs=..., outputs=...)",
    )


def _stacks(
    path: Path,
    arrays: Mapping[str, Array],
    ports: Sequence[Port],
    has_state: bool,
    bare: bool = False,
    inputs: Collection[str] = (),
) -> SampleBatch:
    """Cut arrays whose first axis counts samples, and perhaps the second one steps, into runs."""
    stacks = {
        port.name: _port_array(path, arrays, port, ports, bare=bare, inputs=inputs)
        for port in ports
    }
    steps = {port.name: _steps(path, port, stacks[port.name], has_state) for port in ports}
    counts = {name: len(array) for name, array in stacks.items()}
    for what, numbers in (
        ("samples", counts),
        ("steps", {name: number or 1 for name, number in steps.items()}),
    ):
        if len(set(numbers.values())) > 1:
            raise DataFileError(
                f"the number of {what} differs: "
                + ", ".join(f"{name} has {count}" for name, count in numbers.items()),
                where=str(path),
            )
    of_each = max((number for number in steps.values() if number), default=None)
    runs = min(counts.values(), default=0) * (of_each or 1)
    cut = {
        port.name: np.ascontiguousarray(stacks[port.name]).reshape(runs, *port.type.shape)
        for port in ports
    }
    return SampleBatch(
        tuple({name: array[run] for name, array in cut.items()} for run in range(runs)),
        steps=of_each,
    )


def _steps(path: Path, port: Port, array: Array, has_state: bool) -> int | None:
    """Return the steps of each sample of an array, None where a sample is one run."""
    _check_dtype(path, port, array)
    shape = port.type.shape
    shapes = (shape, shape[1:]) if shape[:1] == (1,) else (shape,)
    if array.ndim and len(array):
        if array.shape[1:] in shapes:
            return None
        if has_state and array.ndim > 1 and array.shape[1] and array.shape[2:] in shapes:
            return int(array.shape[1])
    extents = ", ".join(map(str, shape))
    raise RunError(
        f"'{port.name}' has the shape {array.shape}",
        where=str(path),
        legal=f"(samples, {extents})" + f" or (samples, steps, {extents})" * has_state,
    )


def _port_array(
    path: Path,
    arrays: Mapping[str, Array],
    port: Port,
    ports: Sequence[Port],
    *,
    bare: bool,
    inputs: Collection[str] = (),
) -> Array:
    """Return the array of a port, under the first of its keys that the file has.

    Args:
        path: of the file, for errors.
        arrays: of the file.
        port: an input or output.
        ports: all of its kind.
        bare: whether names without "inputs." are keys, too.
        inputs: names that inputs have, where the port is an output.
    """
    section = "inputs" if port.kind is PortKind.INPUT else "outputs"
    groups = [
        _keys(dict.fromkeys((name, in_c)), section, bare=bare, inputs=inputs)
        for name, in_c in ((port.name, port.c_name), *((a, c_name(a)) for a in port.aliases))
    ]
    keys, *_ = groups
    if len(ports) == 1:
        keys.insert(0, section)
    key = key_of(path, arrays, groups)
    if key is not None:
        return _places(path, port, arrays[key])
    raise DataFileError(
        f"it has no array for the {port.kind.value} '{port.name}'; it has: "
        + (", ".join(arrays) or "nothing"),
        where=str(path),
        legal=" or ".join(f"'{key}'" for key in keys),
    )


def _keys(names: Iterable[str], section: str, *, bare: bool, inputs: Collection[str]) -> list[str]:
    """Return the keys of a port's names; an output may have the name of an input and a number."""
    known = dict.fromkeys(names)
    known |= dict.fromkeys(n for name in names if (n := _NUMBER.sub("", name)) in inputs)
    return [*(f"{section}.{name}" for name in known), *(known if bare else ())]


def key_of(path: Path, arrays: Mapping[str, Array], groups: Iterable[Sequence[str]]) -> str | None:
    """Return the key that a file has of a tensor; None if it has none.

    Args:
        path: of the file, for errors.
        arrays: of the file.
        groups: keys in order, for each name of the tensor: its own, then aliases.

    Raises:
        DataFileError: the file has arrays under two of the names.
    """
    known = [key for keys in groups for key in [k for k in keys if k in arrays][:1]]
    if len(known) > 1:
        raise DataFileError(
            f"'{known[0]}' and '{known[1]}' are two names of the same tensor",
            where=str(path),
            legal="only one array, with either name",
        )
    return known[0] if known else None


def _places(path: Path, port: Port, array: Array) -> Array:
    """Return strings, where a port has names, as places in them; all else as it is."""
    if not port.names or array.dtype.kind != "U":
        return array
    known = {name: place for place, name in enumerate(port.names)}
    flat: list[str] = array.reshape(-1).tolist()
    unknown = next((text for text in flat if text not in known), None)
    if unknown is not None:
        raise RunError(
            f"'{port.name}' has {brief(repr(unknown))}, which the model never outputs",
            where=str(path),
            legal=brief(", ".join(map(repr, port.names))),
        )
    places = [known[text] for text in flat]
    return np.array(places, port.type.dtype.value).reshape(array.shape)


def _check_dtype(path: Path, port: Port, array: Array) -> None:
    expected = port.type.dtype.value
    if array.dtype == expected:
        return
    quantization = port.type.quantization
    fix = f"store it with .astype('{expected}')"
    if array.dtype.kind == "f" and quantization is not None and not quantization.is_per_channel:
        fix = (
            f"quantise it: round(x / {quantization.scale:.9g}) + {quantization.zero_point}, "
            f"clipped to {expected}"
        )
    raise RunError(
        f"'{port.name}' has the type {array.dtype}", where=str(path), legal=expected, fix=fix
    )
