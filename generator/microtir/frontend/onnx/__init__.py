"""ONNX files into the graph IR."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import takewhile
from pathlib import Path

from microtir.config import PassConfig
from microtir.errors import MicrotirError
from microtir.frontend.model_bytes import ModelSource, load, summary
from microtir.frontend.onnx.counted_extent import ReadWith, check_counted_extent
from microtir.frontend.onnx.exporters import with_exporters_option
from microtir.frontend.onnx.file import OnnxFile, parse
from microtir.frontend.onnx.graph import GraphReader
from microtir.frontend.onnx.open_extents import with_example
from microtir.frontend.onnx.shapes import InputShapes
from microtir.graph.ir import Graph
from microtir.module.ir_module import IRModule
from microtir.rewrite.checked import rewritten
from microtir.rewrite.extra_passes import GraphFunction
from microtir.rewrite.imports import ONNX_PASSES, read
from microtir.rewrite.imports.float_layers import FloatLayer
from microtir.rewrite.imports.fuse_quantised import FuseQuantised, float_layers
from microtir.support.arguments import checked_arguments


@checked_arguments
def from_onnx(
    source: ModelSource,
    *,
    name: str | None = None,
    dims: Mapping[str, int | range] | None = None,
    input_shapes: Mapping[str, Sequence[int | range]] | None = None,
    pass_config: PassConfig | None = None,
    after: Mapping[str, Sequence[GraphFunction]] | None = None,
) -> IRModule:
    """Read an ONNX model.

    Needs the package `onnx`. A first dimension of an input that the file leaves open is a batch of
    1, unless it is given.

    Args:
        source: path of the file, or its bytes.
        name: of the graph; by default the file's name without its suffix, "model" for bytes.
        dims: extents of dimensions that the file gives a name. A range is for the batch, or
            another dimension with extents of 1 alone in front of it: the model is read with its
            most, and compiled with the option `batch-count` each run is told how many entries
            there are.
        input_shapes: shapes of inputs, by name; one extent of all may be a range, too.
        pass_config: options of the passes over the graph, such as `tir.verify_each_pass`.
        after: functions of the user, by the name of the pass behind which they run.

    Returns:
        A module with a graph and no configuration.

    Raises:
        ToolError: the package `onnx` is not installed.
        ModelFileError: the file is missing, unreadable, damaged or contradicts itself.
        UnsupportedModelError: with all `problems` that `check_onnx` would return.
        UsageError: a shape contradicts the file.
    """
    model = load(source)
    folder = Path(source).parent if isinstance(source, str | Path) else None
    file = parse(model.data, model.file, folder)
    shapes = InputShapes(dims or {}, input_shapes or {})
    reader = GraphReader(file, shapes)
    graph = reader.graph(model.stem if name is None else name)
    if reader.problems:
        raise summary(model, _explained(reader, file, shapes, source))
    check_counted_extent(graph, shapes, _read_with(file, graph.name))
    return IRModule(graph=read(graph, ONNX_PASSES, pass_config, after))


@checked_arguments
def check_onnx(
    source: ModelSource,
    *,
    dims: Mapping[str, int | range] | None = None,
    input_shapes: Mapping[str, Sequence[int | range]] | None = None,
) -> tuple[MicrotirError, ...]:
    """Return every problem that keeps `from_onnx` from reading a model.

    Empty if there is none.
    """
    try:
        model = load(source)
        folder = Path(source).parent if isinstance(source, str | Path) else None
        file = parse(model.data, model.file, folder)
        shapes = InputShapes(dims or {}, input_shapes or {})
        reader = GraphReader(file, shapes)
        graph = reader.graph("")
        if not reader.problems:
            check_counted_extent(graph, shapes, _read_with(file, ""))
    except MicrotirError as error:
        return (error,)
    return tuple(_explained(reader, file, shapes, source))


def _explained(
    reader: GraphReader, file: OnnxFile, shapes: InputShapes, source: ModelSource
) -> list[MicrotirError]:
    """Return the problems of a model, with examples of open extents and options of exporters."""
    path = str(source) if isinstance(source, str | Path) else "MODEL"
    inputs, read_again = file.graph.inputs, _read_with(file, "")
    problems = with_example(reader.problems, inputs, shapes, read_again, model=path)
    return [with_exporters_option(problem, file.producer) for problem in problems]


def _read_with(file: OnnxFile, name: str) -> ReadWith:
    """Return what reads a file once more, with other shapes."""

    def read_again(shapes: InputShapes) -> tuple[Graph, Sequence[MicrotirError]]:
        reader = GraphReader(file, shapes)
        graph = reader.graph(name)
        return graph, reader.problems

    return read_again


def onnx_float_layers(
    source: ModelSource,
    *,
    dims: Mapping[str, int | range] | None = None,
    input_shapes: Mapping[str, Sequence[int | range]] | None = None,
) -> tuple[FloatLayer, ...]:
    """Return the layers between integers that a model which can be read computes in floats."""
    model = load(source)
    folder = Path(source).parent if isinstance(source, str | Path) else None
    file = parse(model.data, model.file, folder)
    graph = GraphReader(file, InputShapes(dims or {}, input_shapes or {})).graph("")
    before = takewhile(lambda graph_pass: graph_pass.name != FuseQuantised.name, ONNX_PASSES)
    return float_layers(rewritten(graph, tuple(before), PassConfig()))
