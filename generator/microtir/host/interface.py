"""Says how the functions of an artifact take their arguments."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from microtir.artifact import Artifact, Metadata
from microtir.config.enums import CallingConvention
from microtir.host.tensors import Array, aligned

_ELEMENTS = {"i": 0, "u": 1, "f": 2, "b": 3}  # enum microtir_element, by numpy's kind


@dataclass(frozen=True, slots=True)
class Interface:
    """The facts about an artifact's functions that a caller needs besides the header.

    Args:
        is_packed: whether arguments are packed, and functions found by name.
        extra: what follows the other arguments of a run: the file of constants, or pools of
            them.
        alignments: of each of `extra`, in bytes.
        has_nodes: whether a run tells of the nodes of its graph.
        device_count: devices that a run is given; their drivers get NULL for the state.
        count: how many entries of its batch a run is told of: all; 0 where it is not told.
        has_guard: whether a run is given a place for counts of elements.
    """

    is_packed: bool = False
    extra: tuple[Array, ...] = ()
    alignments: tuple[int, ...] = ()
    device_count: int = 0
    has_nodes: bool = False
    count: int = 0
    has_guard: bool = False


def interface_of(artifact: Artifact) -> Interface:
    """Return the interface of an artifact's functions."""
    config = artifact.module.require_config("host")
    alignments = constant_alignments(artifact.metadata)
    files = {file.path: file.content for file in artifact.data}
    extra = []
    for path, alignment in alignments:
        content = files[path] if path else b""
        extra.append(aligned(len(content), alignment, 0))
        extra[-1][:] = np.frombuffer(content, np.uint8)
    packed = config.entry_calling_convention() is CallingConvention.PACKED
    is_model = artifact.metadata.model is not None
    has_nodes = is_model and config.runs_observed()
    return Interface(
        is_packed=packed,
        extra=tuple(extra),
        alignments=tuple(alignment for _, alignment in alignments),
        device_count=len(artifact.metadata.devices),
        has_nodes=has_nodes,
        count=artifact.metadata.images if is_model and config.executor.batch_count else 0,
        has_guard=is_model and config.executor.guard_inputs,
    )


def constant_alignments(metadata: Metadata) -> list[tuple[str | None, int]]:
    """Return the constants that a run is given, in the order of its arguments: file and alignment.

    There is no file for a pool that holds nothing.
    """
    parameters = metadata.parameters
    if parameters is not None:
        return [(parameters.file, parameters.alignment)]
    pools = metadata.constant_pools
    return [(pool.file, pool.alignment) for pool in pools if not pool.is_internal]


@dataclass(frozen=True, slots=True)
class PackedCall:
    """The arguments of a packed function as templates/host/packed.h takes them."""

    ranks: tuple[int, ...]
    numbers: tuple[int, ...]
    types: tuple[int, ...]


def packed_call(arguments: Sequence[Array | int]) -> PackedCall:
    """Describe arguments: extents and types of tensors, values of integers."""
    ranks: list[int] = []
    numbers: list[int] = []
    types: list[int] = []
    for argument in arguments:
        if isinstance(argument, int):
            ranks.append(-1)
            numbers.append(argument)
            types += [0, 64]
        else:
            ranks.append(argument.ndim)
            numbers += argument.shape
            types += [_ELEMENTS[argument.dtype.kind], argument.dtype.itemsize * 8]
    return PackedCall(tuple(ranks), tuple(numbers), tuple(types))
