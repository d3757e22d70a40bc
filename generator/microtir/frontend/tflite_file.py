"""The content of a TFLite file as plain records: what the tables say, not yet what it means.

Everything that can be wrong with the file as a container is found here: offsets, indices, lengths,
extents.  Whether microtir can do what the file asks for is the business of later steps.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TypeVar

from microtir.errors import MicrotirError, ModelFileError
from microtir.frontend.file_kinds import refuse_other_kind
from microtir.frontend.flatbuffer import FlatBuffer, FlatbufferTable, ScalarType
from microtir.frontend.model_bytes import ModelBytes
from microtir.frontend.tflite_metadata import planned_offsets
from microtir.frontend.tflite_sparsity import FileSparsity, read_sparsity
from microtir.graph.names import brief

SCHEMA_VERSION = 3
FILE_IDENTIFIER = b"TFL3"

OPTIONAL = -1
"""Index of an optional input that is left out."""

MAX_ITEMS = 1 << 16
"""Most tensors or operators; each becomes Python objects far larger than its bytes in the file."""

MAX_TENSOR_BYTES = (1 << 31) - 1
"""Largest tensor, in bytes: generated code indexes with 32-bit integers."""

MAX_RANK = 6

_CUSTOM = 32
_PORTS = ("inputs", "outputs")  # the first fields of a signature
_MOST_DAMAGE = 50


@dataclass(frozen=True, slots=True)
class FileQuantization:
    """Quantisation as stored; empty scales mean none."""

    scales: tuple[float, ...]
    zero_points: tuple[int, ...]
    axis: int
    is_custom: bool


@dataclass(frozen=True, slots=True)
class FileTensor:
    """A tensor; `type` is the format's number, `data` a view into the file or None."""

    index: int
    name: str
    shape: tuple[int, ...]
    type: int
    buffer: int
    data: memoryview | None
    quantization: FileQuantization
    signature: tuple[int, ...]
    is_variable: bool
    sparsity: FileSparsity | None
    is_readable: bool = True

    @property
    def label(self) -> str:
        return f"tensor {self.index} {brief(self.name)!r}"


@dataclass(frozen=True, slots=True)
class FileOperator:
    """An operator; `options` is None where the file stores no option table."""

    index: int
    code: int
    custom_name: str
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    options_type: int
    options: FlatbufferTable | None
    custom_options: bytes = b""


@dataclass(frozen=True, slots=True)
class FileGraph:
    """One subgraph of a file: the program itself, a branch, or the body of a loop.

    `damage` says what of it cannot be read: a tensor leaves an empty record, an operator none.
    """

    file: str
    name: str
    tensors: tuple[FileTensor, ...]
    operators: tuple[FileOperator, ...]
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    damage: tuple[MicrotirError, ...] = ()
    offsets: tuple[int, ...] = ()  # of each tensor in memory, as the file's metadata has it; or -1


@dataclass(frozen=True, slots=True)
class FileSignature:
    """A name for a subgraph, by which callers ask for it.

    `inputs` and `outputs` are the names of its ports, each with the index of a tensor, which need
    not exist.
    """

    key: str
    graph: int
    inputs: tuple[tuple[int, str], ...] = ()
    outputs: tuple[tuple[int, str], ...] = ()


@dataclass(frozen=True, slots=True)
class ModelFile:
    """A whole file; operators name subgraphs by their number."""

    file: str
    sha256: str
    size: int
    graphs: tuple[FileGraph, ...]
    signatures: tuple[FileSignature, ...] = ()


