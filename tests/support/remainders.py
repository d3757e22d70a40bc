"""Random layers, thinned out: of many cases those that add a remainder, an attribute or a pair.

Kernels differ by what is left over where a count is not a multiple of their register blocks, and by
borders, strides and biases.  A case that has nothing which another one has not shown costs a
compilation and shows nothing.  The first few cases have most of it: for every change those run that
add several features at once, in the soak all that add one.
"""

from __future__ import annotations

import re
from collections.abc import Hashable, Iterable
from itertools import combinations

from microtir.graph.ir import Node
from microtir.operators.convolution.definition import Conv2D, DepthwiseConv2D
from microtir.operators.pooling.definition import AveragePool2D, MaxPool2D
from tests.support.dsp_cases import DspCase
from tests.support.seeds import is_soak

_LANES = 16  # channels of the widest blocks
_PIXELS = 4


def thinned(cases: Iterable[DspCase], several: int = 3) -> list[DspCase]:
    """Return few cases that have the features and pairs of remainders of all, greedily.

    Args:
        cases: of any kinds, each thinned by itself.
        several: features that a case must add to be run for every change; in the soak it is one.
    """
    least = 1 if is_soak() else several
    left = {case.name: (case, named_features(case)) for case in cases}
    kept: list[DspCase] = []
    while left:
        best, shown = max(left.values(), key=lambda pair: len(pair[1]))
        if len(shown) < least:
            break
        kept.append(best)
        left = {name: (case, more - shown) for name, (case, more) in left.items()}
    return kept


def named_features(case: DspCase) -> set[tuple[Hashable, ...]]:
    """Return the features of a case, each with the kind of the case."""
    kind = re.sub(r"_\d+", "", case.name)
    nodes = case.graph.nodes[:1]
    return {(kind, *feature) for node in nodes for feature in features_of(node)}


def remainders_of(node: Node) -> dict[str, int]:
    """Return what is left of the counts that kernels work through in blocks."""
    x, y = node.inputs[0], node.output
    pixels = y.type.elements // y.shape[-1]
    return {
        "inputs": x.shape[-1] % 4,
        "outputs": y.shape[-1] % 4,
        "pixels": pixels % 2,
        "row": y.shape[-2] % 4 if len(y.shape) > 2 else 0,
    }


def _blocks_of(count: int, block: int) -> int:
    """Return a count below one block as it is, and of a larger one what it leaves of blocks.

    A kernel takes counts that fill no block another way: 3 channels do not stand for 19.
    """
    return count if count < block else block + count % block


def features_of(node: Node) -> set[tuple[Hashable, ...]]:
    """Return remainders, their pairs and the attributes of a layer."""
    remainders = remainders_of(node)
    x, y = node.inputs[0], node.output
    found: set[tuple[Hashable, ...]] = set(combinations(remainders.items(), 2))
    # Kernels of words take layers whose inputs are whole words only.
    outputs = _blocks_of(y.shape[-1], _LANES), remainders["inputs"] == 0
    found |= {("lanes", _blocks_of(x.shape[-1], _LANES)), ("lanes of outputs", *outputs)}
    if len(y.shape) > 2:
        found.add(("pixels of a row", _blocks_of(y.shape[-2], _PIXELS)))
    found |= {("inputs", len(node.inputs)), ("same", node.inputs[0] is node.inputs[-1])}
    op = node.op
    found.add(("activation", getattr(op, "activation", None)))
    if isinstance(op, Conv2D | DepthwiseConv2D | AveragePool2D | MaxPool2D):
        padding = op.padding
        found |= {
            ("strides", op.strides),
            ("above", padding.top > 0), ("below", padding.bottom > 0),
            ("left", padding.left > 0), ("right", padding.right > 0),
        }  # fmt: skip
    if isinstance(op, Conv2D | DepthwiseConv2D):
        found |= {("taps", node.inputs[1].shape[1:3]), ("dilations", op.dilations)}
    return found
