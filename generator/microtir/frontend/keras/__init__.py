"""Keras files into the graph IR."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from microtir.config import PassConfig
from microtir.errors import MicrotirError
from microtir.frontend.keras.archive import open_archive
from microtir.frontend.keras.graph import KerasGraph
from microtir.frontend.model_bytes import ModelBytes, ModelSource, load, summary
from microtir.frontend.onnx.counted_extent import check_counted_extent
from microtir.frontend.onnx.shapes import InputShapes
from microtir.graph.ir import Graph
from microtir.module.ir_module import IRModule
from microtir.rewrite.extra_passes import GraphFunction
from microtir.rewrite.imports import ONNX_PASSES, read
from microtir.support.arguments import checked_arguments


@checked_arguments
def from_keras(
    source: ModelSource,
    *,
    name: str | None = None,
    dims: Mapping[str, int | range] | None = None,
    input_shapes: Mapping[str, Sequence[int | range]] | None = None,
    pass_config: PassConfig | None = None,
    after: Mapping[str, Sequence[GraphFunction]] | None = None,
) -> IRModule:
    """Read a model of Keras 3 (.keras), or one HDF5 file of Keras 2 or 3 (.h5).

    Needs the package `h5py`, and neither Keras nor TensorFlow.  A batch that the file leaves open
    is 1, unless it is given.

    Args:
        source: path of the file, or its bytes.
        name: of the graph; by default the file's name without its suffix, "model" for bytes.
        dims: extents that the file leaves open: "batch", and each other one by the name of its
            input and the axis, such as "audio_1".
        input_shapes: shapes of inputs, by name.
        pass_config: options of the passes over the graph, such as `tir.verify_each_pass`.
        after: functions of the user, by the name of the pass behind which they run.

    Returns:
        A module with a graph and no configuration.

    Raises:
        ToolError: the package `h5py` is not installed.
        ModelFileError: the file is missing, unreadable, damaged or contradicts itself.
        UnsupportedModelError: with all `problems` that `check_keras` would return.
        UsageError: a shape contradicts the file.
    """
    model = load(source)
    shapes = InputShapes(dims or {}, input_shapes or {})
    graph, problems = _read(model, shapes, model.stem if name is None else name)
    if problems:
        raise summary(model, problems)
    return IRModule(graph=read(graph, ONNX_PASSES, pass_config, after))


@checked_arguments
def check_keras(
    source: ModelSource,
    *,
    dims: Mapping[str, int | range] | None = None,
    input_shapes: Mapping[str, Sequence[int | range]] | None = None,
) -> tuple[MicrotirError, ...]:
    """Return every problem that keeps `from_keras` from reading a model.

    Empty if there is none.
    """
    try:
        _, problems = _read(load(source), InputShapes(dims or {}, input_shapes or {}), "")
    except MicrotirError as error:
        return (error,)
    return tuple(problems)


def _read(model: ModelBytes, shapes: InputShapes, name: str) -> tuple[Graph, list[MicrotirError]]:
    """Return the graph of a model as its readers make it, and its problems."""
    archive = open_archive(model.data, model.file)

    def read_with(extents: InputShapes) -> tuple[Graph, list[MicrotirError]]:
        reader = KerasGraph(archive, extents)
        return reader.graph(name), reader.problems

    graph, problems = read_with(shapes)
    if not problems:
        check_counted_extent(graph, shapes, read_with)
    return graph, problems
