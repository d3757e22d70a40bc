"""What pushes of frames cost beside whole windows: recorded, and no dearer now."""

from __future__ import annotations

from pathlib import Path

import pytest

import microtir
from benchmarks import over_time
from benchmarks.boards import TOLERANCE
from microtir.boards import load_board
from microtir.rewrite.facts.macs import macs
from scripts.models import keyword_spotter
from scripts.models.keyword_spotter import TimePadding


def test_every_way_is_recorded_within_its_bounds() -> None:
    """Without padding in time a push takes a tenth at most, with kws's padding its floor."""
    recorded = over_time.read_recorded()
    assert set(recorded) == set(over_time.MODELS)
    for ways in recorded.values():
        assert tuple(ways) == tuple(f"{goal}, {hop}" for goal, hop in over_time.WAYS)
    assert max(price.share for price in recorded[over_time.TWIN].values()) <= 0.10
    for price in recorded[over_time.KWS].values():
        assert 0.41 < price.share_of_macs < 0.42
        assert price.share <= 0.48


@pytest.mark.model("kws_int8")
def test_the_twin_has_the_layers_of_kws() -> None:
    """With padding in time as many multiply-accumulates, layer by layer."""
    twin = microtir.frontend.from_tflite(keyword_spotter.keyword_spotter(TimePadding.SAME)).graph
    model = over_time.module_of(over_time.KWS).graph
    assert twin is not None and model is not None
    same, known = ([n for n in map(macs, graph.nodes) if n] for graph in (twin, model))
    assert same == known


def test_the_script_writes_the_twin(tmp_path: Path) -> None:
    """The same bytes each time; without padding in time unless that is asked for."""
    file = tmp_path / "twin.tflite"
    keyword_spotter.main([str(file)])
    assert file.read_bytes() == keyword_spotter.keyword_spotter(TimePadding.VALID)
    keyword_spotter.main([str(file), "--time", "same"])
    assert file.read_bytes() == keyword_spotter.keyword_spotter(TimePadding.SAME)


def test_pushes_did_not_grow_dearer() -> None:
    """One of the recorded pairs is measured again, and its pushes are compared on the board."""
    before = over_time.read_recorded()[over_time.TWIN]["speed, 1"]
    now = over_time.price(over_time.TWIN, "speed", 1, load_board(over_time.BOARD))
    assert now.push <= before.push * (1 + TOLERANCE), "python -m benchmarks over-time --record"
