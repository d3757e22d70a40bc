"""LSTMs of int8 or int16: all sums of a step in two products of matrices, and cells by vectors."""

from __future__ import annotations

from typing import TypeAlias

import numpy as np

from microtir.config import Feature
from microtir.dtype import DType
from microtir.graph.ir import Node
from microtir.kernels.arm_dsp import lstm
from microtir.kernels.arm_mve import gemm_kernels, requantise
from microtir.kernels.arm_mve.linear import arranged, lanes_of
from microtir.kernels.common import made_once, packing
from microtir.kernels.common.finish_s16 import Finish16, Sums
from microtir.kernels.common.long_requantise import long_words
from microtir.operators.recurrent.definition import GATES

_ANY = DType.INT16.min, DType.INT16.max
_FINISH = Finish16(Sums.SHORT, *_ANY, corrects_ties=True)
_LONG = Finish16(Sums.LONG, *_ANY)


@made_once.of_node
def _products(node: Node) -> list[lstm.Product] | None:
    is_long = node.inputs[0].dtype is DType.INT16
    scale = _rescaled_once if is_long else _rescaled
    sides = [(side, scale(side, adds=bool(n))) for n, side in enumerate(lstm.sides_of(node))]
    products = [_product(side, *scaled) for side, scaled in sides if scaled is not None]
    return products if products and len(products) == len(sides) else None


_Scaled: TypeAlias = tuple[requantise.Rescaling16, requantise.Ints]
"""The rescaling of the sums of gates, and the words of their rows."""


def _rescaled_once(side: lstm.Gates, *, adds: bool) -> _Scaled | None:
    """Return what rescales sums of int16 with one rounding; None if a factor is too large."""
    factors = np.repeat(np.arange(GATES), 2).tolist() * (len(side.rows) // (2 * GATES))
    rows = zip(factors, side.starts.tolist(), strict=True)
    words = [long_words(side.factors[gate], start) for gate, start in rows]
    present = [row for row in words if row is not None]
    if len(present) < len(words):
        return None
    form = requantise.Rescaling16(_LONG, adds=adds)
    return form, requantise.constants16(np.array(present, np.int64))


def _rescaled(side: lstm.Gates, *, adds: bool) -> _Scaled:
    pairs = len(side.rows) // (2 * GATES)
    # Two rows of a gate follow each other.
    factors = np.tile(np.repeat(np.array(side.factors, np.int64), 2, axis=0), (pairs, 1))
    right, left = np.minimum(factors[:, 1], 0), np.maximum(factors[:, 1], 0)
    form = requantise.Rescaling16(
        _FINISH, element=DType.INT8, shifts_left=bool(left.any()), adds=adds
    )
    return form, np.column_stack([side.starts, factors[:, 0], right, left])[:, : form.words]


def _product(
    side: lstm.Gates, form: requantise.Rescaling16, words: requantise.Ints
) -> lstm.Product:
    rows, values = side.rows.shape
    constants = requantise.by_lanes(words)
    weights = arranged(side.rows.astype(np.int8), lanes_of(form.element))
    return lstm.Product(
        gemm_kernels.gemm(1, values, values, rows, form),
        (packing.constant("weights", weights), packing.constant("constants", constants)),
        gemm_kernels.instructions(1, values, rows, form),
        gemm_kernels.code_size(1, values, rows, form),
    )


class Recurrent(lstm.Recurrent):
    """The gates of two units are eight channels of a product, whose results are int16."""

    needs = Feature.MVE
    cells = lstm.CellForm(
        "kernels/mve/lstm_cells.j2", DType.INT16, Feature.MVE, 100, "cells_by_vectors"
    )
    products = staticmethod(_products)

    def __init__(self, name: str, dtype: DType) -> None:
        self.name, self.dtype = name, dtype
