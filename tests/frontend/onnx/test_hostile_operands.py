"""Every reader is given operands of every type and rank: what does not fit is refused in words."""

from __future__ import annotations

import tracemalloc
from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any

import numpy as np
import pytest
from onnx import defs, helper

from microtir.dtype import DType
from microtir.frontend.onnx import check_onnx
from microtir.frontend.onnx.file import FileGraph, FileNode, FileValue, OnnxFile
from microtir.frontend.onnx.graph import GraphReader
from microtir.frontend.onnx.node import CANNOT_COMPUTE, TOO_LARGE
from microtir.frontend.onnx.readers import READERS
from microtir.frontend.onnx.shapes import InputShapes
from microtir.operators.common.onnx_operands import OnnxReader
from tests.support.onnx_models import model_of, typed

OPSETS = {"": 23, "ai.onnx.ml": 5, "ai.onnx.preview": 1, "com.microsoft": 1}
MOST_INPUTS = 9  # of an operator that takes any number
FAR = 1 << 40
VALUES: Mapping[str, Any] = {
    "INT": 1, "FLOAT": 1.0, "STRING": "a", "INTS": (1, 1), "FLOATS": (1.0, 1.0),
    "TENSOR": np.ones(2, np.float32),
}  # fmt: skip


@cache
def required(reader: OnnxReader) -> dict[str, Any]:
    """Something for each attribute that the operator has to have."""
    try:
        schema: Any = defs.get_schema(reader.name, OPSETS[reader.domain], reader.domain)
    except defs.SchemaError:
        return {}
    kinds = {n: a.type.name for n, a in schema.attributes.items() if a.required}
    return {name: VALUES[kind] for name, kind in kinds.items() if kind in VALUES}


def nodes(names: tuple[str, ...]) -> Iterator[FileNode]:
    """A node of each operator with as few inputs as it takes, and one with as many."""
    for reader in READERS.values():
        low, high = reader.inputs
        for count in sorted({low, min(high, MOST_INPUTS)}):
            label = f"{reader.domain}.{reader.name}.{count}"
            outputs = tuple(f"{label}.{n}" for n in range(min(reader.outputs, 4)))
            yield FileNode(
                0, label, reader.name, reader.domain, names[:count], outputs, required(reader)
            )


@pytest.mark.parametrize("dtype", DType)
@pytest.mark.parametrize("rank", [0, 1, 2, 3, 4])
@pytest.mark.parametrize("constants", [0, MOST_INPUTS - 1])
def test_operands_that_do_not_fit(dtype: DType, rank: int, constants: int) -> None:
    """Each problem is one that the reader found; what escapes it would end this test."""
    shape, names = (2,) * rank, tuple(f"x{n}" for n in range(MOST_INPUTS))
    given = tuple(FileValue(name, dtype, shape) for name in names[: MOST_INPUTS - constants])
    held = {name: np.ones(shape, dtype.value) for name in names[MOST_INPUTS - constants :]}
    graph = FileGraph("g", tuple(nodes(names)), given, (), held)
    reader = GraphReader(OnnxFile("f", "", 1, OPSETS, graph, ""), InputShapes({}, {}))
    reader.graph("g")
    assert reader.problems
    assert not [p for p in reader.problems if CANNOT_COMPUTE in p.what or TOO_LARGE in p.what]


