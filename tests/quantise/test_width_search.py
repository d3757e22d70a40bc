"""The search over widths of layers: exhaustive where that is small, never worse than greedy."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from glob import escape
from itertools import product

import numpy as np
import pytest

import microtir
from microtir import host
from microtir.boards import load_board
from microtir.config import CompilationConfig
from microtir.errors import LossError, UsageError
from microtir.graph.ir import Array, Graph
from microtir.module.ir_module import IRModule
from microtir.quantise import (
    Calibration,
    Goal,
    LayerWidth,
    Limits,
    Price,
    QuantiseOptions,
    Width,
    WidthSearch,
    quantise,
    search_widths,
)
from microtir.quantise.cost import Cost, cost
from microtir.quantise.samples import held_out
from microtir.search.planned_price import planned_price, width_limits
from tests.support.float_networks import chain, floats, image_samples, residual

PLAIN = QuantiseOptions(calibration=Calibration.MINMAX, rounding_work=0, equalise=False)
"""With what `quantise` does for each width as the search does for all of them."""

FREE = Limits(max_loss=1.0)


def price_by_counting(integers: Graph) -> Price:
    """Return sizes and work that follow from types and values alone, without a plan."""
    constants = {t.name: t for n in integers.nodes for t in n.inputs if t.data is not None}
    flash = sum(
        t.type.bytes // (2 if t.dtype.value == "int8" and np.abs(t.data).max() < 8 else 1)
        for t in constants.values()
        if t.data is not None
    )
    activations = [t for n in integers.nodes for t in n.outputs]
    work = sum(t.type.elements * (3 if t.dtype.bytes > 1 else 2) for t in activations)
    return Price(work, flash, max(t.type.bytes for t in activations))


def rows(count: int) -> dict[str, Array]:
    """Return samples of the input of a chain."""
    return {"x0": floats(99, count, 1, 7)}


def tried_alone(
    floats_graph: Graph, samples: dict[str, Array], names: Sequence[str], widths: Sequence[Width]
) -> tuple[Cost, Price]:
    """Return what `quantise` gives for widths by name, and what it costs."""
    layers = tuple(map(LayerWidth, map(escape, names), widths))
    options = replace(PLAIN, layers=(*PLAIN.layers, *layers))
    result = quantise(floats_graph, samples, options)
    return cost(result, samples, options.holdout), price_by_counting(result.graph)


def test_few_layers_are_searched_exhaustively() -> None:
    """Every point is what `quantise` gives, and the frontier that of all of them."""
    model, samples = chain(3), rows(30)
    found = search_widths(model, samples, FREE, price_by_counting, PLAIN)
    assert found.is_exhaustive and len(found.points) == 27
    names = [layer.node.name for layer in found.layers]
    figures = {}
    for widths in product((Width.INT8, Width.WEIGHTS4, Width.INT16), repeat=3):
        loss, price = tried_alone(model, samples, names, widths)
        figures[widths] = (price.flash, price.work, loss.loss)
    assert {point.widths: point.figures for point in found.points} == figures
    best = {
        one
        for one in figures.values()
        if not any(
            other != one and all(a <= b for a, b in zip(other, one, strict=True))
            for other in figures.values()
        )
    }
    assert [point.figures for point in found.frontier] == sorted(best)
    assert len(best) > 3


def _greedy(model: Graph, samples: dict[str, Array], names: Sequence[str], limits: Limits) -> Price:
    """Narrow layers in the order of what that costs alone, as long as the loss is kept."""
    base = [Width.INT8] * len(names)

    def with_four_bits(widths: Sequence[Width], number: int) -> list[Width]:
        return [Width.WEIGHTS4 if n == number else one for n, one in enumerate(widths)]

    alone = [
        tried_alone(model, samples, names, with_four_bits(base, n))[0].loss
        for n in range(len(names))
    ]
    widths = base
    for number in np.argsort(alone, kind="stable"):
        narrower = with_four_bits(widths, int(number))
        if tried_alone(model, samples, names, narrower)[0].loss <= limits.max_loss:
            widths = narrower
    return tried_alone(model, samples, names, widths)[1]


@pytest.mark.parametrize("max_loss", [0.02, 0.06])
def test_many_layers_come_out_no_worse_than_greedy(max_loss: float) -> None:
    """Eight layers are not searched exhaustively, and take no more flash than greedily chosen."""
    model, samples = chain(8), rows(30)
    limits = Limits(max_loss, goal=Goal.FLASH)
    found = search_widths(model, samples, limits, price_by_counting, PLAIN)
    assert not found.is_exhaustive and len(found.points) < 200
    names = [layer.node.name for layer in found.layers]
    greedy = _greedy(model, samples, names, limits)
    assert found.best.is_within(limits)
    assert found.best.price.flash <= greedy.flash
    assert found.best.price.flash < price_by_counting(quantise(model, samples, PLAIN).graph).flash


def test_layers_become_wider_where_int8_loses_too_much() -> None:
    """What int8 cannot keep is reached with activations of 16 bits in some of the layers."""
    model, samples = chain(8), rows(30)
    int8 = cost(quantise(model, samples, PLAIN), samples, PLAIN.holdout).loss
    limits = Limits(int8 * 0.6)
    found = search_widths(model, samples, limits, price_by_counting, PLAIN)
    assert found.best.is_within(limits)
    assert Width.INT16 in found.best.widths
    assert cost(found.quantised(), samples, PLAIN.holdout).loss == found.best.loss


def test_sensitivity_is_that_of_one_layer() -> None:
    """Each row has the loss with the others at int8; a layer without 4 bits lacks them."""
    model, samples = chain(2), rows(30)
    found = search_widths(model, samples, FREE, price_by_counting, PLAIN)
    for number, row in enumerate(found.sensitivity):
        assert set(row.points) == {Width.INT8, Width.WEIGHTS4, Width.INT16}
        for width, point in row.points.items():
            assert all(
                one is (width if n == number else Width.INT8) for n, one in enumerate(point.widths)
            )
        assert row.points[Width.WEIGHTS4].error > row.points[Width.INT8].error
        assert row.points[Width.WEIGHTS4].weights == found.points[0].weights - 49 + 25


def _classes(model: Graph, samples: dict[str, Array]) -> Iterator[int]:
    result = quantise(model, samples, PLAIN)
    runs = microtir.quantise.cost.Reference.of(result.floats_graph, samples, 0.0, None)
    for answer in runs.answers:
        (output,) = answer.values()
        yield int(output.argmax())


def test_labels_make_the_loss_one_of_accuracy() -> None:
    """With the classes that floats choose the loss is the share of samples decided otherwise."""
    model, samples = chain(3), rows(50)
    labels = np.array(list(_classes(model, samples)))
    found = search_widths(model, samples, FREE, price_by_counting, PLAIN, labels)
    assert len(found.reference.runs) == 10
    losses = {round(point.loss * 10, 9) for point in found.points}
    assert all(loss == round(loss) for loss in losses) and max(losses) >= 1


def test_what_cannot_be_kept_is_refused_with_the_best() -> None:
    """The refusal has the limits, the least loss that fits, and the nearest that keeps the loss."""
    model, samples = chain(3), rows(30)
    free = search_widths(model, samples, FREE, price_by_counting, PLAIN)
    least = min(point.price.flash for point in free.points)
    found = search_widths(model, samples, Limits(1e-6, flash=least), price_by_counting, PLAIN)
    with pytest.raises(LossError) as refusal:
        found.quantised()
    text = str(refusal.value)
    assert f"a loss of 0.000%, {least:,} bytes of flash" in text
    assert (
        f"the least loss within the budgets is {found.best.loss:.3%} with {least:,} bytes" in text
    )
    within = search_widths(
        model, samples, Limits(1.0, flash=least), price_by_counting, PLAIN,
        widths=[Width.WEIGHTS4],
    )  # fmt: skip
    assert len(within.points) == 8
    assert within.quantised().weights4 == {"w0", "w1", "w2"}
    tight = search_widths(model, samples, Limits(1.0, flash=9), price_by_counting, PLAIN)
    with pytest.raises(LossError, match="the nearest program within the loss is"):
        tight.quantised()


def _error_of_c(found: WidthSearch, samples: dict[str, Array]) -> float:
    """Return the power of the difference of C from floats, as a share, on held out samples."""
    result = found.quantised()
    model = host.load(microtir.build(IRModule(graph=result.graph)), opt_level=0)
    numbers = held_out(len(samples["x0"]), 0.2)
    runs = microtir.quantise.cost.Reference.of(result.floats_graph, samples, 0.2, None)
    signal = noise = 0.0
    port, wanted = result.graph.inputs[0].type, result.graph.outputs[0].type
    for number, answer in zip(numbers, runs.answers, strict=True):
        real = samples["x0"][number] / np.float32(port.quant.scale)
        stored = np.clip(
            np.trunc(real + np.copysign(0.5, real)) + port.quant.zero_point,
            port.dtype.min, port.dtype.max,
        ).astype(port.dtype.value)  # fmt: skip
        (output,) = model.run({"x0": stored}).values()
        actual = (output.astype(np.float64) - wanted.quant.zero_point) * wanted.quant.scale
        (expected,) = answer.values()
        signal += float(np.square(expected, dtype=np.float64).sum())
        noise += float(np.square(expected - actual).sum())
    return noise / signal


@pytest.mark.tools
def test_a_budget_is_kept_by_the_program() -> None:
    """A board's program keeps to a budget that int8 exceeds, and C loses what was measured."""
    model, samples = chain(3), rows(20)
    pinned = replace(PLAIN, layers=(LayerWidth("x2_*", Width.INT8),))
    config = CompilationConfig.from_target(load_board("mps2_an386").target)
    least = config.with_(optimize="flash")
    free = search_widths(model, samples, width_limits(least, 1.0), planned_price(least), pinned)
    assert [layer.node.name for layer in free.layers] == ["x1_node", "x3_node"]
    assert free.best.price.flash == min(point.price.flash for point in free.points)
    budgeted = config.with_(budget={"flash": free.best.price.flash})
    found = search_widths(
        model, samples, width_limits(budgeted, 1.0), planned_price(budgeted), pinned
    )
    assert found.best.price.flash <= free.best.price.flash
    microtir.lower(IRModule(graph=found.quantised().graph).with_configuration(budgeted))
    assert _error_of_c(found, samples) == pytest.approx(found.best.error, rel=1e-4)


