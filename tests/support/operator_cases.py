"""Random single-operator models with inputs, for every operator that microtir compiles.

The same case always comes out of the same name, seed and type: tests of the numpy reference
compare it with tflite-micro, tests of generated code compare that with the numpy reference.
Shapes are small and odd, scales and zero points include the extremes.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from enum import Enum
from types import MappingProxyType
from typing import TypeAlias

import numpy as np

from tests.support.cases_binary import (
    add_n,
    arithmetic,
    compare,
    division,
    extremum,
    logical,
    power,
    select,
    squared_difference,
)
from tests.support.cases_indexing import (
    dynamic_update_slice,
    embedding_lookup,
    gather,
    gather_nd,
    scatter_nd,
)
from tests.support.cases_movement import (
    concatenation,
    expand_dims,
    pack,
    pad,
    reshape,
    reverse,
    slice_,
    split,
    split_v,
    squeeze,
    strided_slice,
    transpose,
    unpack,
)
from tests.support.cases_pointwise import (
    cast,
    dequantize,
    elu,
    fixed_output,
    hard_swish,
    l2_normalization,
    leaky_relu,
    prelu,
    quantize,
    relu,
    unary,
)
from tests.support.cases_ranking import top_k
from tests.support.cases_rearrangement import (
    batch_to_space,
    broadcast_args,
    broadcast_to,
    depth_to_space,
    fill,
    mirror_pad,
    range_,
    rank_of,
    shape_of,
    space_to_batch,
    space_to_depth,
    tile,
)
from tests.support.cases_recurrent import lstm, svdf
from tests.support.cases_spatial import cumulation, pool, position, reduction, resize
from tests.support.cases_weighted import (
    batch_matmul,
    conv,
    conv_3d,
    fully_connected,
    transpose_conv,
)
from tests.support.sketch import Case, Sketch, Weights

Recipe: TypeAlias = Callable[[Sketch], Case]

_REAL = ("int8", "float32")
_REAL16 = ("int8", "float32", "int16")
_NUMBERS = ("int8", "float32", "int16", "int32", "int64")
_UNQUANTIZED = ("float32", "int32", "int64")
_COMPARED = ("int8", "float32", "int32", "int64", "int16")
_PICKED = ("int8", "float32", "int16", "int32", "int64", "uint8", "bool")
_FLOAT = ("float32",)
_INT16 = ("int8", "int16")
_NEGATED = ("int8", "int16", "int32", "int64")
_CAST = ("int8", "float32", "int16", "int32", "uint32", "bool")
_MOVED = ("int8", "float32", "int16", "int32")


class Oracle(Enum):
    """Whose results count."""

    TFLITE_MICRO = "tflite-micro's reference kernels"
    LITERT = "LiteRT's reference kernels"


@dataclass(frozen=True)
class CaseKind:
    """How cases of an operator are drawn, and whose results they equal.

    Args:
        recipe: draws a model of one operator.
        dtypes: types of the first input.
        by_litert: those of them for which tflite-micro has no kernel, and LiteRT's count.
        moves: whether elements are only moved, so that types differ in their width alone.
    """

    recipe: Recipe
    dtypes: tuple[str, ...]
    by_litert: tuple[str, ...] = ()
    moves: bool = False

    def oracle(self, dtype: str) -> Oracle:
        return Oracle.LITERT if dtype in self.by_litert else Oracle.TFLITE_MICRO


def _moving(recipe: Recipe, dtypes: tuple[str, ...], by_litert: tuple[str, ...] = ()) -> CaseKind:
    return CaseKind(recipe, (*dtypes, *by_litert), by_litert, moves=True)


OPERATORS: Mapping[str, CaseKind] = MappingProxyType(
    {
        "CONV_2D": CaseKind(conv, _REAL16),
        "DEPTHWISE_CONV_2D": CaseKind(conv, _REAL16),
        "TRANSPOSE_CONV": CaseKind(transpose_conv, _REAL16),
        "CONV_3D": CaseKind(conv_3d, ("float32",), by_litert=("float32",)),
        "BATCH_MATMUL": CaseKind(batch_matmul, _REAL16),
        "FULLY_CONNECTED": CaseKind(fully_connected, _REAL16),
        "AVERAGE_POOL_2D": CaseKind(pool, _REAL16),
        "MAX_POOL_2D": CaseKind(pool, _REAL16),
        "L2_POOL_2D": CaseKind(pool, ("float32",)),
        "MEAN": CaseKind(reduction, _REAL16),
        "SUM": CaseKind(reduction, _NUMBERS, ("int32", "int64")),
        "REDUCE_MAX": CaseKind(reduction, _NUMBERS, _NUMBERS[2:]),
        "REDUCE_MIN": CaseKind(reduction, _NUMBERS, _NUMBERS[2:]),
        "REDUCE_PROD": CaseKind(reduction, _NUMBERS, _NUMBERS),
        "REDUCE_ALL": CaseKind(reduction, ("bool",)),
        "REDUCE_ANY": CaseKind(reduction, ("bool",), ("bool",)),
        "ARG_MAX": CaseKind(position, _REAL),
        "ARG_MIN": CaseKind(position, _REAL),
        "CUMSUM": CaseKind(cumulation, (*_REAL, "int32", "int64"), ("int32", "int64")),
        "ADD": CaseKind(arithmetic, _NUMBERS, by_litert=("int64",)),
        "SUB": CaseKind(arithmetic, _NUMBERS, by_litert=("int64",)),
        "MUL": CaseKind(arithmetic, _NUMBERS, by_litert=("int64",)),
        "SQUARED_DIFFERENCE": CaseKind(squared_difference, ("int8", "float32", "int16", "int32")),
        "ADD_N": CaseKind(add_n, ("int8", "float32", "int32"), by_litert=("int32",)),
        "POW": CaseKind(power, ("float32",), by_litert=("float32",)),
        "ATAN2": CaseKind(power, ("float32",), by_litert=("float32",)),
        "DIV": CaseKind(division, ("int8", "float32", "int32", "int16"), by_litert=("int16",)),
        "FLOOR_DIV": CaseKind(
            division, ("float32", "int8", "int16", "int32"), by_litert=("int8", "int16", "int32")
        ),
        "FLOOR_MOD": CaseKind(
            division,
            ("float32", "int8", "int16", "int32", "int64"),
            by_litert=("int8", "int16", "int32", "int64"),
        ),
        "MINIMUM": CaseKind(extremum, _NUMBERS),
        "MAXIMUM": CaseKind(extremum, _NUMBERS),
        "EQUAL": CaseKind(compare, (*_COMPARED, "bool"), by_litert=("int16",)),
        "NOT_EQUAL": CaseKind(compare, (*_COMPARED, "bool"), by_litert=("int16",)),
        "GREATER": CaseKind(compare, _COMPARED, by_litert=("int16",)),
        "GREATER_EQUAL": CaseKind(compare, _COMPARED, by_litert=("int16",)),
        "LESS": CaseKind(compare, _COMPARED, by_litert=("int16",)),
        "LESS_EQUAL": CaseKind(compare, _COMPARED, by_litert=("int16",)),
        "LOGICAL_AND": CaseKind(logical, ("bool",)),
        "LOGICAL_OR": CaseKind(logical, ("bool",)),
        "LOGICAL_NOT": CaseKind(logical, ("bool",)),
        "SELECT_V2": CaseKind(select, _PICKED, by_litert=("int32", "int64", "uint8", "bool")),
        "SELECT": CaseKind(select, _PICKED, by_litert=_PICKED),
        "RELU": CaseKind(relu, _REAL16),
        "RELU6": CaseKind(relu, _REAL16),
        "LEAKY_RELU": CaseKind(leaky_relu, _REAL16),
        "PRELU": CaseKind(prelu, _REAL16),
        "ELU": CaseKind(elu, _REAL),
        "HARD_SWISH": CaseKind(hard_swish, _REAL),
        "LOGISTIC": CaseKind(fixed_output, _REAL16),
        "TANH": CaseKind(fixed_output, _REAL16),
        "ABS": CaseKind(unary, (*_REAL16, "int32"), ("int32",)),
        "NEG": CaseKind(unary, ("float32", *_NEGATED), _NEGATED),
        "SIGN": CaseKind(unary, ("float32", "int32"), ("float32", "int32")),
        "SQUARE": CaseKind(unary, _FLOAT),
        "SQRT": CaseKind(unary, _REAL16, _INT16),
        "RSQRT": CaseKind(unary, _REAL16),
        "EXP": CaseKind(unary, _REAL16, _INT16),
        "LOG": CaseKind(unary, _REAL16, _INT16),
        "SIN": CaseKind(unary, _FLOAT),
        "COS": CaseKind(unary, _FLOAT),
        "FLOOR": CaseKind(unary, _FLOAT),
        "CEIL": CaseKind(unary, _FLOAT),
        "ROUND": CaseKind(unary, _FLOAT),
        "ZEROS_LIKE": CaseKind(unary, ("float32", "int8", "int32", "int64")),
        "SOFTMAX": CaseKind(fixed_output, _REAL16),
        "LOG_SOFTMAX": CaseKind(fixed_output, _REAL),
        "L2_NORMALIZATION": CaseKind(l2_normalization, _REAL),
        "PAD": _moving(pad, _MOVED, ("int64", "bool")),
        "PADV2": _moving(pad, _MOVED, ("uint8",)),
        "CONCATENATION": _moving(concatenation, (*_MOVED, "int64", "bool"), ("uint8", "uint32")),
        "PACK": _moving(pack, (*_MOVED, "int64"), ("uint8",)),
        "RESHAPE": _moving(reshape, (*_MOVED, "int64", "uint8", "uint32", "bool")),
        "SQUEEZE": _moving(squeeze, (*_MOVED, "int64", "uint8", "uint32", "bool")),
        "EXPAND_DIMS": _moving(expand_dims, ("int8", "float32", "int16"), ("int32", "int64")),
        "TRANSPOSE": _moving(transpose, ("int8", "float32", "int16"), ("int32", "uint32", "bool")),
        "SPLIT": _moving(split, _MOVED, ("int64",)),
        "SPLIT_V": _moving(split_v, _MOVED, ("int64",)),
        "UNPACK": _moving(unpack, _MOVED, ("uint8", "bool")),
        "REVERSE_V2": _moving(reverse, (*_MOVED, "int64", "uint8", "bool")),
        "STRIDED_SLICE": _moving(strided_slice, (*_MOVED, "bool"), ("uint8",)),
        "SLICE": _moving(slice_, (*_MOVED, "bool"), ("int64", "uint32")),
        "TILE": _moving(tile, (), (*_MOVED, "int64", "uint8", "bool")),
        "BROADCAST_TO": _moving(broadcast_to, (*_MOVED, "int64", "uint8", "uint32", "bool")),
        "FILL": _moving(fill, ("float32", "int8", "int32"), ("int16", "int64", "bool")),
        "MIRROR_PAD": _moving(mirror_pad, _REAL, ("int16", "int32", "int64", "uint8")),
        "DEPTH_TO_SPACE": _moving(depth_to_space, _REAL, ("int32", "int64", "uint8")),
        "SPACE_TO_DEPTH": _moving(space_to_depth, _REAL, ("int32", "int64", "uint8")),
        "SPACE_TO_BATCH_ND": _moving(space_to_batch, _REAL, ("int16", "int32", "int64", "uint8")),
        "BATCH_TO_SPACE_ND": _moving(batch_to_space, _REAL, ("int16", "int32", "int64", "uint8")),
        "SHAPE": _moving(shape_of, (*_MOVED, "int64", "uint8", "uint32", "bool")),
        "RANK": _moving(rank_of, (), ("int8", "float32", "int16")),
        "BROADCAST_ARGS": CaseKind(broadcast_args, ("int32", "int64")),
        "RANGE": _moving(range_, (), ("float32", "int32", "int64")),
        "RESIZE_NEAREST_NEIGHBOR": CaseKind(
            resize, (*_REAL16, "uint8", "int32"), ("uint8", "int32")
        ),
        "RESIZE_BILINEAR": CaseKind(resize, _REAL16, ("int16",)),
        "TOPK_V2": _moving(top_k, (), ("float32", "int8", "int16", "uint8", "int32", "int64")),
        "GATHER": _moving(gather, _REAL, ("int16", "int32", "int64", "uint8", "bool")),
        "GATHER_ND": _moving(gather_nd, _REAL, ("int16", "int32", "int64", "uint8", "bool")),
        "SCATTER_ND": _moving(scatter_nd, (), ("float32", "int8", "uint8", "int32", "int64")),
        "EMBEDDING_LOOKUP": CaseKind(embedding_lookup, _REAL16, by_litert=("int16",)),
        "DYNAMIC_UPDATE_SLICE": _moving(dynamic_update_slice, _MOVED, ("int64", "bool")),
        "QUANTIZE": CaseKind(quantize, ("float32", "int8", "int16", "int32", "uint8")),
        "DEQUANTIZE": CaseKind(dequantize, ("int8", "int16", "uint8")),
        "CAST": CaseKind(cast, (*_CAST, "uint8", "int64"), ("uint8", "int64")),
    }
)
"""Recipe, input types and oracle of each operator, under the file format's names."""


