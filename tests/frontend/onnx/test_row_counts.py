"""Results of which data decide how many rows there are, against onnxruntime's."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pytest
from onnx import TensorProto, helper

import microtir
from microtir import host
from microtir.errors import MicrotirError
from microtir.frontend import from_onnx
from microtir.frontend.onnx import check_onnx
from microtir.graph.ir import Array, CountedResult, Graph
from microtir.host.oracle import Oracle, expected_outputs
from microtir.host.samples import SampleBatch
from microtir.rewrite.reference import execute
from microtir.rewrite.verify import verify
from tests.support.batch import load_batch
from tests.support.onnx_models import model_of, run_onnxruntime, typed
from tests.support.seeds import seeds

F32, I64 = np.float32, np.int64


def whole_numbers(name: str) -> Any:
    """An output of int64, of a shape that is not said."""
    return helper.make_tensor_value_info(name, TensorProto.INT64, None)


def read(model: bytes) -> Graph:
    """The graph, whose types and shapes fit."""
    graph = from_onnx(model).graph
    assert graph is not None
    verify(graph)
    return graph


def in_use(graph: Graph, got: Mapping[str, Array]) -> list[Array]:
    """The outputs that onnxruntime has: rows in use alone, and no counts."""
    counts = {counted.count for counted in graph.counted}
    found = {name: array for name, array in got.items() if name not in counts}
    for counted in graph.counted:
        rows = np.moveaxis(found[counted.name], counted.axis, 0)[: int(got[counted.count][0])]
        found[counted.name] = np.moveaxis(rows, 0, counted.axis)
    return list(found.values())


def compare(graph: Graph, model: bytes, given: Mapping[str, Array], got: Any = None) -> None:
    """Outputs are onnxruntime's, as are the numbers of their rows."""
    got = execute(graph, given) if got is None else got
    for mine, want in zip(in_use(graph, got), run_onnxruntime(model, given), strict=True):
        assert mine.shape == want.shape
        np.testing.assert_allclose(mine, want, rtol=1e-6)


# --- NonMaxSuppression ----------------------------------------------------------------------------


def suppression(
    boxes: tuple[int, ...], classes: int, limits: Sequence[float | None], form: int = 0
) -> bytes:
    """A model of one suppression; its last three inputs are left out where a limit is None."""
    names, held = ["most", "iou", "least"], {}
    for name, limit, dtype in zip(names, limits, (I64, F32, F32), strict=True):
        if limit is not None:
            held[name] = np.array([limit], dtype)
    given = [name if name in held else "" for name in names]
    node = helper.make_node(
        "NonMaxSuppression", ["boxes", "scores", *given], ["chosen"], center_point_box=form
    )
    scores = typed("scores", (boxes[0], classes, boxes[1]))
    return model_of([node], [typed("boxes", boxes), scores], [whole_numbers("chosen")], held)


def drawn(seed: int) -> tuple[bytes, dict[str, Array]]:
    """Boxes with corners in any order, some equal, some without area; scores with ties."""
    rng = np.random.default_rng([seed, 61])
    images, classes, count, form = (int(rng.integers(1, n)) for n in (3, 4, 24, 3))
    boxes = (rng.integers(0, 9, (images, count, 4)) / 2).astype(F32)
    if rng.random() < 0.5:
        boxes += rng.uniform(-0.3, 0.3, boxes.shape).astype(F32)
    scores = (rng.integers(-2, 9, (images, classes, count)) / 8).astype(F32)
    if rng.random() < 0.3:
        scores[0, 0, 0] = -np.inf
    limits = [
        int(rng.choice([1, 3, 100])),
        None if rng.random() < 0.2 else float(rng.choice([0, 0.25, 0.5, 1])),
        None if rng.random() < 0.3 else float(rng.choice([-1, 0, 0.25, 0.9])),
    ]
    model = suppression(boxes.shape, classes, limits, form - 1)
    return model, {"boxes": boxes, "scores": scores}


def test_chosen_boxes_are_those_of_onnxruntime() -> None:
    """Ties, overlaps at the threshold, flipped corners, boxes without area, both forms."""
    for seed in seeds(500, 60):
        model, given = drawn(seed)
        compare(read(model), model, given)