def test_followers_are_as_wide_as_their_layer() -> None:
    """Of 16 bits everywhere nothing is converted; names with brackets are names."""
    model = residual()
    model = replace(
        model, nodes=tuple(replace(n, name=f"net[{i}]") for i, n in enumerate(model.nodes))
    )
    found = search_widths(
        model, image_samples(10), Limits(1.0, goal=Goal.RAM), price_by_counting, PLAIN
    )
    assert [layer.node.op.name for layer in found.layers] == [
        "conv_2d", "depthwise_conv_2d", "conv_2d", "fully_connected",
    ]  # fmt: skip
    assert [n.op.name for n in found.layers[2].followers] == ["add", "average_pool_2d", "reshape"]
    wide = next(p for p in found.points if set(p.widths) == {Width.INT16})
    one = next(p for p in found.points if p.widths.count(Width.INT16) == 1)
    assert wide.price.ram > found.best.price.ram and one.price.work > 0


@pytest.mark.parametrize(
    ("options", "labels", "words"),
    [
        (QuantiseOptions(Width.INT16), None, "cannot begin with 16x8 for all layers"),
        (
            QuantiseOptions(layers=(LayerWidth("*", Width.INT8),)),
            None,
            "whose width the search can",
        ),
        (PLAIN, np.zeros((30, 2, 2)), "the labels are float64"),
        (PLAIN, np.zeros(30), "the labels are float64"),
    ],
)
def test_requests_that_make_no_sense(
    options: QuantiseOptions, labels: Array | None, words: str
) -> None:
    """Each is refused with what is legal."""
    with pytest.raises(UsageError, match=words):
        search_widths(chain(2), rows(30), FREE, price_by_counting, options, labels)
