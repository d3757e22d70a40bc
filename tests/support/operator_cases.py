"""Random single-operator models with inputs, for every operator that microtir compiles.

The same case always comes out of the same name, seed and type: tests of the numpy reference
compare it with tflite-micro, tests of generated code compare that with the numpy reference.
Shapes are small and odd, scales and zero points include the extremes.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import TypeAlias

import numpy as np

from tests.support.cases_movement import (
    concatenation,
    expand_dims,
    pad,
    reshape,
    slice_,
    split,
    squeeze,
    strided_slice,
    transpose,
)
from tests.support.cases_pointwise import (
    arithmetic,
    cast,
    dequantize,
    extremum,
    fixed_output,
    hard_swish,
    leaky_relu,
    quantize,
    relu,
)
from tests.support.cases_spatial import conv, fully_connected, mean, pool, resize
from tests.support.sketch import Case, Sketch

Recipe: TypeAlias = Callable[[Sketch], Case]

_REAL = ("int8", "float32")
_MOVED = ("int8", "float32", "int16", "int32")

OPERATORS: Mapping[str, tuple[Recipe, tuple[str, ...]]] = MappingProxyType(
    {
        "CONV_2D": (conv, _REAL),
        "DEPTHWISE_CONV_2D": (conv, _REAL),
        "FULLY_CONNECTED": (fully_connected, _REAL),
        "AVERAGE_POOL_2D": (pool, _REAL),
        "MAX_POOL_2D": (pool, _REAL),
        "MEAN": (mean, _REAL),
        "ADD": (arithmetic, _REAL),
        "SUB": (arithmetic, _REAL),
        "MUL": (arithmetic, _REAL),
        "MINIMUM": (extremum, _REAL),
        "MAXIMUM": (extremum, _REAL),
        "RELU": (relu, _REAL),
        "RELU6": (relu, _REAL),
        "LEAKY_RELU": (leaky_relu, _REAL),
        "HARD_SWISH": (hard_swish, _REAL),
        "LOGISTIC": (fixed_output, _REAL),
        "TANH": (fixed_output, _REAL),
        "SOFTMAX": (fixed_output, _REAL),
        "LOG_SOFTMAX": (fixed_output, _REAL),
        "PAD": (pad, _MOVED),
        "PADV2": (pad, _MOVED),
        "CONCATENATION": (concatenation, (*_MOVED, "bool")),
        "RESHAPE": (reshape, _MOVED),
        "SQUEEZE": (squeeze, _MOVED),
        "EXPAND_DIMS": (expand_dims, ("int8", "float32", "int16")),
        "TRANSPOSE": (transpose, ("int8", "float32", "int16")),
        "SPLIT": (split, _MOVED),
        "STRIDED_SLICE": (strided_slice, (*_MOVED, "bool")),
        "SLICE": (slice_, (*_MOVED, "bool")),
        "RESIZE_NEAREST_NEIGHBOR": (resize, ("int8", "float32")),
        "RESIZE_BILINEAR": (resize, _REAL),
        "QUANTIZE": (quantize, ("float32", "int8", "int16", "uint8")),
        "DEQUANTIZE": (dequantize, ("int8", "int16", "uint8")),
        "CAST": (cast, ("int8", "float32", "int16", "int32", "bool")),
    }
)
"""Recipe and input types of each operator, under the file format's names."""


def operator_dtypes() -> list[tuple[str, str]]:
    """Return every operator with every type that it has cases for."""
    return [(name, dtype) for name, (_, dtypes) in OPERATORS.items() for dtype in dtypes]


def generate(operator_name: str, seed: int, dtype: str) -> Case:
    """Draw a model of one operator whose first input has the type `dtype`."""
    recipe, _ = OPERATORS[operator_name]
    key = zlib.crc32(f"{operator_name} {dtype}".encode())
    name = f"{operator_name.lower()}_{dtype}_{seed}"
    return recipe(Sketch(name, operator_name, np.dtype(dtype), np.random.default_rng([seed, key])))
