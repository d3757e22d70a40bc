"""LSTMs of int8: all sums of a step in two products of matrices, and cells by vectors."""

from __future__ import annotations

import numpy as np

from microtir.config import Feature
from microtir.dtype import DType
from microtir.graph.ir import Node
from microtir.kernels.arm_dsp import lstm
from microtir.kernels.arm_mve import gemm_kernels, requantise
from microtir.kernels.arm_mve.linear import arranged, lanes_of
from microtir.kernels.common import made_once, packing
from microtir.kernels.common.finish_s16 import Finish16, Sums
from microtir.operators.recurrent.definition import GATES

_FINISH = Finish16(Sums.SHORT, DType.INT16.min, DType.INT16.max, corrects_ties=True)


@made_once.of_node
def _products(node: Node) -> list[lstm.Product] | None:
    return [_product(side, adds=bool(n)) for n, side in enumerate(lstm.sides_of(node))] or None


def _product(side: lstm.Gates, *, adds: bool) -> lstm.Product:
    (rows, values), pairs = side.rows.shape, len(side.rows) // (2 * GATES)
    # Two rows of a gate follow each other.
    factors = np.tile(np.repeat(np.array(side.factors, np.int64), 2, axis=0), (pairs, 1))
    right, left = np.minimum(factors[:, 1], 0), np.maximum(factors[:, 1], 0)
    form = requantise.Rescaling16(
        _FINISH, element=DType.INT8, shifts_left=bool(left.any()), adds=adds
    )
    words = np.column_stack([side.starts, factors[:, 0], right, left])[:, : form.words]
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

    name = "lstm_s8_1x4_mve"
    needs = Feature.MVE
    cells = lstm.CellForm(
        "kernels/mve/lstm_cells.j2", DType.INT16, Feature.MVE, 100, "cells_by_vectors"
    )
    products = staticmethod(_products)
