"""A range is refused where its dimension's extent is a value that a model computes with."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from onnx import helper

from microtir.errors import UnsupportedModelError
from microtir.frontend.onnx import check_onnx, from_onnx
from tests.support.onnx_models import model_of, typed

make = helper.make_node
EXTENT = [make("Shape", ["x"], ["shape"], start=1, end=2)]
CONSTANTS: dict[str, Any] = {
    "table": np.ones((64, 6), np.float32),
    "fixed": np.ones((1, 5, 6), np.float32),
    "zero": np.array([0]),
    "one": np.array([1]),
    "heads": np.array([2, 3]),
    "batch": np.array([1]),
}
TAKEN = {
    "a quotient by it": (
        [*EXTENT, make("Cast", ["shape"], ["real"], to=1), make("Div", ["x", "real"], ["y"])],
        "operator 2 Div: a dimension has a range, and 'div' computes with the extent",
    ),
    "positions": (
        [*EXTENT, make("Slice", ["table", "zero", "shape"], ["p"]), make("Add", ["x", "p"], ["y"])],
        "operator 2 Add: a dimension has a range, and 'add' computes",
    ),
    "positions of one extent": (
        [make("Add", ["x", "fixed"], ["y"])],
        r"with 11 entries: shapes \(1, 11, 6\) and \(1, 5, 6\)",
    ),
    "the last ones first": (
        [make("Slice", ["x", "ends", "start", "one", "ends"], ["y"])],
        "operator 0 Slice: .* 'strided_slice' computes",
    ),
}


@pytest.mark.parametrize("what", TAKEN)
def test_a_value_of_the_extent_is_refused(what: str) -> None:
    """It would be that of the most in each run."""
    nodes, match = TAKEN[what]
    constants = {**CONSTANTS, "ends": np.array([-1]), "start": np.array([-99])}
    model = model_of(nodes, [typed("x", (1, "tokens", 6))], ["y"], constants, opset=15)
    dims = {"tokens": range(1, 6)}
    with pytest.raises(UnsupportedModelError, match=match) as caught:
        from_onnx(model, dims=dims)
    assert [str(problem) for problem in check_onnx(model, dims=dims)] == [str(caught.value)]
    from_onnx(model, dims={"tokens": 5})


def test_shapes_may_be_made_of_it() -> None:
    """As exporters do it."""
    nodes = [
        *EXTENT,
        make("Concat", ["batch", "shape", "heads"], ["parts"], axis=0),
        make("Reshape", ["x", "parts"], ["y"]),
    ]
    model = model_of(nodes, [typed("x", (1, "tokens", 6))], ["y"], CONSTANTS, opset=15)
    graph = from_onnx(model, dims={"tokens": range(1, 6)}).graph
    assert graph is not None and graph.outputs[0].shape == (1, 5, 2, 3)
