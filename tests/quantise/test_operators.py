"""Every operator with a form in integers stands for its real numbers."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from microtir.dtype import DType
from microtir.errors import UsageError
from microtir.graph.ir import Array, Graph
from microtir.operators.conditions.definition import Greater
from microtir.operators.selection.definition import Select
from microtir.quantise import Calibration, QuantiseOptions, Width, quantise
from microtir.rewrite.verify import verify
from tests.support import graphs
from tests.support.operator_cases import OPERATORS, generate
from tests.support.sketch import Case

SEEDS = (0, 1)
PLAIN = QuantiseOptions(calibration=Calibration.MINMAX, correct_bias=False, rounding_work=0.0)
_COUNT = 6  # samples

# What has no integers that mean real numbers, or none at all.
IN_FLOATS = frozenset((
    "CONV_3D", "L2_POOL_2D", "REDUCE_PROD", "CUMSUM", "POW", "ATAN2", "FLOOR_DIV", "FLOOR_MOD",
    "SIGN", "SIN", "COS", "FLOOR", "CEIL", "ROUND", "ZEROS_LIKE", "SCATTER_ND", "CAST",
))  # fmt: skip
WITHOUT_REALS = frozenset(("SHAPE", "RANK"))
# The least ratio in dB: some results have a few large values, by which all others are stored.
LEAST_INT8 = {"RSQRT": 15.0, "LOG": 15.0, "DIV": 15.0, "SELECT_V2": 0.0}

FLOATS = sorted(name for name, kind in OPERATORS.items() if "float32" in kind.dtypes)
INTEGERS = sorted(set(FLOATS) - IN_FLOATS - WITHOUT_REALS)


def _samples(case: Case, graph: Graph, seed: int) -> dict[str, Array]:
    """Return samples around the inputs of a case, in which every number is one."""
    rng = np.random.default_rng(seed)
    samples = {}
    for tensor in graph.arguments:
        array = case.named_inputs()[tensor.name]
        if array.dtype.kind == "f":
            finite = np.nan_to_num(array, nan=1.0, posinf=2.0, neginf=-2.0)
            factors = [1.0, *rng.uniform(0.3, 1.0, _COUNT - 1)]
            samples[tensor.name] = np.stack([finite * np.float32(f) for f in factors])
        else:
            samples[tensor.name] = np.stack([array] * _COUNT)
    return samples


@pytest.mark.parametrize("name", INTEGERS)
@pytest.mark.parametrize("seed", SEEDS)
def test_integers_stand_for_real_numbers(name: str, seed: int) -> None:
    """Stored values are near the real ones, on samples that decided the ranges."""
    case = generate(name, seed, "float32")
    graph = case.graph()
    result = quantise(graph, _samples(case, graph, seed), PLAIN)
    verify(result.graph)
    assert not result.floats
    assert min(layer.sqnr for layer in result.layers) >= LEAST_INT8.get(name, 19.0)


@pytest.mark.parametrize("width", [Width.INT8, Width.INT16])
@pytest.mark.parametrize("name", sorted(IN_FLOATS))
def test_others_stay_in_floats(name: str, width: Width) -> None:
    """A model of one of them has nothing to quantise, and the error names the layer."""
    case = generate(name, 1, "float32")
    graph = case.graph()
    with pytest.raises(UsageError, match="no layer of the model has an integer version") as error:
        quantise(graph, _samples(case, graph, 1), replace(PLAIN, width=width))
    assert graph.nodes[0].name in str(error.value)


@pytest.mark.parametrize("name", INTEGERS)
def test_16_bits_stand_for_them_closer(name: str) -> None:
    """Activations of 16 bits lose less, where the operator has a form for them."""
    case = generate(name, 1, "float32")
    graph = case.graph()
    samples = _samples(case, graph, 1)
    narrow = quantise(graph, samples, PLAIN)
    try:
        wide = quantise(graph, samples, replace(PLAIN, width=Width.INT16))
    except UsageError as error:
        assert "of 16 bits" in str(error)  # noqa: PT017  # either is right
        return
    assert {layer.width for layer in wide.layers} == {Width.INT16}
    pairs = zip(narrow.layers, wide.layers, strict=True)
    assert all(second.sqnr >= first.sqnr for first, second in pairs)


@pytest.mark.parametrize("width", [Width.INT8, Width.INT16])
@pytest.mark.parametrize("threshold", [0.0, 0.1])
def test_numbers_are_compared_and_not_their_integers(width: Width, threshold: float) -> None:
    """A constant and an activation have scales of their own."""
    x, small, y = (graphs.tensor(name, (1, 8)) for name in ("x", "small", "y"))
    limit = graphs.constant("limit", np.array([threshold], np.float32))
    is_above = graphs.tensor("is_above", (1, 8), DType.BOOL)
    nodes = [
        graphs.node(Greater(), (x, limit), is_above),
        graphs.node(Select(), (is_above, x, small), y),
    ]
    samples = np.random.default_rng(1).uniform(-1, 1, (8, 1, 8)).astype(np.float32)
    result = quantise(
        graphs.graph(nodes, [x, small], [y]), {"x": samples, "small": samples / 8},
        replace(PLAIN, width=width)
    )  # fmt: skip
    assert min(layer.sqnr for layer in result.layers) >= 35.0
    assert bool(result.floats) == (width is Width.INT16)
