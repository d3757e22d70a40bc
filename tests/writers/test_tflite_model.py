"""Graphs as TFLite files: what is read of them again, and what other interpreters make of them."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from microtir.dtype import DType
from microtir.errors import OutputError, UnsupportedModelError
from microtir.frontend import from_tflite
from microtir.frontend.model_bytes import load
from microtir.frontend.tflite_file import parse
from microtir.graph.ir import Graph
from microtir.operators.activations.definition import Gelu
from microtir.operators.common.attributes import Padding2D, Rescaling
from microtir.operators.common.tflite_schema import BuiltinOperator, Padding, TfliteType
from microtir.operators.convolution.definition import Conv2D
from microtir.operators.convolution.tflite import Conv2DOptions
from microtir.operators.movement.definition import Relabel
from microtir.operators.pooling.definition import AveragePool2D, MaxPool2D
from microtir.operators.pooling.tflite import Pool2DOptions
from microtir.operators.unary.definition import Exp, Log, Sqrt
from microtir.rewrite.reference import execute, execute_steps
from microtir.writers import TfliteBuilder, tflite_bytes, write_tflite
from tests.models.test_exported import EACH
from tests.support.operator_cases import generate, operator_dtypes
from tests.support.same_graph import canonical
from tests.support.tflm import run_tflm_sequence

IN_TABLES = (Exp, Gelu, Log, Sqrt)
"""Functions that tflite-micro has for floats at most: of int8 they are tables in the file."""

IN_FLOATS = ("transformer_tokens_int8",)
"""Models that negate an int8 element in floats, which is a table in the file."""

LOOPS = ("control_", "gru_while", "lstm_while", "rnn_while")
"""Models of exporters with loops, which are written turn by turn."""

CONDITIONS = ("control_if", "control_while_until")
"""Models of which a condition decides what runs, which are not written."""

# A model for each way in which exporters write; tflite-micro runs all of them.
RUN = (
    "mobilenet_int8", "mobilenet_16x8", "mobilenet_int8_uint8io", "mobilenet_argmax_float32",
    "lstm_fused_int8", "lstm_fused_bidirectional_float32", "streaming_variables_int8",
    "autoencoder_transpose_int8", "gru_unrolled_int8", "squeeze_excite_16x8",
    "two_inputs_two_outputs_int8", "tcn_causal_dilated_int8",
)  # fmt: skip


def _graph(source: Path | bytes, name: str = "model") -> Graph:
    graph = from_tflite(source, name=name).graph
    assert graph is not None
    return graph


def _is_longer_in_file(graph: Graph) -> bool:
    """Return whether a file has more operators: new scales are a RESHAPE, and tables are three."""
    return any(
        isinstance(node.op, Relabel)
        or (isinstance(node.op, IN_TABLES) and node.inputs[0].dtype is DType.INT8)
        for node in graph.nodes
    )


@pytest.mark.parametrize(("operator", "dtype"), operator_dtypes())
def test_operators_are_read_as_they_were_written(operator: str, dtype: str) -> None:
    """Attributes, types and constants of random models come back as they were."""
    for seed in range(2):
        case = generate(operator, seed, dtype)
        graph = case.graph()
        if operator == "RANGE":
            with pytest.raises(UnsupportedModelError, match="no operator for range"):
                tflite_bytes(graph)
            continue
        again = _graph(tflite_bytes(graph), graph.name)
        if _is_longer_in_file(graph):
            assert len(graph.nodes) < len(again.nodes)
            inputs = case.named_inputs()
            expected, results = (execute(g, inputs) for g in (graph, again))
            for name, values in expected.items():
                np.testing.assert_array_equal(results[name], values)
        else:
            assert canonical(graph) == canonical(again)


@pytest.mark.parametrize("name", EACH)
def test_exported_models_are_read_as_they_were_written(models_dir: Path, name: str) -> None:
    """A graph is what it was, one with loops or tables computes it; conditions are named."""
    graph = _graph(models_dir / "exported" / f"{name}.tflite")
    if name.startswith(CONDITIONS):
        with pytest.raises(UnsupportedModelError, match="belongs to a branch, or to a loop that"):
            tflite_bytes(graph)
        return
    again = _graph(tflite_bytes(graph))
    if not name.startswith((*LOOPS, *IN_FLOATS)) and not _is_longer_in_file(graph):
        assert canonical(graph) == canonical(again)
        return
    rng = np.random.default_rng(1)
    inputs = {t.name: _values(rng, t.shape, t.dtype.value) for t in graph.arguments}
    expected, results = (execute(g, inputs) for g in (graph, again))
    for tensor, result in zip(graph.results, again.results, strict=True):
        np.testing.assert_array_equal(results[result.name], expected[tensor.name])


@pytest.mark.parametrize("name", [p for p in EACH if p.values[0] in RUN])
def test_tflite_micro_gives_the_same_bits(models_dir: Path, name: str) -> None:
    """The written file and the one that it was read of do not differ, over three runs."""
    path = models_dir / "exported" / f"{name}.tflite"
    graph = _graph(path)
    rng = np.random.default_rng(1)
    steps = [[_values(rng, t.shape, t.dtype.value) for t in graph.arguments] for _ in range(3)]
    count = len(graph.results)
    expected = run_tflm_sequence(path.read_bytes(), steps, count)
    for run, other in zip(
        run_tflm_sequence(tflite_bytes(graph), steps, count), expected, strict=True
    ):
        for values, wanted in zip(run, other, strict=True):
            np.testing.assert_array_equal(values, wanted)


def _values(rng: np.random.Generator, shape: tuple[int, ...], dtype: str) -> np.ndarray:
    kind = np.dtype(dtype)
    if kind.kind == "f":
        return np.rint(rng.normal(0, 4, shape)).astype(kind)  # sums are exact in any order
    return rng.integers(np.iinfo(kind).min, np.iinfo(kind).max, shape, kind, endpoint=True)


def _windowed(code: BuiltinOperator, dtype: str) -> Graph:
    """Return a window of 3 by 3 over an image of 9 by 8 by 2, in steps of 2."""
    is_float = dtype == "float32"
    scale, zero, scales, axis = (None,) * 4 if is_float else (0.5, 3, (0.125, 0.25), 0)
    builder = TfliteBuilder()
    x = builder.tensor("x", (1, 9, 8, 2), dtype, None, scale, zero)
    y = builder.tensor("y", (1, 4, 3, 2), dtype, None, scale, zero)
    if code is BuiltinOperator.CONV_2D:
        weights = np.arange(-18, 18).reshape(2, 3, 3, 2)
        w = builder.tensor("w", weights.shape, dtype, weights, scales, axis=axis)
        builder.operator(code, [x, w], [y], Conv2DOptions(Padding.VALID, 2, 2))
    else:
        builder.operator(code, [x], [y], Pool2DOptions(Padding.VALID, 2, 2, 3, 3))
    return _graph(builder.build([x], [y]))


@pytest.mark.parametrize("dtype", ["float32", "int8"])
@pytest.mark.parametrize("code", [BuiltinOperator.CONV_2D, BuiltinOperator.MAX_POOL_2D])
def test_paddings_of_other_formats_are_operators(code: BuiltinOperator, dtype: str) -> None:
    """Padding on both sides, as PyTorch has it, is a PAD before the layer, and of the same bits."""
    graph = _windowed(code, dtype)
    (node,) = graph.nodes
    assert isinstance(node.op, Conv2D | MaxPool2D)
    (y,) = node.outputs
    y = replace(y, type=replace(y.type, shape=(1, 5, 4, 2)))
    op = replace(node.op, padding=Padding2D(1, 1, 1, 1))
    graph = replace(graph, nodes=(replace(node, op=op, outputs=(y,)),), outputs=(y,))
    x = _values(np.random.default_rng(2), (1, 9, 8, 2), dtype)
    model = tflite_bytes(graph)
    (result,) = run_tflm_sequence(model, [[x]])[0]
    np.testing.assert_array_equal(result, execute(graph, {"x": x})["y"])
    assert len(_graph(model).nodes) == 2


def test_means_of_such_paddings_are_refused() -> None:
    """A mean leaves out what is padded, so that it is no PAD before the layer."""
    graph = _windowed(BuiltinOperator.AVERAGE_POOL_2D, "int8")
    (node,) = graph.nodes
    assert isinstance(node.op, AveragePool2D)
    op = replace(node.op, padding=Padding2D(1, 1, 1, 1))
    with pytest.raises(UnsupportedModelError, match="no form of average_pool_2d") as error:
        tflite_bytes(replace(graph, nodes=(replace(node, op=op),)))
    assert "operator 0 AVERAGE_POOL_2D" in str(error.value)


def test_arithmetic_of_other_formats_is_refused() -> None:
    """Integers that are rescaled by floats give other bits in TFLite."""
    graph = _windowed(BuiltinOperator.CONV_2D, "int8")
    (node,) = graph.nodes
    assert isinstance(node.op, Conv2D)
    op = replace(node.op, rescaling=Rescaling.FLOAT32)
    with pytest.raises(UnsupportedModelError, match=r"way of another format .*float32"):
        tflite_bytes(replace(graph, nodes=(replace(node, op=op),)))


def test_scales_are_float32() -> None:
    """A scale that a file would round is refused."""
    graph = _windowed(BuiltinOperator.CONV_2D, "int8")
    (node,) = graph.nodes
    x, w = node.inputs
    quant = replace(w.type.quant, scales=(0.1, 0.2))
    other = replace(w, type=replace(w.type, quantization=quant))
    with pytest.raises(UnsupportedModelError, match="not float32 numbers"):
        tflite_bytes(replace(graph, nodes=(replace(node, inputs=(x, other)),)))


def test_weights_of_four_bits() -> None:
    """Named weights take half a byte, and tflite-micro computes the same with them."""
    graph = _windowed(BuiltinOperator.CONV_2D, "int8")
    (node,) = graph.nodes
    x, w = node.inputs
    assert w.data is not None
    narrow = replace(w, data=(w.data % 15 - 7).astype(np.int8))
    graph = replace(graph, nodes=(replace(node, inputs=(x, narrow)),))
    model = tflite_bytes(graph, int4=("w",))
    tensor = next(t for t in parse(load(model)).graphs[0].tensors if t.name == "w")
    assert tensor.type == TfliteType.INT4
    assert tensor.data is not None and len(tensor.data) == narrow.type.elements // 2
    assert canonical(_graph(model)) == canonical(graph)
    values = _values(np.random.default_rng(3), (1, 9, 8, 2), "int8")
    (result,) = run_tflm_sequence(model, [[values]])[0]
    np.testing.assert_array_equal(result, execute(graph, {"x": values})["y"])


@pytest.mark.model("exported/streaming_variables_int8")
def test_states_go_on_over_runs(models_dir: Path) -> None:
    """What a model keeps has its first value in the file, and its new one after each run."""
    graph = _graph(models_dir / "exported" / "streaming_variables_int8.tflite")
    again = _graph(tflite_bytes(graph))
    rng = np.random.default_rng(4)
    steps = [
        {t.name: _values(rng, t.shape, t.dtype.value) for t in graph.arguments} for _ in range(3)
    ]
    for run, wanted in zip(execute_steps(again, steps), execute_steps(graph, steps), strict=True):
        assert all(np.array_equal(run[name], values) for name, values in wanted.items())


def test_files_are_whole_or_not_there(tmp_path: Path) -> None:
    """The same graph gives the same bytes; a file that cannot be written is not begun."""
    graph = _windowed(BuiltinOperator.MAX_POOL_2D, "int8")
    path = tmp_path / "model.tflite"
    write_tflite(graph, path)
    assert path.read_bytes() == tflite_bytes(graph)
    with pytest.raises(OutputError, match="is a folder"):
        write_tflite(graph, tmp_path)
    assert [entry.name for entry in tmp_path.iterdir()] == ["model.tflite"]


def test_signatures_name_inputs_and_outputs() -> None:
    """LiteRT finds inputs and outputs by the names that they have in the graph."""
    from ai_edge_litert.interpreter import Interpreter

    graph = _windowed(BuiltinOperator.MAX_POOL_2D, "int8")
    runner = Interpreter(model_content=tflite_bytes(graph)).get_signature_runner("serving_default")
    assert list(runner.get_input_details()) == ["x"]
    assert list(runner.get_output_details()) == ["y"]
