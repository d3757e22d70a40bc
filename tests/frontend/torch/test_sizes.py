"""Sizes that a program leaves open: given, in a range, or named with an example."""

from __future__ import annotations

import re

import pytest

from microtir.errors import MicrotirError, UnsupportedModelError, UsageError
from microtir.frontend import check, from_torch
from microtir.graph.ir import Graph
from tests.support.torch_programs import TorchProgram

S, T = "Symbol('s77', positive=True, integer=True)", "Symbol('s3', integer=True)"


def program(*shape: int | str) -> TorchProgram:
    """Return a clamp of a flattened input."""
    made = TorchProgram({"x": (shape, "float32")})
    made.ranges = {"s77": (0, 8), "s3": (2, None)}
    made.outputs = [made.add("aten.relu.default", "y", shape, self="x")]
    return made


def graph_of(made: TorchProgram, **arguments: object) -> Graph:
    """Return the graph of a program."""
    graph = from_torch(made.archive(), **arguments).graph  # type: ignore[arg-type]
    assert graph is not None
    return graph


def test_an_open_batch_is_one() -> None:
    """Unless it is given."""
    assert graph_of(program(S, 3)).outputs[0].shape == (1, 3)
    assert graph_of(program(S, 3), dims={"s77": 5}).outputs[0].shape == (5, 3)
    assert graph_of(program(S, 3), input_shapes={"x": (4, 3)}).outputs[0].shape == (4, 3)


def test_a_range_is_read_with_its_most() -> None:
    """As ranges of ONNX are."""
    assert graph_of(program(S, 3), dims={"s77": range(1, 9)}).outputs[0].shape == (8, 3)


def test_other_open_sizes_are_named_with_an_example() -> None:
    """A command that would do."""
    (problem,) = check(program(1, T).archive())
    assert isinstance(problem, UnsupportedModelError)
    assert problem.what == "axis 1 has the extent 's3'"
    assert "dims={'s3': 16}" in str(problem.fix)
    assert "from_torch" in str(problem.fix)
    assert graph_of(program(1, T), dims={"s3": 16}).outputs[0].shape == (1, 16)


def test_sizes_of_an_expression_follow() -> None:
    """Of results and of arguments, and of inputs that have none of their own."""
    made = program(S, 6)
    twice = f"Mul(Integer(2), {S})"
    made.add("aten.sym_size.int", "n", (), self="x", dim=0)
    made.nodes[-1]["outputs"] = [{"as_sym_int": {"as_name": "n"}}]
    made.add("_operator.mul", "m", (), a=0, b=0)
    made.nodes[-1]["inputs"] = [
        {"name": "", "arg": {"as_sym_int": {"as_name": "n"}}}, {"name": "", "arg": {"as_int": 2}},
    ]  # fmt: skip
    made.nodes[-1]["outputs"] = [{"as_sym_int": {"as_name": "m"}}]
    made.nodes[-2], made.nodes[-1] = made.nodes[-2], made.nodes[-1]
    made.add("aten.flatten.using_ints", "flat", (f"Mul({twice}, Integer(3))",), self="x")
    end = {"as_sym_int": {"as_name": "m"}}
    made.outputs = [
        made.add("aten.slice.Tensor", "z", (twice,), self="flat", dim=0, start=0, end=end)
    ]
    assert graph_of(made, dims={"s77": 3}).outputs[0].shape == (6,)


@pytest.mark.parametrize(
    ("shape", "dims", "text"),
    [
        ((S, 3), {"s77": 9}, "dimension 's77' has the extent 9"),
        ((1, T), {"s3": 1}, "dimension 's3' has the extent 1"),
        ((S, 3), {"s5": 2}, "no input has 's5'"),
    ],
)
def test_sizes_that_contradict_the_program(
    shape: tuple[int | str, ...], dims: dict[str, int], text: str
) -> None:
    """The range is what the model was exported with."""
    with pytest.raises(UsageError, match=re.escape(text)):
        graph_of(program(*shape), dims=dims)


def test_inputs_that_share_a_symbol_agree() -> None:
    """Shapes that say something else are refused."""
    made = program(S, 3)
    made.inputs = {**made.inputs, "z": ((S, 2), "float32")}
    made.outputs.append(made.add("aten.relu.default", "w", (S, 2), self="z"))
    with pytest.raises(
        UsageError, match="one of its extents is 3, but the shapes of other inputs require 2"
    ):
        graph_of(made, input_shapes={"x": (2, 3), "z": (3, 2)})


def test_a_size_that_follows_from_data_is_refused() -> None:
    """Its symbol is that of no input."""
    made = program(1, 3)
    made.outputs = [made.add("aten.relu.default", "z", ("Symbol('u0')",), self="x")]
    with pytest.raises(MicrotirError, match="the size u0 depends on data"):
        graph_of(made)