def parse(model: ModelBytes) -> ModelFile:
    """Read all tables of a model; what is damaged is noted in the record.

    Raises:
        ModelFileError: the bytes are not a TFLite model, or nothing of it can be read.
    """
    if not model.data:
        raise ModelFileError(
            "the file is empty",
            where=model.file,
            legal="a TFLite model",
            fix="export or download the model again",
        )
    if model.data[4:8] != FILE_IDENTIFIER:
        refuse_other_kind(model.data, model.file)
    buffer = FlatBuffer(model.data, model.file)
    root = buffer.root("model table")
    version = root.scalar(0, ScalarType.UINT32)
    if version != SCHEMA_VERSION:
        raise ModelFileError(
            f"the schema version is {version}",
            where=model.file,
            legal=str(SCHEMA_VERSION),
            fix="convert the model with a current TFLite converter",
        )
    if not root.count(2):
        raise buffer.malformed("model table", "the model has no subgraph")
    codes = [_code(root, index) for index in range(_count(root, 1, "operator codes"))]
    numbers = range(_count(root, 2, "subgraphs"))
    graphs = [_graph(root, index, codes, model.file) for index in numbers]
    return ModelFile(
        file=model.file,
        sha256=hashlib.sha256(model.data).hexdigest(),
        size=len(model.data),
        graphs=tuple(_with_offsets(graphs, planned_offsets(root))),
        signatures=tuple(_signatures(root)),
    )


def _graph(
    root: FlatbufferTable, index: int, codes: Sequence[tuple[int, str]], file: str
) -> FileGraph:
    """Read a subgraph; what is damaged in it matters where it is used."""
    graph = root.item(2, index, f"subgraph {index}")
    damage: list[MicrotirError] = []
    tensors = tuple(_tensors(root, graph, damage))
    operators = tuple(_operators(graph, codes, len(tensors), damage))
    nothing: tuple[int, ...] = ()
    inputs, outputs = (
        _noted(root.buffer, damage, nothing, partial(_indices, graph, slot, noun, len(tensors)))
        for slot, noun in ((1, "inputs"), (2, "outputs"))
    )
    return FileGraph(
        file=file,
        name=graph.string(4),
        tensors=tensors,
        operators=tuple(operator for operator in operators if operator is not None),
        inputs=inputs,
        outputs=outputs,
        damage=tuple(damage),
    )


def _with_offsets(graphs: Sequence[FileGraph], offsets: Sequence[int]) -> Iterator[FileGraph]:
    """Yield subgraphs with the places of their tensors, if there is one for each of the file."""
    if len(offsets) != sum(len(graph.tensors) for graph in graphs):
        yield from graphs
        return
    at = 0
    for graph in graphs:
        yield replace(graph, offsets=tuple(offsets[at : at + len(graph.tensors)]))
        at += len(graph.tensors)


def _signatures(root: FlatbufferTable) -> Iterator[FileSignature]:
    for index in range(_count(root, 7, "signatures")):
        table = root.item(7, index, f"signature {index}")
        graph = table.scalar(4, ScalarType.UINT32)
        if graph >= root.count(2):
            raise table.buffer.malformed(
                table.where, f"it names subgraph {graph}; there are {root.count(2)}"
            )
        inputs, outputs = (_port_names(table, n, noun) for n, noun in enumerate(_PORTS))
        yield FileSignature(table.string(2), graph, tuple(inputs), tuple(outputs))


def _port_names(signature: FlatbufferTable, slot: int, noun: str) -> Iterator[tuple[int, str]]:
    """Yield indices of tensors with their names in a signature."""
    for index in range(_count(signature, slot, noun)):
        port = signature.item(slot, index, f"{signature.where}, {noun}")
        yield port.scalar(1, ScalarType.UINT32), port.string(0)


_RecordT = TypeVar("_RecordT")


def _noted(
    buffer: FlatBuffer, damage: list[MicrotirError], instead: _RecordT,
    read: Callable[[], _RecordT],
) -> _RecordT:  # fmt: skip
    """Return what `read` gives; `instead` where it finds damage, which is noted.

    The damage of thousands of records says no more than that of some.
    """
    if len(damage) > _MOST_DAMAGE:
        return instead
    try:
        return read()
    except ModelFileError as error:
        if buffer.is_spent:
            raise
        enough = len(damage) == _MOST_DAMAGE
        damage.append(
            ModelFileError(
                f"more than {_MOST_DAMAGE} parts of the file are damaged; the rest was not read",
                where=error.where,
                fix=error.fix,
            )
            if enough
            else error
        )
        return instead


