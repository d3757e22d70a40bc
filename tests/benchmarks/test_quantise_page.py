"""The page on quantisation shows the losses that were recorded, and they keep to the goals."""

from __future__ import annotations

from statistics import mean
from typing import Any

import numpy as np
import pytest

from benchmarks.quantise.__main__ import WEIGHTS
from benchmarks.quantise.networks import NETWORKS, onnx_file
from benchmarks.quantise.page import CRITICAL, PAGE, compared, read_recorded, renewed
from benchmarks.quantise.training import SEEDS, weights_file
from microtir import frontend
from microtir.rewrite.reference import execute

MOST_LOST = 0.2  # points above the best of the others, at int8
MOST_GROWN = 0.5  # percent of the mean squared error above the best of the others, at int8
MOST_BY_LAYER = 0.5  # points, with bits by layer
MOST_WEIGHTS = 0.65  # of the bytes of int8, with bits by layer

NETWORKS_RECORDED: dict[str, dict[str, Any]] = read_recorded()["networks"]


def test_the_page_has_what_was_recorded() -> None:
    """`python -m benchmarks.quantise ... --record` writes both."""
    page = PAGE.read_text("utf-8")
    assert renewed(page, read_recorded()) == page


def test_every_network_is_recorded() -> None:
    """With all seeds, at int8, with float ports as those of the others."""
    assert set(NETWORKS_RECORDED) == set(NETWORKS)
    for by_name in NETWORKS_RECORDED.values():
        assert len(by_name["microtir"]["losses"]) == SEEDS


@pytest.mark.parametrize("network", NETWORKS_RECORDED)
def test_int8_loses_no_more_than_the_best_of_the_others(network: str) -> None:
    """By little in the mean, and not significantly, split by split."""
    pair = compared(NETWORKS_RECORDED[network])
    assert pair.difference <= (MOST_LOST if NETWORKS[network].task.classes else MOST_GROWN)
    assert pair.difference <= CRITICAL * pair.error


@pytest.mark.parametrize("network", NETWORKS_RECORDED)
def test_bits_by_layer_are_worth_it(network: str) -> None:
    """Weights take two thirds of the bytes of int8 at the most, and little is lost."""
    one = NETWORKS_RECORDED[network]["microtir bits by layer"]
    assert one["weights"] <= MOST_WEIGHTS and mean(one["losses"]) <= MOST_BY_LAYER


@pytest.mark.parametrize("network", NETWORKS.values(), ids=NETWORKS.keys())
def test_weights_of_the_first_seed_are_there(network: Any) -> None:
    """The float file that they make computes an answer for each class."""
    with np.load(weights_file(WEIGHTS, network.name, 0)) as file:
        weights = [file[name] for name in file.files]
    graph = frontend.read_model(onnx_file(network, weights)).graph
    assert graph is not None
    (port,) = graph.arguments
    (outputs,) = execute(graph, {port.name: np.ones(port.shape, np.float32)}).values()
    assert outputs.size == network.units and np.isfinite(outputs).all()
