"""PyTorch programs, as `torch.export.save` writes them, into the graph IR."""

from __future__ import annotations

import hashlib
import io
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from microtir.config import PassConfig
from microtir.errors import MicrotirError, UsageError
from microtir.frontend.model_bytes import ModelBytes, load, summary
from microtir.frontend.onnx.counted_extent import check_counted_extent
from microtir.frontend.onnx.open_extents import with_example
from microtir.frontend.onnx.shapes import InputShapes
from microtir.frontend.torch.archive import open_archive
from microtir.frontend.torch.graph import GraphReader
from microtir.frontend.torch.input_sizes import check_ranges, file_values
from microtir.frontend.torch.program import read_program
from microtir.graph.ir import Graph
from microtir.module.ir_module import IRModule
from microtir.rewrite.extra_passes import GraphFunction
from microtir.rewrite.imports import ONNX_PASSES, read
from microtir.support.arguments import checked_arguments


@checked_arguments
def from_torch(
    source: object,
    *,
    name: str | None = None,
    dims: Mapping[str, int | range] | None = None,
    input_shapes: Mapping[str, Sequence[int | range]] | None = None,
    pass_config: PassConfig | None = None,
    after: Mapping[str, Sequence[GraphFunction]] | None = None,
) -> IRModule:
    """Read a PyTorch program.

    Nothing in the file is run, and PyTorch is not needed. A buffer that the program writes to
    becomes a state.

    Args:
        source: path of an archive that `torch.export.save` wrote, its bytes, or what
            `torch.export.export` returned.
        name: of the graph; by default the file's name without its suffix, else "model".
        dims: extents of sizes that the program leaves open, by their symbols ("s77"). A range is
            for the batch, as `from_onnx` has it.
        input_shapes: shapes of inputs, by name; one extent of all may be a range, too.
        pass_config: options of the passes over the graph, such as `tir.verify_each_pass`.
        after: functions of the user, by the name of the pass behind which they run.

    Returns:
        A module with a graph and no configuration.

    Raises:
        ModelFileError: the file is missing, unreadable, damaged or contradicts itself.
        UnsupportedModelError: with all `problems` that `check_torch` would return.
        UsageError: a shape contradicts the file, or the source is nothing that can be read.
    """
    model = _load(source)
    shapes = InputShapes(dims or {}, input_shapes or {})
    graph, problems = _read(model, shapes, name, _path(source))
    if problems:
        raise summary(model, problems)
    return IRModule(graph=read(graph, ONNX_PASSES, pass_config, after))


@checked_arguments
def check_torch(
    source: object,
    *,
    dims: Mapping[str, int | range] | None = None,
    input_shapes: Mapping[str, Sequence[int | range]] | None = None,
) -> tuple[MicrotirError, ...]:
    """Return every problem that keeps `from_torch` from reading a model.

    Empty if there is none.
    """
    try:
        shapes = InputShapes(dims or {}, input_shapes or {})
        _, problems = _read(_load(source), shapes, None, _path(source))
    except MicrotirError as error:
        return (error,)
    return tuple(problems)


def _read(
    model: ModelBytes, shapes: InputShapes, name: str | None, path: str
) -> tuple[Graph, list[MicrotirError]]:
    """Return the graph of a model as its readers make it, and its problems."""
    archive = open_archive(model.data, model.file)
    program = read_program(archive.program())
    sha256 = hashlib.sha256(model.data).hexdigest()
    title = model.stem if name is None else name

    def read_with(shapes: InputShapes) -> tuple[Graph, list[MicrotirError]]:
        reader = GraphReader(program, archive.anew(), shapes)
        return reader.graph(title, sha256, len(model.data)), reader.problems

    reader = GraphReader(program, archive, shapes)
    graph, problems = reader.graph(title, sha256, len(model.data)), reader.problems
    check_ranges(program, reader.symbols, model.file)
    if problems:
        inputs = [value for value, _ in file_values(program, model.file)]
        return graph, with_example(
            problems, inputs, shapes, read_with, model=path, reader="from_torch"
        )
    check_counted_extent(graph, shapes, read_with)
    return graph, problems


def _path(source: object) -> str:
    return str(source) if isinstance(source, str | Path) else "MODEL"


def _load(source: object) -> ModelBytes:
    """Return the bytes of an archive; a program that is in memory is saved first.

    Raises:
        ModelFileError: the file cannot be read.
        UsageError: it is neither a file nor a program.
    """
    if isinstance(source, str | Path | bytes | bytearray | memoryview):
        return load(source)
    torch = sys.modules.get("torch")
    if torch is None or not isinstance(source, torch.export.ExportedProgram):
        raise UsageError(
            f"the source is of the type {type(source).__name__}",
            where="from_torch",
            legal="a path, bytes, or a torch.export.ExportedProgram",
            fix="pass torch.export.export(model.eval(), inputs)",
        )
    stream = io.BytesIO()
    torch.export.save(source, stream)
    return ModelBytes(stream.getvalue(), "model", "model")