@pytest.mark.tools
def test_chosen_boxes_in_c(tmp_path: Any) -> None:
    """The C chooses as the meaning does, and what it is not asked for is 0."""
    cases = [drawn(seed) for seed in seeds(600, 6)]
    config = microtir.CompilationConfig.from_target(microtir.Target("c"))
    artifacts = [
        microtir.build(from_onnx(model), config.with_(module_name=f"case{n}"))
        for n, (model, _) in enumerate(cases)
    ]
    for (model, given), loaded in zip(cases, load_batch(artifacts, tmp_path), strict=True):
        graph, got = read(model), loaded.run(given)
        compare(graph, model, given, got)
        assert not got["chosen"][int(got["chosen_count"][0]) :].any()


def test_nothing_is_asked_for() -> None:
    """Without a number of boxes none is chosen, and a model of nothing else is refused."""
    (problem,) = check_onnx(suppression((1, 4, 4), 1, (None, 0.5, 0.5)))
    assert "the output 'chosen' has the shape (0, 3), which has no elements" in str(problem)


@pytest.mark.parametrize(
    ("limits", "form", "text"),
    [((3, 1.5, None), 0, "is 1.5"), ((3, 0.5, None), 2, "'center_point_box' is 2")],
)
def test_suppressions_that_are_malformed(limits: Any, form: int, text: str) -> None:
    """What onnxruntime refuses while it runs."""
    assert text in str(check_onnx(suppression((1, 4, 4), 1, limits, form))[0])


def test_scores_that_are_no_numbers() -> None:
    """NaN is never chosen; onnxruntime puts it anywhere where no threshold is given."""
    model = suppression((1, 3, 4), 1, (3, 0.5, None))
    boxes = np.array([[[0, n, 1, n + 1] for n in range(3)]], F32)
    scores = np.array([[[np.nan, 0.25, 0.5]]], F32)
    got = execute(read(model), {"boxes": boxes, "scores": scores})
    assert got["chosen"][:, 2].tolist() == [2, 1, 0]
    assert got["chosen_count"].tolist() == [2]


# --- NonZero and Compress -------------------------------------------------------------------------


@pytest.mark.parametrize("shape", [(7,), (2, 3), (2, 3, 2), (1, 1)])
@pytest.mark.parametrize("dtype", [np.float32, np.bool_, np.int64, np.uint8])
def test_places_of_what_is_not_zero(shape: tuple[int, ...], dtype: Any) -> None:
    """The rows are columns: they are counted along the second axis."""
    node = helper.make_node("NonZero", ["x"], ["places"])
    model = model_of([node], [typed("x", shape, dtype)], [whole_numbers("places")])
    graph, rng = read(model), np.random.default_rng(3)
    assert graph.counted == (CountedResult("places", 1, "places_count"),)
    for chance in (0.0, 0.5, 1.0):
        compare(graph, model, {"x": (rng.random(shape) < chance).astype(dtype)})


@pytest.mark.parametrize("axis", [None, 0, 1])
def test_parts_where_a_condition_holds(axis: int | None) -> None:
    """A condition of the caller, shorter than the axis."""
    told: dict[str, Any] = {} if axis is None else {"axis": axis}
    keeping = node("Compress", "x keep", "y", **told)
    inputs = [typed("x", (3, 4)), typed("keep", (2,), np.bool_)]
    model, x = model_of([keeping], inputs, ["y"]), np.arange(12, dtype=F32).reshape(3, 4)
    for keep in ((True, False), (False, False), (True, True)):
        compare(read(model), model, {"x": x, "keep": np.array(keep)})


# --- Unique ---------------------------------------------------------------------------------------

UNIQUE = ("values", "first", "inverse", "counts")


def distinct(shape: tuple[int, ...], dtype: Any, **told: Any) -> bytes:
    """A model of one Unique with all its outputs."""
    number = helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
    outputs = [helper.make_tensor_value_info(UNIQUE[0], number, None)]
    outputs += [whole_numbers(name) for name in UNIQUE[1:]]
    told_node = helper.make_node("Unique", ["x"], UNIQUE, **told)
    return model_of([told_node], [typed("x", shape, dtype)], outputs)


