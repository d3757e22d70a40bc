"""Read ONNX's Einsum as products of stacks of matrices, and Det as sums of products."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from microtir.graph.ir import Tensor
from microtir.operators.common.onnx_arithmetic import add, mul, sub
from microtir.operators.common.onnx_operands import MANY, OnnxNode, OnnxReader
from microtir.operators.common.onnx_parts import box, int32s, reshaped, transposed
from microtir.operators.indexing.definition import Gather
from microtir.operators.matmul.definition import BatchMatmul
from microtir.operators.reduction.definition import Sum

_MOST_ORDER = 4  # of a determinant, whose terms are its factorial


@dataclass(frozen=True, slots=True)
class _Labelled:
    """A tensor with a letter for each axis."""

    tensor: Tensor
    letters: str

    def extents(self) -> dict[str, int]:
        return dict(zip(self.letters, self.tensor.shape, strict=True))


def einsum(node: OnnxNode) -> Tensor:
    """Read Einsum: operands are multiplied one after the other, and letters summed once unused."""
    terms, result = _equation(node)
    operands = [_diagonal(node, x, term) for x, term in zip(node.present, terms, strict=True)]
    total = _summed(node, operands[0], "".join(terms[1:]) + result)
    for number, other in enumerate(operands[1:], 2):
        labels = "".join(terms[number:]) + result
        total = _product(node, total, other, labels)
    total = _summed(node, total, result)
    return transposed(node, total.tensor, [total.letters.index(letter) for letter in result])


def _equation(node: OnnxNode) -> tuple[list[str], str]:
    """Return the letters of operands and of the result; capital ones stand for an ellipsis."""
    text = node.word("equation").replace(" ", "")
    left, arrow, right = text.partition("->")
    terms = left.split(",")
    if len(terms) != len(node.inputs):
        raise node.malformed(f"the equation {text!r} of {len(node.inputs)} inputs")
    widest, spread = 0, []
    for term, x in zip(terms, node.present, strict=True):
        count = len(x.shape) - len(term.replace("...", "")) if "..." in term else 0
        widest = max(widest, count)
        spread.append(count)
    names = "".join(chr(0x100 + n) for n in range(widest))
    terms = [
        term.replace("...", names[widest - count :] if count else "")
        for term, count in zip(terms, spread, strict=True)
    ]
    if not arrow:
        letters = "".join(term for term in left.replace("...", "").split(","))
        right = "..." + "".join(sorted(c for c in set(letters) if letters.count(c) == 1))
    result = right.replace("...", names)
    is_known = all(
        len(term) == len(x.shape) for term, x in zip(terms, node.present, strict=True)
    ) and set(result) <= set("".join(terms))
    if not is_known or len(set(result)) < len(result):
        raise node.malformed(f"the equation {text!r} for {[x.shape for x in node.present]}")
    return terms, result


def _diagonal(node: OnnxNode, x: Tensor, term: str) -> _Labelled:
    """Return an operand with each letter once: of axes of one letter the diagonal."""
    letters = "".join(dict.fromkeys(term))
    if letters == term:
        return _Labelled(x, term)
    extents = dict(zip(term, x.shape, strict=True))
    shape = tuple(extents[letter] for letter in letters)
    at = dict(zip(letters, np.indices(shape), strict=True))
    places = np.zeros(shape, np.int64)
    for axis, letter in enumerate(term):
        places += at[letter] * math.prod(x.shape[axis + 1 :])
    flat = reshaped(node, x, x.type.elements)
    return _Labelled(node.emit(Gather(0), flat, int32s(node, places)), letters)


def _summed(node: OnnxNode, x: _Labelled, labels: str) -> _Labelled:
    """Return a tensor without the axes that nothing needs any more."""
    axes = tuple(n for n, letter in enumerate(x.letters) if letter not in labels)
    if not axes:
        return x
    letters = "".join(letter for letter in x.letters if letter in labels)
    return _Labelled(node.emit(Sum(axes, keep_dims=False), x.tensor), letters)


def _product(node: OnnxNode, a: _Labelled, b: _Labelled, labels: str) -> _Labelled:
    """Return the product of two tensors, summed over the letters that nothing else has."""
    a, b = _summed(node, a, b.letters + labels), _summed(node, b, a.letters + labels)
    common = [letter for letter in a.letters if letter in b.letters]
    stacks = [letter for letter in common if letter in labels]
    inner = [letter for letter in common if letter not in labels]
    rows = [letter for letter in a.letters if letter not in common]
    columns = [letter for letter in b.letters if letter not in common]
    extents = {**a.extents(), **b.extents()}
    for letter in common:
        extents[letter] = max(a.extents()[letter], b.extents()[letter])
    left = _matrices(node, a, stacks, rows, inner)
    right = _matrices(node, b, stacks, inner, columns)
    product = node.emit(BatchMatmul(), left, right)
    letters = "".join((*stacks, *rows, *columns))
    shape = (extents[letter] for letter in letters)
    return _Labelled(reshaped(node, product, *shape), letters)


def _matrices(
    node: OnnxNode, x: _Labelled, stacks: Sequence[str], rows: Sequence[str], columns: Sequence[str]
) -> Tensor:
    order = [x.letters.index(letter) for letter in (*stacks, *rows, *columns)]
    extents = x.extents()
    sides = (math.prod(extents[letter] for letter in side) for side in (stacks, rows, columns))
    return reshaped(node, transposed(node, x.tensor, order), *sides)


def determinant(node: OnnxNode) -> Tensor:
    """Read Det of small matrices, by their first rows."""
    x = node.input(0)
    order = x.shape[-1]
    if order != x.shape[-2] or not 1 <= order <= _MOST_ORDER:
        raise node.unsupported(
            f"a determinant of {x.shape[-2:]}", f"square matrices of up to {_MOST_ORDER} rows",
            "compute it in the application",
        )  # fmt: skip
    outer = x.shape[:-2]

    def element(row: int, column: int) -> Tensor:
        begin = [0] * len(outer) + [row, column]
        return reshaped(node, box(node, x, begin, (*outer, 1, 1)), *outer)

    def minor(row: int, columns: tuple[int, ...]) -> Tensor:
        total = element(row, columns[0])
        if len(columns) == 1:
            return total
        total = mul(node, total, minor(row + 1, columns[1:]))
        for number, column in enumerate(columns[1:], 1):
            rest = columns[:number] + columns[number + 1 :]
            term = mul(node, element(row, column), minor(row + 1, rest))
            total = sub(node, total, term) if number % 2 else add(node, total, term)
        return total

    return minor(0, tuple(range(order)))


ONNX_READERS = (
    OnnxReader("Einsum", einsum, (1, MANY), ("equation",)),
    OnnxReader("Det", determinant, ranks=(2,)),
)
