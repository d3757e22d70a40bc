"""Runs that are told how many entries of a batch there are compute these, and no others."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from onnx import helper

import microtir
from microtir import CompilationConfig, Executor
from microtir.errors import UnsupportedModelError, UsageError
from microtir.frontend import from_onnx
from tests.support.command import Command
from tests.support.counted_runs import CountedRuns
from tests.support.onnx_models import model_of, typed

pytestmark = pytest.mark.tools

MOST = 5
COUNTED = CompilationConfig(
    targets="c", module_name="net", executor=Executor("aot", {"batch-count": True})
)
OUTSIDE = -3  # NET_ERROR_ARGUMENT_RANGE
RNG = np.random.default_rng(2)
CONSTANTS = {
    "w": RNG.standard_normal((4, 6)).astype(np.float32),
    "b": RNG.standard_normal(4).astype(np.float32),
}


def two_inputs(batch: Any = "batch") -> bytes:
    """A dense layer of a sum of two inputs, one of which is called `count`; two outputs."""
    nodes = [
        helper.make_node("Add", ["x", "count"], ["sum"]),
        helper.make_node("Gemm", ["sum", "w", "b"], ["dense"], transB=1),
        helper.make_node("Softmax", ["dense"], ["y"], axis=-1),
        helper.make_node("ReduceMean", ["sum"], ["mean"], axes=[1], keepdims=1),
    ]
    ports = [typed(name, (batch, 6)) for name in ("x", "count")]
    return model_of(nodes, ports, ["y", "mean"], CONSTANTS, opset=13)


def test_a_run_computes_the_first_entries(tmp_path: Path) -> None:
    """As many of each output are written, equal to those of the batch; others stay."""
    module = from_onnx(two_inputs(), dims={"batch": range(1, MOST + 1)})
    artifact = microtir.build(module, COUNTED)
    net = CountedRuns(artifact, tmp_path)
    inputs = {n: RNG.standard_normal((MOST, 6)).astype(np.float32) for n in ("x", "count")}
    whole = microtir.host.load(artifact).run(inputs)
    plain = microtir.build(from_onnx(two_inputs(MOST)), CompilationConfig(targets="c"))
    for name, values in microtir.host.load(plain).run(inputs).items():
        np.testing.assert_allclose(whole[name], values, 1e-6)
    for count in range(1, MOST + 1):
        status, made = net.run(inputs, count)
        assert status == 0
        for name, values in made.items():
            np.testing.assert_array_equal(values[:count], whole[name][:count])
            assert (values[count:] == 7).all()
    for count in (0, -1, MOST + 1):
        status, made = net.run(inputs, count)
        assert status == OUTSIDE
        assert all((values == 7).all() for values in made.values())


def test_workspace_is_that_of_one_entry() -> None:
    """However many there may be."""
    sizes = []
    for most in (2, 50):
        module = from_onnx(two_inputs(), dims={"batch": range(1, most + 1)})
        model = microtir.build(module, COUNTED).module.model
        assert model is not None
        sizes.append(model.memory.workspace_size)
    assert sizes[0] == sizes[1]


def test_what_mixes_entries_is_refused() -> None:
    """A mean over the batch needs all of it."""
    nodes = [helper.make_node("ReduceMean", ["x"], ["y"], axes=[0], keepdims=1)]
    model = model_of(nodes, [typed("x", ("batch", 6))], ["y"], opset=13)
    module = from_onnx(model, dims={"batch": range(1, 5)})
    with pytest.raises(UnsupportedModelError, match="one by one: 'mean' computes an") as caught:
        microtir.build(module, COUNTED)
    assert "operator 0 ReduceMean, batch-count" in str(caught.value)


@pytest.mark.parametrize(
    ("extents", "match"),
    [(range(2, 5), "its range is 2..4"), (range(1, 2), "1..1"), (range(1, 9, 2), "range is 1..8")],
)
def test_ranges_that_are_refused(extents: range, match: str) -> None:
    """They go from 1 to some number above it."""
    with pytest.raises(UsageError, match=match):
        from_onnx(two_inputs(), dims={"batch": extents})


def test_a_range_is_of_what_lies_outermost() -> None:
    """One within another needs one extent."""
    nodes = [helper.make_node("Relu", ["x"], ["y"])]
    model = model_of(nodes, [typed("x", ("batch", "width"))], ["y"])
    with pytest.raises(UsageError, match="must be the outermost dimension of input 'x'"):
        from_onnx(model, dims={"width": range(1, 9), "batch": 2})


def test_a_range_in_shapes_is_that_of_the_dimension() -> None:
    """Of all inputs alike, as their first extent."""
    shape = (range(1, MOST + 1), 6)
    by_shapes = from_onnx(two_inputs(""), input_shapes={"x": shape, "count": shape}).graph
    by_name = from_onnx(two_inputs(), dims={"batch": range(1, MOST + 1)}).graph
    assert by_shapes is not None and by_name is not None
    assert by_shapes.inputs[0].shape == by_name.inputs[0].shape == (MOST, 6)


@pytest.mark.parametrize(
    ("shapes", "match"),
    [
        ({"x": (range(1, 6), 6)}, r"the range 1..5. .* of 'count' that is not 1"),
        (
            {"x": (range(1, 6), 6), "count": (range(1, 5), 6)},
            r"the range 1..5. .* of 'count' that is not 1",
        ),
        ({"x": (range(2, 6), 6), "count": (range(2, 6), 6)}, "its range is 2..5"),
        ({"x": (5, range(1, 7)), "count": (5, 6)}, r"it cannot have the shape \(5, 1..6\)"),
    ],
)
def test_ranges_in_shapes_that_are_refused(
    shapes: dict[str, tuple[int | range, ...]], match: str
) -> None:
    """They are one, and the file has the last word."""
    with pytest.raises(UsageError, match=match):
        from_onnx(two_inputs(), input_shapes=shapes)


def test_the_command_line(microtir: Command, tmp_path: Path) -> None:
    """`--dim batch=1..5` sets the option; a table of calls has no place for a number."""
    file = tmp_path / "two.onnx"
    file.write_bytes(two_inputs())
    verified = microtir("verify", str(file), "--dim", "batch=1..5", "--samples", "2")
    assert verified.status == 0
    for said in ("batch=1..5", "x:[1..5,6],count:[1..5,6]"):
        config = microtir("verify", f"{file}#{said}", "--dump-config")
        assert '"batch-count": true' in config.out
    unread = microtir("verify", str(file), "--input-shapes", "x:[1..,6]")
    assert "NAME:[1..8,3,32,32]" in unread.err
    refused = microtir(
        "compile", str(file), "-o", "out", "--dim", "batch=1..5", "--executor", "graph"
    )
    assert refused.status == 2
    assert "cannot pass the number of batch entries" in refused.err