@pytest.mark.parametrize("is_sorted", [0, 1])
@pytest.mark.parametrize("dtype", [np.float32, np.int64, np.int8])
def test_distinct_values(dtype: Any, is_sorted: int) -> None:
    """Equal ones and none, negative ones, a single one; what onnxruntime says of each."""
    rng = np.random.default_rng(5)
    for shape in ((1,), (7,), (3, 4)):
        model = distinct(shape, dtype, sorted=is_sorted)
        graph = read(model)
        if shape != (1,):  # whose number of distinct ones is known
            assert [counted.name for counted in graph.counted] == ["values", "first", "counts"]
            assert {counted.count for counted in graph.counted} == {"values_count"}
        for most in (1, 3, 50):
            compare(graph, model, {"x": rng.integers(-most, most, shape).astype(dtype)})


@pytest.mark.tools
def test_distinct_values_in_c(tmp_path: Any) -> None:
    """Both orders, in C, of values that are the numbers of the largest type, too."""
    models = [distinct((9,), F32), distinct((9,), np.uint64, sorted=0)]
    config = microtir.CompilationConfig.from_target(microtir.Target("c"))
    artifacts = [
        microtir.build(from_onnx(model), config.with_(module_name=f"unique{n}"))
        for n, model in enumerate(models)
    ]
    x = np.array([3, 1, 3, 2, 1, 9, 2, 2, 3])
    given = [x.astype(F32) / 4, (x.astype(np.uint64) << np.uint64(60))]
    for model, values, loaded in zip(models, given, load_batch(artifacts, tmp_path), strict=True):
        graph, got = read(model), loaded.run({"x": values})
        kept = dict(zip(UNIQUE, in_use(graph, got), strict=True))
        found, first, counts = np.unique(values, return_index=True, return_counts=True)
        order = np.argsort(first) if values.dtype == np.uint64 else np.arange(len(first))
        assert kept["values"].tolist() == found[order].tolist()
        assert kept["first"].tolist() == first[order].tolist()
        assert kept["counts"].tolist() == counts[order].tolist()
        assert kept["values"][kept["inverse"]].tolist() == values.tolist()


def test_distinct_parts_are_refused() -> None:
    """Rows that differ are not compared; of a line the only axis is no part."""
    (problem,) = check_onnx(distinct((3, 2), F32, axis=0))
    assert "the model computes the input of Unique with an axis" in str(problem)
    read(distinct((3,), F32, axis=0))


# --- what is done with rows -----------------------------------------------------------------------


def detector(nodes: Sequence[Any], outputs: Sequence[Any], held: Mapping[str, Array]) -> bytes:
    """A suppression of 8 boxes and 2 classes, and what is done with its rows `chosen`."""
    own: dict[str, Array] = {
        "most": np.array([2], I64),
        "iou": np.array([0.5], F32),
        "least": np.array([0.25], F32),
    }
    first = helper.make_node("NonMaxSuppression", ["boxes", "scores", *own], ["chosen"])
    inputs = [typed("boxes", (1, 8, 4)), typed("scores", (1, 2, 8))]
    inputs += [typed("keep", (3,), np.bool_)] if "keep" in nodes[0].input else []
    return model_of([first, *nodes], inputs, outputs, {**own, **held})


def node(operator: str, inputs: str, output: str, **attributes: Any) -> Any:
    """A node of the file, with its inputs in one text."""
    return helper.make_node(operator, inputs.split(), [output], **attributes)


DETECTIONS = [
    node("Gather", "chosen two", "at", axis=1),
    node("Squeeze", "at one", "box"),
    node("Gather", "chosen last", "kind", axis=1),
    node("Squeeze", "boxes zero", "corners"),
    node("Gather", "corners box", "kept"),
    node("Mul", "kept size", "scaled"),
    node("GatherND", "scores chosen", "values"),
    node("Unsqueeze", "values one", "column"),
    node("Concat", "scaled column", "table", axis=1),
    node("ReduceMax", "table one", "highest", keepdims=0),
]
HELD: dict[str, Array] = {
    "two": np.array([2], I64), "one": np.array([1], I64), "zero": np.array([0], I64),
    "last": np.array(-2, I64), "size": np.array([10, 20, 10, 20], F32),
    "first": np.array(0, I64), "flat": np.array([-1], I64),
}  # fmt: skip


