"""Networks of the page of results: readable, as large as they are said to be, and as recorded."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.prices import read_prices
from benchmarks.results import BOARDS, PAGE, RECORDED, Price, page
from microtir import frontend
from microtir.rewrite.facts.macs import macs
from scripts.models.shapes import SHAPES

# Multiply-accumulates as publications give them, of networks whose layers these are.
PUBLISHED = {
    "autoencoder-640": 0.264e6,
    "ds-cnn-s": 2.66e6,
    "resnet8": 12.5e6,
    "mobilenet-v1-0.25-96": 7.5e6,
    "person-detection": 7.2e6,
}


@pytest.mark.parametrize("name", SHAPES)
def test_a_shape_is_a_model(name: str, tmp_path: Path) -> None:
    """The frontend takes each; where its size is known, it is that within a tenth."""
    path = tmp_path / f"{name}.tflite"
    path.write_bytes(SHAPES[name][1]())
    graph = frontend.from_tflite(path).graph
    assert graph is not None
    work = sum(map(macs, graph.nodes))
    assert work > 1000
    if name in PUBLISHED:
        assert work == pytest.approx(PUBLISHED[name], rel=0.1)


def test_the_page_is_that_of_the_figures() -> None:
    """Its networks are these, each on all boards, and nobody changed it by hand."""
    recorded = read_prices(RECORDED, Price)
    assert recorded.keys() <= SHAPES.keys()
    assert all(tuple(prices) == BOARDS for prices in recorded.values())
    assert PAGE.read_text(encoding="utf-8") == page(recorded)
