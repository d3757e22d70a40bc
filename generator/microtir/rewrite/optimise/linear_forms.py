"""Values that are sums of products of a few vectors with constant matrices, however written."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType

import numpy as np

from microtir.graph.ir import Array, Node, Tensor
from microtir.operators.arithmetic.definition import Add
from microtir.operators.dense.definition import FullyConnected
from microtir.operators.movement.definition import Concatenation, Reshape, Split, StridedSlice

_DEEPEST = 32  # operators between a value and its vectors


@dataclass(frozen=True, slots=True, eq=False)
class Matrix:
    """A part of a constant: `values` from its row `first` on, with the quantisation of `like`."""

    values: Array
    like: Tensor
    first: int = 0


@dataclass(frozen=True, slots=True, eq=False)
class LinearForm:
    """The sum of `matrices`, each (N, K) times the vectors that it is of, and of a bias (N,)."""

    matrices: Mapping[Tensor, Matrix]
    bias: Array

    def rows(self, first: int, count: int) -> LinearForm:
        """Return some of the N elements."""
        rows = slice(first, first + count)
        matrices = {
            vector: replace(matrix, values=matrix.values[rows], first=matrix.first + first)
            for vector, matrix in self.matrices.items()
        }
        return LinearForm(matrices, self.bias[rows])

    def plus(self, other: LinearForm) -> LinearForm | None:
        """Return the sum, if it multiplies no vector twice."""
        if len(self.bias) != len(other.bias) or not self.matrices.keys().isdisjoint(other.matrices):
            return None
        return LinearForm({**self.matrices, **other.matrices}, self.bias + other.bias)


@dataclass(frozen=True, slots=True)
class LinearForms:
    """Finds linear forms.

    Args:
        producers: who computes each value.
        vectors: what forms are of: the last axes are the K elements.
    """

    producers: Mapping[Tensor, Node]
    vectors: frozenset[Tensor]

    def of(self, tensor: Tensor, depth: int = _DEEPEST) -> LinearForm | None:
        """Return what a value is, if it is a linear form of float32; the last axis are the N."""
        if tensor.data is not None:
            return _constant(tensor)
        node = self.producers.get(tensor)
        if node is None or not depth:
            return None
        match node.op:
            case Add() if node.op == Add():
                first, second = (self.of(operand, depth - 1) for operand in node.inputs)
                return None if first is None or second is None else first.plus(second)
            case FullyConnected():
                return self._product(node)
            case Reshape() | StridedSlice() | Split():
                source = node.inputs[0]
                part = _part(node, tensor)
                form = self.of(source, depth - 1) if part is not None else None
                return None if form is None or part is None else form.rows(*part)
            case _:
                return None

    def _product(self, node: Node) -> LinearForm | None:
        """Return the form of a fully connected layer."""
        source, weights, *bias = node.inputs
        if node.op != FullyConnected(asymmetric=_asymmetric(node)) or weights.data is None:
            return None
        if any(tensor.data is None for tensor in bias):
            return None
        start = bias[0].data if bias else np.zeros(len(weights.data), np.float32)
        matrices: dict[Tensor, Matrix] = {}
        first = 0
        for vector in self._joined(source):
            width = vector.shape[-1] if vector.shape else 0
            if vector not in self.vectors or vector in matrices:
                return None
            matrices[vector] = Matrix(weights.data[:, first : first + width], weights)
            first += width
        assert start is not None
        return LinearForm(matrices, start) if first == weights.shape[1] else None

    def _joined(self, source: Tensor) -> tuple[Tensor, ...]:
        """Return the vectors that a value has beside each other along its last axis."""
        node = self.producers.get(source)
        if source in self.vectors or node is None:
            return (source,)
        if isinstance(node.op, Concatenation) and node.op.axis == len(source.shape) - 1:
            return node.inputs
        return (source,)


def _asymmetric(node: Node) -> bool:
    return isinstance(node.op, FullyConnected) and node.op.asymmetric


def _constant(tensor: Tensor) -> LinearForm | None:
    """Return a bias: a constant of float32 with one row."""
    if not tensor.dtype.is_float or not tensor.shape or tensor.type.elements != tensor.shape[-1]:
        return None
    return LinearForm(MappingProxyType({}), tensor.values.reshape(-1))


def _part(node: Node, tensor: Tensor) -> tuple[int, int] | None:
    """Return which of the last axis of its input an output has, if it has all of the others."""
    (source, *more), op = node.inputs, node.op
    if more or not source.shape or not tensor.shape:
        return None
    width, axis = source.shape[-1], len(source.shape) - 1
    if isinstance(op, Reshape):
        return (0, width) if tensor.shape[-1] == width else None
    if isinstance(op, StridedSlice):
        whole = all(
            (begin, stride, extent) == (0, 1, size)
            for begin, stride, extent, size in zip(
                op.begin[:-1], op.strides[:-1], op.extent[:-1], source.shape[:-1], strict=True
            )
        )
        is_part = whole and op.strides[-1] == 1 and tensor.shape[-1] == op.extent[-1]
        return (op.begin[-1], op.extent[-1]) if is_part else None
    assert isinstance(op, Split)
    if op.axis != axis:
        return None
    sizes = [output.shape[-1] for output in node.outputs]
    number = node.outputs.index(tensor)
    return sum(sizes[:number]), sizes[number]
