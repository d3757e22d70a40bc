"""Follow strings through a model: a tensor of them is one of places in a list of names.

The graph knows no strings.  Those that a model can give are known while it is compiled, the labels
of classes, say, and what it computes is which of them.  Operators that move elements move places.
Whatever would have to look at the letters is refused.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from microtir.dtype import DType
from microtir.errors import ExportProblem, UnsupportedModelError
from microtir.frontend.onnx.emitter import GraphParts
from microtir.frontend.onnx.stored_operands import read_stored
from microtir.graph.ir import Array, NamedResult, Tensor
from microtir.graph.names import brief
from microtir.operators.common.onnx_ml import ML
from microtir.operators.common.onnx_operands import OnnxNode, OnnxReader
from microtir.operators.common.onnx_values import Value, tensors_of
from microtir.operators.indexing.definition import Gather

_MOVES = frozenset((
    "ArrayFeatureExtractor", "Compress", "Concat", "Expand", "Flatten", "Gather", "GatherElements",
    "GatherND", "Identity", "Reshape", "ReverseSequence", "Slice", "Split", "Squeeze", "Tile",
    "Transpose", "Unsqueeze", "Where",
))  # fmt: skip

_COMPARES = frozenset(("Equal",))

_KNOWS_NAMES = frozenset(("Cast", "LabelEncoder", "Shape", "Size"))
"""Operators that handle names themselves, or look at the shape alone."""


def read_named(node: OnnxNode, reader: OnnxReader) -> Value | tuple[Value, ...]:
    """Return what a reader gives of operands, some of which may be strings.

    Raises:
        UnsupportedModelError: it is an operator that needs more of strings than which they are.
    """
    tensors = [tensor for value in node.inputs for tensor in tensors_of(value)]
    known = list(dict.fromkeys(name for x in tensors for name in node.names(x)))
    if not known or reader.name in _KNOWS_NAMES:
        return read_stored(node, reader)
    if reader.domain not in ("", ML) or reader.name not in _MOVES | _COMPARES:
        raise computes_on_strings(node.where)
    operands = (_among(node, x, known) if isinstance(x, Tensor) else x for x in node.inputs)
    stored = read_stored(node.with_inputs(*operands), reader)
    if reader.name in _MOVES:
        for value in stored if isinstance(stored, tuple) else (stored,):
            for tensor in tensors_of(value):
                node.emitter.name_values(tensor, tuple(known))
    return stored


def computes_on_strings(where: str) -> UnsupportedModelError:
    """Return the error for what needs more of strings than which of some known ones they are."""
    return UnsupportedModelError(
        "it computes on strings",
        where=where,
        legal="strings that are constants: a model may choose, move, compare and output them",
        fix="train with classes and categories that are integers"
        " (sklearn.preprocessing.LabelEncoder or OrdinalEncoder), and name them in the application",
        export=ExportProblem.STRINGS,
    )


def _among(node: OnnxNode, x: Tensor, known: Sequence[str]) -> Tensor:
    """Return strings as places in a list that holds theirs."""
    names = node.names(x)
    if not names or names == tuple(known[: len(names)]):
        return x
    places: Array = np.array([known.index(name) for name in names], np.int64)
    return node.emit(Gather(0), node.constant(places), x)


def named_result(
    own: Tensor, file_tensor: Tensor, parts: GraphParts, *, is_text: bool, file: str
) -> tuple[NamedResult, ...]:
    """Return the names of an output's values; none where these are numbers.

    Args:
        own: the output.
        file_tensor: what the model computes for it.
        parts: which know the names of values.
        is_text: whether the file says that it holds strings.
        file: for errors.

    Raises:
        UnsupportedModelError: it holds strings that nobody knows, or that C has no form for.
    """
    names, where = parts.names.get(file_tensor, ()), f"{file}: output {brief(own.name)!r}"
    if not names:
        if is_text:
            raise computes_on_strings(where)
        return ()
    for name in names:
        if "\0" in name:
            raise UnsupportedModelError(
                f"one of its values is {brief(repr(name))}, which contains a zero byte",
                where=where,
                legal="names without a zero byte, because this byte ends a string in C",
                fix="train with other class names",
            )
    assert own.dtype is DType.INT64, "places are counted in int64"
    return (NamedResult(own.name, names),)
