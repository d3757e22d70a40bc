"""What quantisation cost: which layer is the worst, what would mend it, what is odd."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from microtir.graph.ir import Array, Graph
from microtir.operators.common.attributes import Activation
from microtir.operators.convolution.definition import Conv2D
from microtir.quantise import Calibration, QuantiseOptions, Width, quantise
from microtir.quantise.cost import cost
from microtir.quantise.summary import LOW, Remedy, Summary, summed_up
from microtir.report import quantisation
from microtir.report.html import to_cost
from tests.support.float_networks import floats
from tests.support.graphs import constant, graph, node, tensor

_COUNT = 60


def _network(activation: Activation) -> Graph:
    """Return two convolutions of one pixel; the first has a channel without weights."""
    x, y, z = (tensor(name, (1, 8, 8, n)) for name, n in (("x", 4), ("y", 6), ("z", 4)))
    weights = floats(1, 6, 1, 1, 4)
    weights[2] = 0
    first = (x, constant("w1", weights), constant("b1", floats(2, 6, spread=0.1)))
    second = (y, constant("w2", floats(3, 4, 1, 1, 6)), constant("b2", floats(4, 4)))
    nodes = [node(Conv2D(activation=activation), first, y), node(Conv2D(), second, z)]
    return graph(nodes, [x], [z])


def _samples(outlier: float) -> dict[str, Array]:
    """Return samples of which one pixel is much larger than all others."""
    values = floats(5, _COUNT, 1, 8, 8, 4)
    values[0, 0, 3, 3] *= outlier
    return {"x": values}


def _summary(
    options: QuantiseOptions, outlier: float = 1.0, activation: Activation = Activation.RELU
) -> Summary:
    options = replace(options, rounding_work=0.0, correct_bias=False)
    samples = _samples(outlier)
    result = quantise(_network(activation), samples, options)
    return summed_up(result, cost(result, samples, options.holdout), _COUNT, options, ["odd"])


def test_the_worst_layer_has_a_remedy() -> None:
    """It is the one of least SQNR; the next width is named, and layers that are well have none."""
    summary = _summary(QuantiseOptions(Width.WEIGHTS4))
    worst = summary.worst
    assert worst is not None
    assert worst.figures.sqnr == min(layer.figures.sqnr for layer in summary.layers)
    assert worst.wider is Width.INT8 and Remedy.WIDER in worst.remedies
    well = [one for one in summary.layers if one.figures.sqnr > max(LOW, worst.figures.sqnr)]
    assert all(one.remedies == () for one in well)
    assert _summary(QuantiseOptions()).worst != worst


@pytest.mark.parametrize(
    ("calibration", "activation", "remedies"),
    [
        (Calibration.MINMAX, Activation.RELU,
         {Remedy.PERCENTILE, Remedy.WIDER, Remedy.ACTIVATION}),
        (Calibration.MINMAX, Activation.RELU6, {Remedy.WIDER}),
        (Calibration.PERCENTILE, Activation.RELU,
         {Remedy.WHOLE_RANGE, Remedy.WIDER, Remedy.ACTIVATION}),
        (Calibration.AUTO, Activation.RELU, {Remedy.WIDER, Remedy.ACTIVATION}),
    ],
)  # fmt: skip
def test_remedies_follow_from_ranges(
    calibration: Calibration, activation: Activation, remedies: set[Remedy]
) -> None:
    """An outlier asks for a percentile or a bound, clipping for all values; AUTO has tried them."""
    options = QuantiseOptions(calibration=calibration, percentile=90.0, layers=())
    summary = _summary(options, outlier=300.0, activation=activation)
    first = summary.layers[0]
    is_looked_at = first is summary.worst or first.figures.sqnr < LOW
    assert set(first.remedies) == (remedies if is_looked_at else set())
    assert is_looked_at or activation is Activation.RELU6
    assert bool(summary.clipping) == (calibration is Calibration.PERCENTILE)


def test_the_screen_says_what_is_odd() -> None:
    """Dead channels, clipped values and outliers stand beside their layers, notes behind them."""
    options = QuantiseOptions(calibration=Calibration.PERCENTILE, percentile=90.0)
    summary = _summary(options, outlier=300.0)
    rows = quantisation.layer_table(summary).rows
    assert "1 channels of weights are 0" in rows[0][-1]
    assert "of its values clipped" in rows[0][-1] and "times as wide" in rows[0][-1]
    said = quantisation.notes(summary)
    assert any("': --calibration min-max" in note for note in said)
    assert any("values outside of the range are clipped: " in note for note in said)
    assert said[-1] == "note: odd"
    assert ("measured on", "12 of 60 samples, that did not calibrate") in quantisation.facts(
        summary
    )


def test_a_long_table_has_the_worst() -> None:
    """Of more layers than rows those of least SQNR are shown, and how many others there are."""
    summary = _summary(QuantiseOptions())
    assert summary.worst is not None
    table = quantisation.layer_table(summary, most=1)
    assert [row[0] for row in table.rows] == [summary.worst.figures.name] and table.marked == 0
    assert quantisation.notes(summary, most=1)[0].startswith("1 others have ")


def test_names_are_text_on_the_page() -> None:
    """A layer's name cannot become markup."""
    summary = _summary(QuantiseOptions())
    evil = replace(summary.layers[0].figures, name="<b onclick=1>", sqnr=-3.0)
    page = to_cost(replace(summary, layers=(replace(summary.layers[0], figures=evil),)))
    assert "&lt;b onclick=1&gt;" in page and "<b onclick" not in page
    assert np.isfinite(evil.sqnr) and 'class="marked"' in page
