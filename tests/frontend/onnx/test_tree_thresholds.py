"""Trees whose features are compared as integers give what they gave as floats."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from onnx import TensorProto, helper

from microtir.frontend import from_onnx
from microtir.graph.ir import Array, Graph
from microtir.operators.bits.definition import OrderedBits
from microtir.operators.trees.definition import TreeEnsemble
from microtir.rewrite.optimise import TreeThresholds
from microtir.rewrite.reference import execute
from tests.support.onnx_models import ml_model_of, ml_node, typed
from tests.support.tree_models import MODES, WIDTH, forest

_MANY = 1000  # instructions that a comparison saves: all floats become integers
_SPECIAL = [0.0, -0.0, 1e-45, -1e-45, np.inf, -np.inf, np.nan, -np.nan, 3.4e38, 1.5, -1.5, 0.5]


def _trees(seed: int, x: Array, *nodes: object, thresholds: list[float] | None = None) -> Graph:
    grown = forest(seed, [0, 1], MODES)
    attributes = grown.attributes("target")
    if thresholds is not None:
        chosen = np.random.default_rng(seed).choice(thresholds, len(attributes["nodes_values"]))
        attributes["nodes_values"] = chosen.tolist()
    node = ml_node("TreeEnsembleRegressor", n_targets=2, **attributes)
    if nodes:
        node.input[0] = "floats"
    graph = from_onnx(ml_model_of([*nodes, node], [typed("x", x)], ["y"])).graph
    assert graph is not None
    return graph


def _same(graph: Graph, x: Array, saved: int = _MANY) -> Graph:
    changed = TreeThresholds(saved)(graph)
    [expected], [got] = (list(execute(g, {"x": x}).values()) for g in (graph, changed))
    np.testing.assert_array_equal(got, expected)
    return changed


@given(st.integers(0, 100_000), st.booleans())
@settings(max_examples=30, deadline=None)
def test_floats(seed: int, is_special: bool) -> None:
    """All questions of floats that are next to each other, no numbers, and both zeros."""
    rng = np.random.default_rng(seed)
    x = rng.choice(_SPECIAL, (16, WIDTH)).astype(np.float32)
    thresholds = [t for t in _SPECIAL if np.isfinite(t)] if is_special else None
    changed = _same(_trees(seed, x, thresholds=thresholds), x)
    assert any(isinstance(node.op, OrderedBits) for node in changed.nodes)


@given(st.integers(0, 100_000), st.sampled_from(["int8", "uint8", "int32", "int64"]))
@settings(max_examples=30, deadline=None)
def test_integers(seed: int, dtype: str) -> None:
    """What a model makes floats of is compared as it is, beyond 24 bits and all ranges, too."""
    info, rng = np.iinfo(dtype), np.random.default_rng(seed)
    near = [(1 << 24) + 1, (1 << 24) + 3, 127, 128, -128, -129, 0, 255, 256, 2**31 - 65, 2**31]
    known = [*(v for v in near if info.min <= v <= info.max), info.min, info.max]
    x = rng.choice(known, (16, WIDTH)).astype(dtype)
    thresholds = [*map(float, near), 127.5, -0.5, -1e30, 1e30, 16777217.5]
    cast = helper.make_node("Cast", ["x"], ["floats"], to=TensorProto.FLOAT)
    changed = _same(_trees(seed, x, cast, thresholds=thresholds), x, saved=0)
    [trees] = (node for node in changed.nodes if isinstance(node.op, TreeEnsemble))
    assert trees.inputs[0].dtype.value == dtype


def test_large_integers_are_rounded_once() -> None:
    """Next to the middle of two floats an integer by way of a double is another than by itself."""
    middle = 2**54 + 2**30
    x = np.array([[middle + n] * WIDTH for n in (-1, 0, 1, 2, 3)], np.int64)
    cast = helper.make_node("Cast", ["x"], ["floats"], to=TensorProto.FLOAT)
    for seed in range(5):
        _same(_trees(seed, x, cast, thresholds=[float(2**54)]), x, saved=0)


@pytest.mark.parametrize(("saved", "is_made"), [(0, False), (1, False), (20, True)])
def test_integers_are_made_where_they_pay(saved: int, is_made: bool) -> None:
    """A feature that is made an integer is compared several times, or costs more than it saves."""
    x = np.zeros((4, WIDTH), np.float32)
    changed = _same(_trees(3, x), x, saved)
    assert any(isinstance(node.op, OrderedBits) for node in changed.nodes) is is_made