HYBRID = "hybrid"
"""In place of a type: floats, and weights of int8."""


RECURRENT: Mapping[str, CaseKind] = MappingProxyType(
    {
        "SVDF": CaseKind(svdf, (*_REAL, HYBRID)),
        "UNIDIRECTIONAL_SEQUENCE_LSTM": CaseKind(lstm, (*_REAL16, HYBRID)),
    }
)
"""Operators that remember something; what a run leaves is compared elsewhere."""


def operator_dtypes() -> list[tuple[str, str]]:
    """Return every operator with every type that it has cases for."""
    kinds = (*OPERATORS.items(), *RECURRENT.items())
    return [(name, dtype) for name, kind in kinds for dtype in kind.dtypes]


def generate(operator_name: str, seed: int, dtype: str) -> Case:
    """Draw a model of one operator whose first input has the type `dtype`.

    An oracle is given a hybrid one with float weights.
    """
    kind = OPERATORS.get(operator_name) or RECURRENT[operator_name]
    key = zlib.crc32(f"{operator_name} {dtype}".encode())
    name = f"{operator_name.lower()}_{dtype}_{seed}"

    def draw(type_: str, weights: Weights) -> Case:
        rng = np.random.default_rng([seed, key])
        return kind.recipe(Sketch(name, operator_name, np.dtype(type_), rng, weights))

    if dtype != HYBRID:
        return draw(dtype, Weights.LIKE_INPUTS)
    widened = draw("float32", Weights.WIDENED)
    return replace(draw("float32", Weights.INT8), widened=widened.model)
