"""Read ai.onnx.ml's encoders of categories, which are numbers."""

from __future__ import annotations

import numpy as np

from microtir.dtype import DType
from microtir.graph.ir import Array, Tensor
from microtir.operators.common.onnx_ml import distinct, refuse_strings
from microtir.operators.common.onnx_operands import OnnxNode
from microtir.operators.common.onnx_parts import filled, joined, reshaped
from microtir.operators.common.onnx_types import cast
from microtir.operators.conditions.definition import Equal, LogicalOr, NotEqual
from microtir.operators.indexing.definition import Gather
from microtir.operators.reduction.definition import ArgMax


def _is_each(node: OnnxNode, x: Tensor, keys: Array) -> Tensor:
    """Return for each value of a tensor which of some numbers it is; NaN is equal to itself."""
    column = reshaped(node, x, *x.shape, 1)
    is_equal = node.emit(Equal(), column, node.constant(keys), dtype=DType.BOOL)
    if keys.dtype.kind != "f" or not np.isnan(keys).any():
        return is_equal
    is_nan = node.emit(NotEqual(), column, column, dtype=DType.BOOL)
    # A NaN is unlike every number, so that it is looked for beside the numbers.
    at_nan = node.constant(np.isnan(keys).astype(np.float32))
    both = node.emit(
        Equal(), cast(node, is_nan, DType.FLOAT32), _or_two(node, at_nan), dtype=DType.BOOL
    )
    return node.emit(LogicalOr(), is_equal, both, dtype=DType.BOOL)


def _or_two(node: OnnxNode, flags: Tensor) -> Tensor:
    """Return 1 where a flag is set and else 2, which no flag is."""
    return node.constant(np.where(flags.values == 1, 1, 2).astype(np.float32))


def one_hot_encoder(node: OnnxNode) -> Tensor:
    """Read OneHotEncoder; a category that is not in the list gives zeros."""
    refuse_strings(node, "cats_strings")
    categories = np.array(node.list_of_integers("cats_int64s"), np.int64)
    x = cast(node, node.input(0), DType.INT64)
    return cast(node, _is_each(node, x, categories), DType.FLOAT32)


def _texts(node: OnnxNode, side: str) -> tuple[str, ...]:
    """Return the keys or the values of a map that are strings; none if they are numbers."""
    name = f"{side}_strings"
    if node.has(name):
        return node.list_of_words(name)
    tensor = f"{side}_tensor"
    if node.has(tensor) and node.tensor_of_any(tensor).dtype == np.object_:
        return tuple(node.tensor_of_any(tensor).reshape(-1).tolist())
    return ()


def _side(node: OnnxNode, side: str, names: tuple[str, ...]) -> Array:
    """Return the keys or the values of a map; strings are places in a list of names.

    One that is not in the list is nobody's place.
    """
    texts = _texts(node, side)
    if texts:
        places = {name: place for place, name in enumerate(names)}
        return np.array([places.get(text, -1) for text in texts], np.int64)
    name = f"{side}_tensor"
    if node.has(name):
        return node.tensor(name).reshape(-1)
    if node.has(f"{side}_int64s"):
        return np.array(node.list_of_integers(f"{side}_int64s"), np.int64)
    return np.array(node.list_of_numbers(f"{side}_floats"), np.float32)


def _default(node: OnnxNode, dtype: np.dtype[np.generic]) -> Array:
    """Return what a key that is not in the map stands for."""
    if node.has("default_tensor"):
        return node.tensor("default_tensor").reshape(-1)[:1]
    if dtype.kind == "i":
        return np.array([node.integer("default_int64", -1)], dtype)
    return np.array([node.number("default_float", -0.0)], dtype)


def _default_text(node: OnnxNode) -> str:
    """Return the string for a key that is not in the map."""
    if node.has("default_tensor"):
        return str(node.tensor_of_any("default_tensor").reshape(-1)[0])
    return node.word("default_string", "_Unused")


def label_encoder(node: OnnxNode) -> Tensor:
    """Read LabelEncoder: values of a map by its keys, the first of equal ones.

    Strings are the values that the model gives, or keys among those that it can have here.
    """
    x = node.input(0)
    refuse_strings(node, "classes_strings", *() if node.names(x) else ("keys_strings",))
    texts = _texts(node, "values")
    names = distinct((*texts, _default_text(node))) if texts else ()
    keys, values = _side(node, "keys", node.names(x)), _side(node, "values", names)
    if bool(node.names(x)) != bool(_texts(node, "keys")):
        raise node.malformed("keys or values that are strings, and the others are numbers")
    if keys.size != values.size or not keys.size or keys.dtype != np.dtype(x.dtype.value):
        raise node.malformed(
            f"{keys.size} keys of {keys.dtype} and {values.size} values for {x.dtype.value}",
            "the same number of keys and values, of the type of the input",
        )
    is_key = cast(node, _is_each(node, x, keys), DType.FLOAT32)
    is_other = filled(node, (*x.shape, 1), 1)
    last = len(x.shape)
    index = node.emit(ArgMax(last), joined(node, (is_key, is_other), last), dtype=DType.INT64)
    if texts:
        default = np.array([names.index(_default_text(node))], np.int64)
    else:
        default = _default(node, values.dtype)
    table = np.concatenate([values, default]).astype(values.dtype)
    label = node.emit(Gather(0), node.constant(table), index)
    if texts:
        node.emitter.name_values(label, names)
    return label
