"""Operators cut into bands of columns: the same outputs, and every multiply-accumulate counted."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from microtir.graph.ir import Graph, Tensor
from microtir.operators.convolution.definition import Conv2D, DepthwiseConv2D
from microtir.rewrite import verify
from microtir.rewrite.facts.columns import Columns, ColumnWindow, Cut, bands_of, demanded, width_of
from microtir.rewrite.facts.macs import macs
from microtir.rewrite.reference import execute
from microtir.rewrite.variants import CutColumns
from tests.support.streams import Garden


def legal_cuts(graph: Graph, bands: int) -> Iterator[Cut]:
    """Every run of two operators or more that can be cut into so many bands."""
    seen_by: dict[Tensor, list[int]] = {}
    for number, node in enumerate(graph.nodes):
        for tensor in node.inputs:
            seen_by.setdefault(tensor, []).append(number)
    for stop in range(2, len(graph.nodes) + 1):
        image = graph.nodes[stop - 1].output
        if len(image.shape) != 4 or image.shape[0] != 1 or width_of(image) < bands:
            continue
        for start in range(stop - 2, -1, -1):
            nodes = graph.nodes[start:stop]
            inner = [node.output for node in nodes[:-1]]
            last = [stop if t in graph.outputs else max(seen_by.get(t, [stop])) for t in inner]
            found = [demanded(nodes, c) for c in bands_of(width_of(image), bands)]
            if all(n < stop for n in last) and all(
                f is not None and all(t in f for t in inner) for f in found
            ):
                yield Cut(start, stop, bands)


def random_cut(seed: int) -> tuple[Graph, Cut, Graph]:
    """A graph of wide images, one of its cuts, and the graph that is cut."""
    garden = Garden(seed, height=6, width=14)
    graph = garden.graph(int(garden.rng.integers(2, 8)))
    cuts = list(legal_cuts(graph, garden.pick(2, 3)))
    assume(cuts)
    cut = cuts[garden.pick(*range(len(cuts)))]
    return graph, cut, CutColumns((cut,))(graph)


@settings(deadline=None, max_examples=60)
@given(st.integers(0, 2**20))
def test_bands_compute_the_same(seed: int) -> None:
    """Residuals, strides, dilations, borders: a graph that is cut is legal and gives equal bits."""
    graph, _, cut = random_cut(seed)
    verify.verify(cut)
    rng = np.random.default_rng(seed)
    x = rng.integers(-128, 128, graph.inputs[0].shape).astype(np.int8)
    expected, got = (execute(g, {graph.inputs[0].name: x}) for g in (graph, cut))
    for tensor in graph.outputs:
        np.testing.assert_array_equal(got[tensor.name], expected[tensor.name])


@settings(deadline=None, max_examples=60)
@given(st.integers(0, 2**20))
def test_every_column_that_is_computed_twice_is_counted(seed: int) -> None:
    """Less what is said to be recomputed, each column that somebody needs is computed once."""
    graph, cut, bands = random_cut(seed)
    nodes = graph.nodes[cut.start : cut.stop]
    wanted = [demanded(nodes, c) for c in bands_of(width_of(nodes[-1].output), cut.bands)]
    once = sum(macs(node) for node in graph.nodes if node not in nodes)
    for node in nodes:
        columns = {
            column
            for found in wanted
            if found is not None
            for column in range(found[node.output].first, found[node.output].stop)
        }
        once += len(columns) * macs(node) // width_of(node.output)
    executed = sum(map(macs, bands.nodes))
    recomputed = sum(node.source.macs_recomputed for node in bands.nodes)
    assert executed - recomputed == once
    assert recomputed >= 0


@pytest.mark.parametrize("bands", [2, 3, 5])
def test_the_file_is_shared_out_among_the_bands(bands: int) -> None:
    """What a model file counts for an operator is what its bands count together."""
    graph = next(g for g in (Garden(s, width=14).graph(6) for s in range(99)) if _has(g, bands))
    cut = next(legal_cuts(graph, bands))
    made = CutColumns((cut,))(graph)
    for node in graph.nodes[cut.start : cut.stop]:
        parts = [n for n in made.nodes if n.name.startswith(f"{node.name}, ") and n.op.name in (
            Conv2D.name, DepthwiseConv2D.name)]  # fmt: skip
        if macs(node) and demanded_all(graph, cut, node.output):
            assert sum(part.source.macs for part in parts) == macs(node)


def demanded_all(graph: Graph, cut: Cut, tensor: Tensor) -> bool:
    """Whether the bands need the last column of a tensor, too."""
    nodes = graph.nodes[cut.start : cut.stop]
    last = demanded(nodes, bands_of(width_of(nodes[-1].output), cut.bands)[-1])
    return last is not None and last[tensor].stop == width_of(tensor)


def _has(graph: Graph, bands: int) -> bool:
    return next(legal_cuts(graph, bands), None) is not None


def test_bands_are_columns_and_borders_are_padding() -> None:
    """Windows of three around a band reach a column further, where there is one."""
    window = ColumnWindow(stride=1, offset=-1, extent=3)
    left, right = bands_of(7, 2)
    assert (left, right) == (Columns(0, 3), Columns(3, 7))
    assert window.needed(left, 7) == Columns(0, 4)
    assert window.needed(right, 7) == Columns(2, 7)
    assert window.padding(left, Columns(0, 4)) == (1, 0)
    assert window.padding(right, Columns(2, 7)) == (0, 1)
