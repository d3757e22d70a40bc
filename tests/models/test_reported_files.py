"""Files that failed once: each equals its reference, or is refused with a reason."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pytest

from microtir.config.enums import Numerics
from microtir.errors import UnsupportedModelError
from microtir.frontend import from_onnx, from_tflite
from microtir.graph.ir import Graph
from microtir.rewrite.reference import execute
from tests.operators.test_unlike_scales import compare_where_defined, read
from tests.support.litert import run_litert
from tests.support.onnx_models import run_onnxruntime
from tests.support.sketch import Array, Case
from tests.support.tflm import run_tflm

FOLDER = "cases"
TFLITE = (
    *("div_int8", "gather_scalar", "int16_comparisons", "relu6_int16", "relu6_int8"),
    *("relu6_uint8", "strided_slice_computed_begin", "uint8_weights_zero_point_204"),
)
ONNX = (
    *("layernorm_opset13", "lstm3_u8_qdq", "maxunpool_output_shape", "minus_one", "split", "topk"),
    *("real_pad_QOperator", "real_split_QDQ", "unsorted"),
)
_REFUSED = "add_scales_far_apart"

# tflite-micro has no such kernel, or compares neither stored integers nor reals.
_OF_LITERT = {
    *("relu6_uint8", "int16_comparisons", "uint8_weights_zero_point_204"),
    *("gather_scalar", "strided_slice_computed_begin"),
}


def _each(*names: str) -> list[object]:
    marks = [pytest.mark.tools]
    return [
        pytest.param(name, marks=[*marks, pytest.mark.model(f"{FOLDER}/{name}")]) for name in names
    ]


def _values(graph: Graph, golden: Path) -> dict[str, Array]:
    """Return the inputs of a golden file's first step; random ones where there is none."""
    if golden.is_file():
        recorded = np.load(golden)
        return {tensor.name: recorded[f"inputs.{tensor.name}"][0] for tensor in graph.inputs}
    rng = np.random.default_rng(32)
    return {tensor.name: _drawn(tensor.shape, tensor.dtype.value, rng) for tensor in graph.inputs}


def _drawn(shape: tuple[int, ...], dtype: str, rng: np.random.Generator) -> Array:
    if np.dtype(dtype).kind == "f":
        return rng.normal(size=shape).astype(dtype)
    info = np.iinfo(dtype)
    return rng.integers(info.min, info.max, shape, endpoint=True).astype(dtype)


@pytest.mark.parametrize("name", _each(*TFLITE))
def test_files_of_tflite(name: str, models_dir: Path) -> None:
    """They equal LiteRT with its numerics, and tflite-micro with those."""
    data = (models_dir / FOLDER / f"{name}.tflite").read_bytes()
    graph = from_tflite(data).graph
    assert graph is not None
    golden = models_dir / FOLDER / f"{name}.golden.npz"
    values = _values(graph, golden)
    case = Case(name, data, tuple(values.values()), len(graph.outputs))
    of_litert = run_litert(data, *case.inputs)
    expected: Mapping[Numerics, list[Array]] = {
        Numerics.TFLITE_REF: of_litert,
        Numerics.TFLM: of_litert
        if name in _OF_LITERT
        else run_tflm(data, *case.inputs, outputs=case.outputs),
    }
    for numerics, wanted in expected.items():
        made = execute(read(data, numerics), values)
        for (tensor, result), want in zip(made.items(), wanted, strict=True):
            compare_where_defined(case, result, want, numerics)
            if golden.is_file():
                np.testing.assert_array_equal(result, np.load(golden)[f"outputs.{tensor}"][0])


@pytest.mark.model(f"{FOLDER}/{_REFUSED}")
def test_what_ends_both_references_is_refused(models_dir: Path) -> None:
    """The factor of its output reaches 1, for which both abort."""
    data = (models_dir / FOLDER / f"{_REFUSED}.tflite").read_bytes()
    with pytest.raises(UnsupportedModelError, match="tflite-micro and LiteRT end the process"):
        from_tflite(data)


@pytest.mark.parametrize("name", _each(*ONNX))
def test_files_of_onnx(name: str, models_dir: Path) -> None:
    """They equal onnxruntime."""
    data = (models_dir / FOLDER / f"{name}.onnx").read_bytes()
    graph = from_onnx(data).graph
    assert graph is not None
    values = _values(graph, models_dir / FOLDER / f"{name}.golden.npz")
    made = execute(graph, values)
    for (tensor, result), want in zip(made.items(), run_onnxruntime(data, values), strict=True):
        np.testing.assert_allclose(
            result, want, rtol=0, atol=1e-6 * np.abs(want).max(), err_msg=tensor
        )


@pytest.mark.model(f"{FOLDER}/{_REFUSED}")
def test_no_file_is_left_out(models_dir: Path) -> None:
    """A file that is added is tested."""
    found = {path.stem for path in (models_dir / FOLDER).glob("*.*") if path.suffix != ".md"}
    assert {name.removesuffix(".golden") for name in found} == {*TFLITE, *ONNX, _REFUSED}