def _count(table: FlatbufferTable, slot: int, noun: str) -> int:
    count = table.count(slot)
    if count > MAX_ITEMS:
        raise table.buffer.malformed(
            table.where, f"{count} {noun} are more than the {MAX_ITEMS} that microtir reads"
        )
    return count


def _indices(
    table: FlatbufferTable, slot: int, noun: str, tensors: int, optional: bool = False
) -> tuple[int, ...]:
    """Return a vector of tensor indices, checked."""
    indices = table.numbers(slot, "i4")
    low = OPTIONAL if optional else 0
    for index in indices:
        if not low <= index < tensors:
            raise table.buffer.malformed(
                table.where, f"{noun} refer to tensor {index}; there are {tensors} tensors"
            )
    return indices


def _tensors(
    root: FlatbufferTable, graph: FlatbufferTable, damage: list[MicrotirError]
) -> Iterator[FileTensor]:
    none = FileQuantization((), (), 0, False)
    for index in range(_count(graph, 0, "tensors")):
        unread = FileTensor(index, "", (), -1, 0, None, none, (), False, None, is_readable=False)
        yield _noted(root.buffer, damage, unread, partial(_tensor, root, graph, index))


def _tensor(root: FlatbufferTable, graph: FlatbufferTable, index: int) -> FileTensor:
    where = f"tensor {index}"
    table = graph.item(0, index, where)
    name = table.string(3)
    table.where = where = f"tensor {index} {brief(name)!r}"
    shape = table.numbers(0, "i4")
    signature = table.numbers(7, "i4")
    _check_extents(table, shape)
    data = _data(root, table.scalar(2, ScalarType.UINT32), where)
    sparsity = read_sparsity(table.table(6, where), where)
    if sparsity is not None and data is None:  # all elements are zero
        data = memoryview(b"")
    return FileTensor(
        index=index,
        name=name,
        shape=shape,
        type=table.scalar(1, ScalarType.INT8),
        buffer=table.scalar(2, ScalarType.UINT32),
        data=data,
        quantization=_quantization(table.table(4, where)),
        signature=signature,
        is_variable=table.scalar(5, ScalarType.BOOL, False),
        sparsity=sparsity,
    )


def _check_extents(table: FlatbufferTable, shape: tuple[int, ...]) -> None:
    if len(shape) > MAX_RANK:
        raise table.buffer.malformed(
            table.where, f"{len(shape)} dimensions are more than the {MAX_RANK} that microtir reads"
        )
    # An extent of 0 hides the others from the product, and numpy counts without it, too.
    if min(shape, default=0) < 0 or math.prod(filter(None, shape)) > MAX_TENSOR_BYTES:
        raise table.buffer.malformed(table.where, f"the shape {shape} is not possible")


def _data(root: FlatbufferTable, index: int, where: str) -> memoryview | None:
    """Return a view of buffer `index`; None for an empty one, which marks an activation."""
    # Writers leave out the vector of buffers, or point beyond it, for no tensor that holds data.
    if index == 0 and not root.count(4):
        return None
    if index >= root.count(4):
        raise root.buffer.malformed(
            where, f"data is in buffer {index}; there are {root.count(4)} buffers"
        )
    buffer = root.item(4, index, f"buffer {index} of {where}")
    offset, size = buffer.scalar(1, ScalarType.UINT64), buffer.scalar(2, ScalarType.UINT64)
    # Files over 2 GB keep data behind the FlatBuffer; offset 0 and 1 mean that this one does not.
    if offset > 1:
        return root.buffer.span(offset, size, where) if size else None
    return buffer.raw(0) or None


def _quantization(table: FlatbufferTable | None) -> FileQuantization:
    if table is None:
        return FileQuantization((), (), 0, False)
    return FileQuantization(
        scales=table.numbers(2, "f4"),
        zero_points=table.numbers(3, "i8"),
        axis=table.scalar(6, ScalarType.INT32),
        is_custom=table.scalar(4, ScalarType.UINT8) != 0,
    )