@pytest.mark.parametrize(
    ("operator", "dtypes", "shape", "legal"),
    [
        ("IsInf", (np.int32,), (2,), "float32"),
        ("MatMulInteger", (np.int16, np.int8), (2, 2), "int8, uint8"),
        ("MatMulInteger", (np.int8, np.int8), (), "1 dimensions or more"),
        ("ConvInteger", (np.int8, np.int8), (2, 2), "3 dimensions or more"),
        ("Det", (np.float32,), (), "2 dimensions or more"),
        ("GridSample", (np.float32, np.float32), (2,), "3 dimensions or more"),
        ("RoiAlign", (np.float32, np.float32, np.int64), (2, 2), "4 dimensions or more"),
        ("DeformConv", (np.float32,) * 3, (2, 2), "4 dimensions or more"),
        ("CumSum", (np.float32, np.int32), (2,), "a constant"),
    ],
)
def test_what_is_said(operator: str, dtypes: Any, shape: tuple[int, ...], legal: str) -> None:
    """The input is named with its type or shape, and what would be legal."""
    names = [f"x{n}" for n in range(len(dtypes))]
    inputs = [typed(name, shape, dtype) for name, dtype in zip(names, dtypes, strict=True)]
    (problem,) = check_onnx(model_of([helper.make_node(operator, names, ["y"])], inputs, ["y"]))
    assert "input" in str(problem)
    assert legal in str(problem)


@pytest.mark.parametrize(
    ("operator", "held", "attributes"),
    [
        *(("Resize", {"none": [], "scales": [], "sizes": [1, 1, 4, FAR]}, {"mode": mode})
          for mode in ("nearest", "linear", "cubic")),
        ("Resize", {"none": [], "scales": [1, 1, 1, FAR]}, {"antialias": 1, "mode": "linear"}),
        ("Upsample", {"scales": [1, 1, FAR, 1]}, {}),
        ("ConvTranspose", {"w": np.ones((1, 1, 2, 2))}, {"dilations": [1, FAR]}),
    ],
)  # fmt: skip
def test_numbers_that_ask_for_too_much_memory(
    operator: str, held: Mapping[str, Any], attributes: Mapping[str, Any]
) -> None:
    """A limit is named before such an array is made: for one of fewer elements there is memory."""
    constants = {
        name: np.array(values, np.int64 if name == "sizes" else np.float32)
        for name, values in held.items()
    }
    node = helper.make_node(operator, ["x", *constants], ["y"], **attributes)
    opset = 9 if operator == "Upsample" else 19
    file = model_of([node], [typed("x", (1, 1, 4, 4))], ["y"], constants, opset=opset)
    (problem,) = check_onnx(file)
    assert CANNOT_COMPUTE not in problem.what
    assert TOO_LARGE not in problem.what
    assert "at most 16" in str(problem)


HUGE = (1 << 27,)


@pytest.mark.parametrize(
    ("operator", "domain", "given", "attributes"),
    [
        ("DynamicSlice", "com.microsoft", ((np.float32, (2,)), (np.int64, HUGE), (np.int64, HUGE)),
         {}),
        ("Hardmax", "", ((np.float32, HUGE),), {}),
        ("Normalizer", "ai.onnx.ml", ((np.float32, (*HUGE, 1)),), {}),
        ("Scatter", "", ((np.float32, HUGE), (np.int64, None), (np.float32, (1,))), {}),
        ("SplitToSequence", "", ((np.float32, HUGE),), {}),
        ("Unique", "", ((np.float32, HUGE),), {"sorted": 0}),
        ("Unique", "", ((np.float32, HUGE),), {}),
    ],
)  # fmt: skip
def test_inputs_that_ask_for_too_much_memory(
    operator: str, domain: str, given: Any, attributes: Mapping[str, Any]
) -> None:
    """Constants of the size of an input are refused before they are made; no shape: a constant."""
    names = [f"x{n}" for n in range(len(given))]
    typed_names = [(name, *type_) for name, type_ in zip(names, given, strict=True)]
    inputs = [typed(name, shape, dtype) for name, dtype, shape in typed_names if shape]
    held = {name: np.zeros(1, dtype) for name, dtype, shape in typed_names if not shape}
    node = helper.make_node(operator, names, ["y"], domain=domain, **attributes)
    opset = 10 if operator == "Scatter" else 19
    tracemalloc.start()
    problems = check_onnx(model_of([node], inputs, ["y"], held, opset=opset))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 1 << 24
    assert [p for p in problems if "at most" in str(p) or "one for an axis" in str(p)]