def test_what_exporters_do_with_rows() -> None:
    """Columns are taken, boxes and scores gathered, put together: one count for all of them."""
    outputs = ["table", whole_numbers("kind"), "highest"]
    model = detector(DETECTIONS, outputs, HELD)
    graph, rng = read(model), np.random.default_rng(8)
    assert [tensor.name for tensor in graph.outputs] == ["table", "table_count", "kind", "highest"]
    assert {counted.count for counted in graph.counted} == {"table_count"}
    artifact = microtir.build(from_onnx(model))
    header = artifact.source("model.h")
    for title in ("'table': float32[4][5]", "'kind': int64[4]", "'highest': float32[4]"):
        assert f"{title}\n * The first table_count[0] rows are in use.\n */" in header, header
    loaded = host.load(artifact, sanitize=True)
    runs = []
    for chance in (0.0, 0.5, 1.0):
        scores = rng.random((1, 2, 8)) * (rng.random((1, 2, 8)) < chance)
        runs.append({"boxes": rng.random((1, 8, 4)).astype(F32), "scores": scores.astype(F32)})
        compare(graph, model, runs[-1], loaded.run(runs[-1]))
    # As `verify` does: the oracle's rows, how many there are, and behind them the reference's.
    found = expected_outputs(Oracle.ONNXRUNTIME, graph, model, SampleBatch(tuple(runs)))
    for run, expected in zip(runs, found.values, strict=True):
        for name, want in execute(graph, run).items():
            np.testing.assert_allclose(expected[name], want, rtol=1e-6)


@pytest.mark.parametrize(
    "mixing",
    [
        node("ReduceMax", "chosen zero", "y"),
        node("Shape", "chosen", "y"),
        node("Size", "chosen", "y"),
        node("Reshape", "chosen flat", "y"),
        node("Concat", "chosen chosen", "y", axis=0),
        node("Concat", "chosen columns", "y", axis=1),
        node("Gather", "chosen first", "y"),
        node("Slice", "chosen zero two zero", "y"),
        node("CumSum", "chosen first", "y"),
        node("NonZero", "chosen", "y"),
        node("Flatten", "chosen", "y", axis=0),
        node("Compress", "chosen keep", "y", axis=1),
        node("ScatterND", "scores chosen updates", "y"),
    ],
)
def test_rows_that_are_mixed_are_refused(mixing: Any) -> None:
    """The number of all rows that there may be would be taken for that of those in use."""
    held = {**HELD, "columns": np.ones((4, 1), I64), "updates": np.ones(4, F32)}
    problem = str(check_onnx(detector([mixing], [whole_numbers("y")], held))[0])
    assert f"{mixing.op_type} ('y')" in problem
    assert "the number of rows of" in problem


def test_rows_of_two_counts_are_refused() -> None:
    """Two conditions keep as many rows by chance alone."""
    nodes = [node("Compress", "x a", "p"), node("Compress", "x b", "q"), node("Add", "p q", "y")]
    inputs = [typed("x", (3,)), typed("a", (3,), np.bool_), typed("b", (3,), np.bool_)]
    assert "one by one" in str(check_onnx(model_of(nodes, inputs, ["y"]))[0])


def test_one_row_at_most() -> None:
    """Where there may be one row, an axis of one element more is not told from it."""
    nodes = [node("Compress", "x a", "p", axis=0), node("Unsqueeze", "p zero", "y")]
    inputs = [typed("x", (1, 3)), typed("a", (1,), np.bool_)]
    with pytest.raises(MicrotirError, match=r"the number of rows of .* depends on the data"):
        from_onnx(model_of(nodes, inputs, ["y"], {"zero": np.array([0], I64)}))
