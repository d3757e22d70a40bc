"""Model files of any format that is read, told apart by what is in them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from microtir.config import PassConfig
from microtir.errors import Fix, MicrotirError, UsageError
from microtir.frontend import tflite
from microtir.frontend.file_kinds import ModelFormat, format_of
from microtir.frontend.keras import check_keras, from_keras
from microtir.frontend.model_bytes import ModelSource, load
from microtir.frontend.onnx import check_onnx, from_onnx, onnx_float_layers
from microtir.frontend.torch import check_torch, from_torch
from microtir.graph.ir import Graph
from microtir.graph.port_names import by_own_names
from microtir.graph.rewriting import GraphPass
from microtir.module.ir_module import IRModule
from microtir.rewrite.extra_passes import GraphFunction, refuse_unknown_passes
from microtir.rewrite.imports import ONNX_PASSES, READ_OPERATORS, TFLITE_PASSES
from microtir.rewrite.imports.float_layers import FloatLayer
from microtir.support.arguments import checked_arguments

_READERS = {
    ModelFormat.ONNX: (from_onnx, check_onnx),
    ModelFormat.KERAS: (from_keras, check_keras),
    ModelFormat.TORCH: (from_torch, check_torch),
}
"""Readers of models and of their problems, by the formats that may leave extents open."""


@checked_arguments
def read_model(
    source: ModelSource,
    *,
    name: str | None = None,
    signature: str | None = None,
    dims: Mapping[str, int | range] | None = None,
    input_shapes: Mapping[str, Sequence[int | range]] | None = None,
    pass_config: PassConfig | None = None,
    after: Mapping[str, Sequence[GraphFunction]] | None = None,
) -> IRModule:
    """Read a model, as `from_tflite`, `from_onnx`, `from_keras` and `from_torch` do.

    Args:
        source: path of the file, or its bytes.
        name: of the graph; by default the file's name without its suffix, "model" for bytes.
        signature: which program of a TFLite file is meant.
        dims: extents of dimensions that a file in ONNX, of Keras or PyTorch leaves open.
        input_shapes: shapes of inputs of such a file, by name.
        pass_config: options of the passes over the graph, such as `tir.verify_each_pass`.
        after: functions of the user, by the name of the pass behind which they run; those of
            passes of another format do not.

    Raises:
        MicrotirError: the file cannot be read, is damaged or not supported, or has no signatures,
            or shapes of its own.
    """
    format_ = _format(source, signature, dims)
    if format_ is not ModelFormat.TFLITE:
        return _READERS[format_][0](
            source, name=name, dims=dims, input_shapes=input_shapes, pass_config=pass_config,
            after=_of_passes(after, ONNX_PASSES),
        )  # fmt: skip
    module = tflite.from_tflite(
        source, name=name, signature=signature, pass_config=pass_config,
        after=_of_passes(after, TFLITE_PASSES),
    )  # fmt: skip
    assert module.graph is not None
    _check_shapes(module.graph, input_shapes or {})
    return module


@checked_arguments
def check(
    source: ModelSource,
    *,
    signature: str | None = None,
    dims: Mapping[str, int | range] | None = None,
    input_shapes: Mapping[str, Sequence[int | range]] | None = None,
) -> tuple[MicrotirError, ...]:
    """Return every problem that keeps `read_model` from reading a model.

    Empty if there is none. The arguments are those of `read_model`.
    """
    try:
        format_ = _format(source, signature, dims)
        if format_ is not ModelFormat.TFLITE:
            return _READERS[format_][1](source, dims=dims, input_shapes=input_shapes)
    except MicrotirError as error:
        return (error,)
    return tflite.check(source, signature=signature)


@checked_arguments
def float_layers(
    source: ModelSource,
    *,
    dims: Mapping[str, int | range] | None = None,
    input_shapes: Mapping[str, Sequence[int | range]] | None = None,
) -> tuple[FloatLayer, ...]:
    """Return what a quantised model in ONNX computes in floats between integers, and why.

    The arguments are those of `read_model`, which can read it.
    """
    model = load(source)
    if format_of(model.data, model.file) is not ModelFormat.ONNX:
        return ()
    return onnx_float_layers(source, dims=dims, input_shapes=input_shapes)


def _of_passes(
    after: Mapping[str, Sequence[GraphFunction]] | None, passes: Sequence[GraphPass]
) -> Mapping[str, Sequence[GraphFunction]]:
    """Return the functions of the user that run behind passes of one format."""
    known = (READ_OPERATORS, *(p.name for p in (*TFLITE_PASSES, *ONNX_PASSES)))
    refuse_unknown_passes(after or {}, known, "after")
    names = {READ_OPERATORS, *(p.name for p in passes)}
    return {name: functions for name, functions in (after or {}).items() if name in names}


def _format(
    source: ModelSource, signature: str | None, dims: Mapping[str, int | range] | None
) -> ModelFormat:
    """Return the format of a file, and refuse what is said of another one.

    Raises:
        UsageError: signatures are of TFLite files, names of dimensions of others.
    """
    model = load(source)
    format_ = format_of(model.data, model.file)
    if format_ is ModelFormat.TFLITE:
        if dims:
            raise UsageError(
                "a TFLite model has fixed extents, and no named dimensions to set",
                where=model.file,
                fix=Fix("leave `dims` out", "leave --dim out"),
            )
        return format_
    if signature is not None:
        raise UsageError(
            f"a model of {format_.value} has one program, and no signatures",
            where=model.file,
            fix=Fix("leave `signature` out", "leave --signature out"),
        )
    return format_


def _check_shapes(graph: Graph, wanted: Mapping[str, Sequence[int | range]]) -> None:
    """Refuse shapes that are not those of a model whose file fixes them.

    Raises:
        UsageError: an input that does not exist, or another shape.
    """
    shapes = {tensor.name: list(tensor.shape) for tensor in graph.arguments}
    for name, extents in by_own_names(wanted, graph.port_name, "input_shapes").items():
        if shapes.get(name) != list(extents):
            known = (
                f"has the shape {shapes[name]}"
                if name in shapes
                else "is not an input of the model"
            )
            raise UsageError(
                f"'{name}' {known}",
                where="input_shapes",
                legal=",".join(f"{port}:{shape}" for port, shape in shapes.items()).replace(
                    " ", ""
                ),
                fix="convert the model again with the shape that you want",
            )
