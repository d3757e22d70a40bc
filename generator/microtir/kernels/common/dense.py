"""Fully connected layers: rows of inputs are the pixels of a matrix product."""

from __future__ import annotations

from microtir.graph.ir import Node
from microtir.kernels.common.bordered_rows import DirectRows
from microtir.kernels.common.layer import Layer
from microtir.kernels.common.macro_kernel import Nhwc, Tile, macro_kernel
from microtir.tir import ir


def rows_of(node: Node) -> int:
    """Return how many rows of inputs a layer has: of as many as each weight, whatever its shape."""
    return node.output.type.elements // node.inputs[1].shape[0]


def dense_rows(layer: Layer, name: str, tile: Tile) -> ir.PrimFunc:
    """Return the layer function, whose tiles compute one row of inputs, or several together."""
    if layer.takes_row_range:
        x, y, rows = layer.input_rows(0), layer.output_rows(), None
    else:
        count, (outputs, inputs) = rows_of(layer.node), layer.node.inputs[1].shape
        x, y = layer.input_matrix(0, (count, inputs)), layer.output_matrix((count, outputs))
        rows = 0, count
    return macro_kernel(layer, name, 1, DirectRows(x, is_line=x.is_whole), tile, Nhwc(y), rows)
