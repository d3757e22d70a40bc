"""Values of a model that lie in another file: that of its own folder, and no other one."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from microtir.errors import ModelFileError
from microtir.frontend.onnx.inner_graphs import graphs_in
from microtir.graph.names import brief

if TYPE_CHECKING:
    import onnx

MAX_EXTERNAL_BYTES = 1 << 30
"""Limit for all external tensors together; holes of a file take memory, though no disk."""

_KEEP = (
    "keep the file of external data beside the model, and pass the path of the model; or write one "
    'file: onnx.save(onnx.load("MODEL"), "whole.onnx")'
)


def take_in_all(model: onnx.ModelProto, folder: Path | None, file: str) -> None:
    """Give all tensors of a model the bytes that lie in other files, wherever they stand.

    Args:
        model: with its graph, the graphs inside of nodes, and its functions.
        folder: that of the model; None where bytes were given and no path.
        file: its name, for errors.

    Raises:
        ModelFileError: a file is not in the folder, cannot be read, or is not as long as the
            shapes of its tensors say.
    """
    places = [
        _place(tensor, folder, f"{file}: tensor {brief(tensor.name)!r}")
        for tensor in _tensors_of_model(model)
        if tensor.data_location == tensor.EXTERNAL
    ]
    total = sum(place.length for place in places)
    if total > MAX_EXTERNAL_BYTES:
        raise ModelFileError(
            f"the model has {total} bytes of tensors in other files",
            where=file,
            legal=f"at most {MAX_EXTERNAL_BYTES}",
            fix="export a smaller model",
        )
    for place in places:
        place.tensor.raw_data = place.read()
        place.tensor.ClearField("external_data")
        place.tensor.ClearField("data_location")


@dataclass(frozen=True, slots=True)
class _Place:
    """The place of a tensor's values in another file; `where` is the tensor in words."""

    tensor: onnx.TensorProto
    path: Path
    offset: int
    length: int
    where: str

    def read(self) -> bytes:
        """Return the values.

        Raises:
            ModelFileError: the file cannot be read, or ends before.
        """
        location = brief(self.path.name)
        try:
            with self.path.open("rb") as stream:
                stream.seek(self.offset)
                data = stream.read(self.length)
        except (OSError, ValueError, OverflowError) as error:
            reason = getattr(error, "strerror", None) or str(error)
            raise ModelFileError(
                f"its values lie in {location!r}, which cannot be read: {reason.lower()}",
                where=self.where,
                fix=_KEEP,
            ) from None
        if len(data) < self.length:
            raise ModelFileError(
                f"its values begin at byte {self.offset} of {location!r}, where only {len(data)}"
                " bytes are left",
                where=self.where,
                legal=f"{self.length} bytes from there",
                fix=_KEEP,
            )
        return data


def _tensors_of_model(model: onnx.ModelProto) -> Iterator[onnx.TensorProto]:
    yield from _tensors_of_graph(model.graph)
    for function in model.functions:
        yield from _tensors_of_nodes(function.node)
        yield from _tensors_of_attributes(function.attribute_proto)


def _tensors_of_graph(graph: onnx.GraphProto) -> Iterator[onnx.TensorProto]:
    yield from graph.initializer
    for sparse in graph.sparse_initializer:
        yield from (sparse.values, sparse.indices)
    yield from _tensors_of_nodes(graph.node)


def _tensors_of_nodes(nodes: Iterable[onnx.NodeProto]) -> Iterator[onnx.TensorProto]:
    for node in nodes:
        yield from _tensors_of_attributes(node.attribute)
        for graph in graphs_in(node):
            yield from _tensors_of_graph(graph)


def _tensors_of_attributes(
    attributes: Iterable[onnx.AttributeProto],
) -> Iterator[onnx.TensorProto]:
    for attribute in attributes:
        if attribute.HasField("t"):
            yield attribute.t
        yield from attribute.tensors
        if attribute.HasField("sparse_tensor"):
            yield from (attribute.sparse_tensor.values, attribute.sparse_tensor.indices)
        for sparse in attribute.sparse_tensors:
            yield from (sparse.values, sparse.indices)


def _place(tensor: onnx.TensorProto, folder: Path | None, where: str) -> _Place:
    """Return where the values of a tensor lie, of which the shape says how many there are."""
    entries = {entry.key: entry.value for entry in tensor.external_data}
    location = brief(entries.get("location", ""))
    place = _range_of_file(entries, folder)
    if place is None:
        raise ModelFileError(
            f"its values lie in {location!r}",
            where=where,
            legal="a file in the folder of the model",
            fix=_KEEP,
        )
    path, offset, length = place
    needed = _bytes_of(tensor)
    if needed is None or length not in (None, needed):
        raise ModelFileError(
            f"its shape is {brief(str(tuple(tensor.dims)))}, and its values take"
            f" {'an unknown number of' if length is None else length} bytes of {location!r}",
            where=where,
            legal="the number of bytes of the shape" if needed is None else f"{needed} bytes",
            fix="export the model again",
        )
    return _Place(tensor, path, offset, needed, where)


def _range_of_file(
    entries: Mapping[str, str], folder: Path | None
) -> tuple[Path, int, int | None] | None:
    """Return file, offset and length, which may be left out; None if that is no file or number."""
    if folder is None:
        return None
    try:
        folder = folder.resolve()
        path = (folder / entries.get("location", "")).resolve()
        offset, length = int(entries.get("offset", 0)), int(entries.get("length", 0))
        is_file = path.is_relative_to(folder) and path.is_file()
    except (ValueError, OSError, RuntimeError):
        return None
    return (path, offset, length or None) if is_file and offset >= 0 else None


def _bytes_of(tensor: onnx.TensorProto) -> int | None:
    """Return how many bytes the values of a tensor have; None if its type or shape is none."""
    from onnx import TensorProto, helper

    elements: int = math.prod(tensor.dims)
    if min(tensor.dims, default=0) < 0 or tensor.data_type == TensorProto.STRING:
        return None
    try:
        name = TensorProto.DataType.Name(tensor.data_type)
        bits = next((n for kinds, n in _FEWER_BITS.items() if name.startswith(kinds)), None)
        if bits is not None:
            return -(-elements * bits // 8)
        return elements * int(helper.tensor_dtype_to_np_dtype(tensor.data_type).itemsize)
    except (KeyError, ValueError, TypeError):
        return None


_FEWER_BITS: Mapping[tuple[str, ...], int] = {
    ("UINT4", "INT4", "FLOAT4"): 4,
    ("UINT2", "INT2"): 2,
}
"""Bits of packed types, by what their names begin with."""