def _operators(
    graph: FlatbufferTable, codes: Sequence[tuple[int, str]], tensors: int,
    damage: list[MicrotirError],
) -> Iterator[FileOperator | None]:  # fmt: skip
    for index in range(_count(graph, 3, "operators")):
        read = partial(_operator, graph, index, codes, tensors)
        yield _noted(graph.buffer, damage, None, read)


def _operator(
    graph: FlatbufferTable, index: int, codes: Sequence[tuple[int, str]], tensors: int
) -> FileOperator | None:
    where = f"operator {index}"
    table = graph.item(3, index, where)
    code_index = table.scalar(0, ScalarType.UINT32)
    if code_index >= len(codes):
        raise table.buffer.malformed(
            where, f"its operator code is {code_index}; there are {len(codes)} codes"
        )
    code, custom_name = codes[code_index]
    return FileOperator(
        index=index,
        code=code,
        custom_name=custom_name,
        inputs=_indices(table, 1, "inputs", tensors, optional=True),
        outputs=_indices(table, 2, "outputs", tensors),
        options_type=table.scalar(3, ScalarType.UINT8),
        options=table.table(4, f"{where} options"),
        custom_options=bytes(table.raw(5) or b""),
    )


def _code(root: FlatbufferTable, index: int) -> tuple[int, str]:
    """Return an operator code and the name of a custom operator."""
    table = root.item(1, index, f"operator code {index}")
    # The code was one byte once; both fields are stored now, and the larger is the real one.
    code = max(table.scalar(0, ScalarType.INT8), table.scalar(3, ScalarType.INT32))
    if code < 0:
        raise table.buffer.malformed(table.where, f"the number {code} is not an operator")
    return code, table.string(1) if code == _CUSTOM else ""


def dataflow_damage(
    graph: FileGraph, *, is_model: bool = True, scratch: Collection[int] = ()
) -> Iterator[ModelFileError]:
    """Yield damage for each tensor that is not made exactly once before it is used.

    Nothing is said where parts of the file cannot be read: they may have made the tensor.

    Args:
        graph: of the file.
        is_model: whether callers run it, so that it takes and gives something; what only operators
            run may do without.
        scratch: tensors that hold nothing before an operator works in them.
    """
    if graph.damage:
        return
    known: dict[int, str] = dict.fromkeys(scratch, "is scratch memory")
    for noun, indices in (("input", graph.inputs), ("output", graph.outputs)):
        if not indices and is_model:
            yield _disorder(graph, f"{noun}s", f"the model has no {noun}s")
    if len(set(graph.inputs)) < len(graph.inputs):
        yield _disorder(graph, "inputs", f"a tensor is listed twice in {graph.inputs}")
    for tensor in graph.tensors:
        if tensor.data is not None:
            known[tensor.index] = "has stored data"
    for index in graph.inputs:
        yield from _defined(graph, known, index, "inputs", "is an input of the model")
    for operator in graph.operators:
        where = f"operator {operator.index}"
        for index in operator.inputs:
            if index != OPTIONAL and index not in known and not _needs_no_maker(graph, index):
                label = graph.tensors[index].label
                yield _disorder(graph, where, f"it uses {label}, which no earlier operator makes")
        for index in operator.outputs:
            how = f"is made by operator {operator.index}"
            yield from _defined(graph, known, index, where, how)
    for index in graph.outputs:
        if index not in known:
            label = graph.tensors[index].label
            yield _disorder(graph, "outputs", f"no operator makes {label}")


def _defined(
    graph: FileGraph, known: dict[int, str], index: int, where: str, how: str
) -> Iterator[ModelFileError]:
    if index in known:
        yield _disorder(graph, where, f"{graph.tensors[index].label} {known[index]} already")
    known[index] = how


def _needs_no_maker(graph: FileGraph, index: int) -> bool:
    """Return variables, which hold something from the start, and constants without elements."""
    tensor = graph.tensors[index]
    return tensor.is_variable or 0 in tensor.shape


def _disorder(graph: FileGraph, where: str, what: str) -> ModelFileError:
    return ModelFileError(
        what,
        where=f"{graph.file}: {where}",
        legal="each tensor is computed once, before it is used",
        fix="export the model again",
    )
