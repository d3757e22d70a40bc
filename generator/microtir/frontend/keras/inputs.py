"""Inputs of a Keras model: names, types and shapes, as layers of several versions state them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from microtir.dtype import DType
from microtir.errors import ModelFileError, UnsupportedModelError
from microtir.frontend.keras.archive import Json
from microtir.frontend.keras.config import INPUT, LayerRecord, ModelRecord
from microtir.frontend.keras.hdf5 import SAVE_AGAIN
from microtir.frontend.onnx.file import MAX_RANK, FileValue
from microtir.graph.names import brief

_TYPES = {
    **{dtype.value: dtype for dtype in DType},
    **dict.fromkeys(("float16", "bfloat16", "float64"), DType.FLOAT32),
}


def input_values(model: ModelRecord, config: Mapping[str, Json], file: str) -> Iterator[FileValue]:
    """Yield the inputs of a model.

    An extent that the file leaves open is named by its layer and axis, the first one "batch".

    Raises:
        ModelFileError: an input has no shape, or a type that nothing has.
        UnsupportedModelError: it is one of strings, or sparse.
    """
    layers = {layer.name: layer for layer in model.layers}
    if not model.is_sequential:
        for port in model.inputs:
            layer = layers.get(port.result.layer)
            if layer is None:
                raise ModelFileError(f"the input {brief(port.name)!r} names no layer", where=file,
                                     fix=SAVE_AGAIN)  # fmt: skip
            yield _value(port.name, layer, file)
        return
    if not model.layers:
        raise ModelFileError("the model has no layers", where=file, fix=SAVE_AGAIN)
    first = model.layers[0]
    if first.inner is not None and _shape_of(first.config) is None:
        yield from input_values(first.inner, first.config, file)
        return
    own = config.get("build_input_shape") if _shape_of(first.config) is None else None
    yield _value(first.name if first.kind == INPUT else f"{first.name}_input", first, file, own)


def _shape_of(config: Mapping[str, Json]) -> Json:
    return config.get("batch_shape", config.get("batch_input_shape"))


def _value(name: str, layer: LayerRecord, file: str, own: Json = None) -> FileValue:
    where = f"{file}: input {brief(name)!r}"
    shape = own if own is not None else _shape_of(layer.config)
    if shape is None and layer.build is not None:
        shape = layer.build.get("input_shape")
    if not isinstance(shape, list) or len(shape) > MAX_RANK or not all(map(_is_extent, shape)):
        raise ModelFileError(
            f"its shape is {brief(repr(shape))}", where=where,
            legal="a list of extents, with None for an open extent",
            fix="begin the model with a keras.Input of its shape, and save it again",
        )  # fmt: skip
    if layer.config.get("sparse") or layer.config.get("ragged"):
        raise UnsupportedModelError("it is sparse or ragged", where=where, legal="dense tensors",
                                    fix="build the model with a dense Input")  # fmt: skip
    title = layer.config.get("dtype", "float32") if layer.kind == INPUT else "float32"
    dtype = _TYPES.get(title) if isinstance(title, str) else DType.FLOAT32
    if dtype is None:
        raise UnsupportedModelError(
            f"it has the type {brief(str(title))}", where=where, legal=", ".join(_TYPES),
            fix="convert it to numbers in the application",
        )  # fmt: skip
    names = ("batch", *(f"{name}_{axis}" for axis in range(1, len(shape))))
    extents = (e if isinstance(e, int) else n for e, n in zip(shape, names, strict=False))
    return FileValue(name, dtype, tuple(extents))


def _is_extent(value: Json) -> bool:
    return value is None or (isinstance(value, int) and 0 < value < 1 << 31)
