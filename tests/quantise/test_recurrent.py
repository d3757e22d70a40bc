"""LSTMs: cells of 16 bits in a power of two, one scale for hidden states, bits of the reference."""

from __future__ import annotations

import math

import numpy as np
import pytest

import microtir
from microtir import host
from microtir.dtype import DType
from microtir.frontend import from_tflite
from microtir.graph.ir import Array, Graph, Tensor
from microtir.module.ir_module import IRModule
from microtir.operators.recurrent.definition import Lstm
from microtir.quantise import LayerWidth, QuantiseOptions, Width, quantise
from microtir.quantise.recurrent import cell_range
from microtir.quantise.runs import stored
from microtir.rewrite.reference import execute
from microtir.writers import tflite_bytes
from tests.support.float_networks import floats
from tests.support.graphs import constant, graph, node, tensor
from tests.support.litert import run_litert_steps
from tests.support.tflm import run_tflm_sequence

_STEPS, _INPUTS, _UNITS = 6, 3, 4


def _network(*, starts_at_zero: bool, time_major: bool = False) -> Graph:
    """Return an LSTM whose states begin at 0, or as the caller says."""
    lead = (_STEPS, 1) if time_major else (1, _STEPS)
    x, y = tensor("x", (*lead, _INPUTS)), tensor("y", (*lead, _UNITS))
    states = tuple(tensor(name, (1, _UNITS)) for name in ("hidden", "cell"))
    zeros = tuple(constant(t.name, np.zeros(t.shape, np.float32)) for t in states)
    weights = [constant(f"w{n}", floats(n, _UNITS, _INPUTS)) for n in range(4)]
    recurrent = [constant(f"r{n}", floats(9 + n, _UNITS, _UNITS, spread=0.4)) for n in range(4)]
    biases = [constant(f"b{n}", floats(20 + n, _UNITS, spread=0.3)) for n in range(4)]
    outputs: list[Tensor] = [y, *(tensor(f"{t.name}_after", t.shape) for t in states)]
    inputs = (x, *(zeros if starts_at_zero else states), *weights, *recurrent, *biases)
    arguments = [x] if starts_at_zero else [x, *states]
    results = outputs[:1] if starts_at_zero else outputs
    return graph([node(Lstm(time_major), inputs, outputs)], arguments, results)


def _samples(model: Graph, count: int = 40) -> dict[str, Array]:
    return {t.name: floats(n, count, *t.shape) * 0.8 for n, t in enumerate(model.inputs)}


@pytest.mark.parametrize("starts_at_zero", [True, False])
@pytest.mark.parametrize(("width", "least"), [(Width.INT8, 20.0), (Width.INT16, 35.0)])
def test_integers_stand_for_floats(*, starts_at_zero: bool, width: Width, least: float) -> None:
    """The loss is bounded, and C computes the bits of the reference."""
    model = _network(starts_at_zero=starts_at_zero, time_major=width is Width.INT16)
    result = quantise(model, _samples(model), QuantiseOptions(width))
    assert not result.floats
    assert min(layer.sqnr for layer in result.layers) >= least
    rng = np.random.default_rng(3)
    inputs = {
        t.name: rng.integers(t.dtype.min, t.dtype.max, t.shape, t.dtype.value, endpoint=True)
        for t in result.graph.inputs
    }
    program = host.load(microtir.build(IRModule(graph=result.graph)), opt_level=0)
    actual = program.run(inputs)
    for name, expected in execute(result.graph, inputs).items():
        np.testing.assert_array_equal(actual[name], expected)


def test_scales_are_those_of_the_format() -> None:
    """Cells in a power of two that holds them, hidden states in one scale, weights symmetric."""
    model = _network(starts_at_zero=False)
    samples = _samples(model)
    result = quantise(model, samples)
    lstm = result.graph.nodes[0]
    _, hidden, cell = (t.type for t in lstm.inputs[:3])
    assert hidden.quantization == lstm.outputs[0].type.quantization
    assert hidden.quantization == lstm.outputs[1].type.quantization
    assert cell == lstm.outputs[2].type
    assert cell.dtype is DType.INT16
    assert math.log2(cell.quant.scale).is_integer()
    assert cell.quant.zero_points == (0,)
    assert all(t.type.quant.zero_points == (0,) for t in lstm.inputs[3:])
    runs = [{name: array[n] for name, array in samples.items()} for n in range(40)]
    low, high = cell_range(model.nodes[0], runs)
    assert max(-low, high) <= cell.quant.scale * DType.INT16.max


def test_a_state_that_begins_at_zero_is_symmetric() -> None:
    """Whatever the range: a constant state is legal with the zero point 0 alone."""
    model = _network(starts_at_zero=True)
    for seed in range(20):
        samples = {"x": floats(seed, 5, 1, _STEPS, _INPUTS, spread=0.1 + seed / 7)}
        result = quantise(model, samples, QuantiseOptions(correct_bias=False, rounding_work=0.0))
        assert result.floats == ()


@pytest.mark.parametrize("time_major", [False, True])
def test_files_of_layers_that_begin_at_zero_do_so_in_every_run(*, time_major: bool) -> None:
    """Whatever the format keeps: tflite-micro, LiteRT and C give one result three times."""
    model = _network(starts_at_zero=True, time_major=time_major)
    result = quantise(model, _samples(model), QuantiseOptions(rounding_work=0.0))
    file = tflite_bytes(result.graph)
    x = _samples(model)["x"][0]
    inputs = {"x": stored(x, result.graph.inputs[0].type)}
    expected = execute(result.graph, inputs)["y"]
    for (actual,) in run_tflm_sequence(file, [[inputs["x"]]] * 3):
        np.testing.assert_array_equal(actual, expected)
    for (actual,) in run_litert_steps(file, [[inputs["x"]]] * 3):
        assert np.abs(actual.astype(int) - expected).max() <= 1  # its curves are no tables
    again = from_tflite(file)
    assert again.graph is not None and not again.graph.states
    program = host.load(microtir.build(again), opt_level=0)
    for _ in range(3):
        np.testing.assert_array_equal(program.run(inputs)["y"], expected)


def test_cells_of_each_step_count() -> None:
    """The extremes are those behind every step, not behind the last one alone."""
    model = _network(starts_at_zero=False)
    run = {name: array[0] for name, array in _samples(model).items()}
    run["x"][:, -3:] *= 0
    run["x"][:, 0] *= 20
    low, high = cell_range(model.nodes[0], [run])
    last = execute(model, run)["cell_after"]
    assert low <= last.min()
    assert high >= last.max()
    assert (low, high) != (last.min(), last.max())


def test_an_lstm_may_stay_in_floats() -> None:
    """By its name, as any layer."""
    model = _network(starts_at_zero=True)
    options = QuantiseOptions(layers=(LayerWidth("y_*", Width.FLOAT),))
    with pytest.raises(
        microtir.MicrotirError, match="no layer of the model has an integer version"
    ):
        quantise(model, _samples(model), options)
