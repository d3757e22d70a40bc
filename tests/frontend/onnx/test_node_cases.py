"""ONNX's own cases of single nodes: each equals the result that comes with it, or is refused.

What becomes of each stands in a golden file, so that no case is lost, and none is wrong. Inputs
that must be known while compiling, axes and shapes, are constants here, as exporters have them.
"""

from __future__ import annotations

import re
import warnings
from collections import Counter
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import numpy_helper

from microtir import CompilationConfig, Target, build
from microtir.errors import MicrotirError
from microtir.frontend import from_onnx
from microtir.frontend.onnx import loops
from microtir.graph.ir import Graph
from microtir.module.ir_module import IRModule
from microtir.operators.control.definition import Repeat
from microtir.rewrite.reference import execute
from microtir.rewrite.verify import verify
from tests.support.batch import load_batch
from tests.support.golden import Golden
from tests.support.onnx_models import run_onnxruntime

pytestmark = pytest.mark.tools

PASSED, REFUSED, WRONG = "passed", "refused", "wrong"
AS_ONNXRUNTIME = "as onnxruntime, not as the reference of the package"
LEAST_PASSED = 1680
ONNXRUNTIME_DIFFERS = frozenset((
    # Its places count in the plane that would follow, not in the one that is given.
    "test_maxunpool_export_with_output_shape",
    # Its corners lie where the scale puts the end of the axis, between elements of the result.
    "test_resize_downsample_scales_cubic_align_corners",
    "test_resize_downsample_scales_linear_align_corners",
))  # fmt: skip
LEAST_REPEATED = 12
FEW_BITS = ("int4", "uint4", "int2", "uint2")
EVERY = 10  # of which one is compiled for every change, and all in the soak


@dataclass(frozen=True)
class NodeCase:
    """A model with inputs and outputs that belong together."""

    name: str
    model: bytes
    inputs: tuple[Any, ...]
    outputs: tuple[Any, ...]
    rtol: float
    atol: float


def as_array(value: Any) -> Any:
    """Return a value of a case, some of which are given as messages; sequences are lists."""
    if isinstance(value, list):
        return [as_array(item) for item in value]
    return numpy_helper.to_array(value) if isinstance(value, onnx.TensorProto) else value


@cache
def cases() -> tuple[NodeCase, ...]:
    """Return all cases of the package, by name."""
    from onnx.backend.test.case.node import collect_testcases

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        collected = collect_testcases()
    made = [
        NodeCase(
            case.name,
            case.model.SerializeToString(),
            tuple(map(as_array, case.data_sets[0][0])),
            tuple(map(as_array, case.data_sets[0][1])),
            case.rtol,
            case.atol,
        )
        for case in collected
        if case.data_sets and case.model is not None
    ]
    return tuple(sorted(made, key=lambda case: case.name))


def with_constants(case: NodeCase, kept: int) -> NodeCase:
    """Return the case with all inputs but the first `kept` ones as constants of the model."""
    model = onnx.load_model_from_string(case.model)
    names = [value.name for value in model.graph.input]
    for name, array in list(zip(names, case.inputs, strict=False))[kept:]:
        model.graph.initializer.append(numpy_helper.from_array(np.asarray(array), name))
    for value in list(model.graph.input)[kept:]:
        model.graph.input.remove(value)
    return replace(case, model=model.SerializeToString(), inputs=case.inputs[:kept])


def tensors_of(values: tuple[Any, ...]) -> list[Any]:
    """Return arrays of a case, those of sequences one by one; what holds nothing is none."""
    lists = [value if isinstance(value, list) else [value] for value in values]
    return [np.asarray(array) for arrays in lists for array in arrays if np.size(array)]


def shapes_of_sequences(case: NodeCase) -> dict[str, tuple[int, ...]]:
    """Return what a caller says of sequences: the shapes of their tensors, by name and number.

    Tensors beside them have the same open extents.
    """
    if not any(isinstance(value, list) for value in case.inputs):
        return {}
    names = [value.name for value in onnx.load_model_from_string(case.model).graph.input]
    shapes: dict[str, tuple[int, ...]] = {}
    for name, value in zip(names, case.inputs, strict=False):
        if isinstance(value, list):
            shapes |= {f"{name}.{n}": np.shape(array) for n, array in enumerate(value)}
        else:
            shapes[name] = np.shape(value)
    return shapes


def read(case: NodeCase) -> tuple[NodeCase, Graph]:
    """Return the graph of a case, and the case as it was read.

    Raises:
        MicrotirError: it is refused.
    """
    for kept in (len(case.inputs), 1, 0):
        case = with_constants(case, kept) if kept < len(case.inputs) else case
        try:
            shapes = shapes_of_sequences(case)
            module = from_onnx(case.model, name=case.name, input_shapes=shapes)
        except MicrotirError as error:
            if "the model computes" not in str(error) or not kept:
                raise
        else:
            break
    assert module.graph is not None
    verify(module.graph)
    return case, module.graph


def is_equal(case: NodeCase, graph: Graph, got: dict[str, Any]) -> bool:
    """Return whether outputs are those of the case, of which those that hold nothing are none."""
    wanted, got = tensors_of(case.outputs), dict(got)
    for counted in graph.counted:  # which have a count behind them, and rows that mean nothing
        rows = np.moveaxis(got[counted.name], counted.axis, 0)[: int(got[counted.count][0])]
        got[counted.name] = np.moveaxis(rows, 0, counted.axis)
    counts = {counted.count for counted in graph.counted}
    names = [t.name for t in graph.outputs if t.name not in counts and got[t.name].size]
    if len(wanted) != len(names):
        return False
    for name, want in zip(names, wanted, strict=True):
        found = got[name]
        if found.shape != want.shape:
            return False
        rtol, atol = max(case.rtol, 1e-4), max(case.atol, 1e-6)
        if want.dtype == np.float16:  # which the package rounds to on the way, too
            atol = max(atol, 1e-3)
        if want.dtype.kind != "f":
            rtol = atol = 0.0
        wide = found.astype(np.float64), want.astype(np.float64)
        if not np.allclose(*wide, rtol=rtol, atol=atol, equal_nan=True):
            return False
    return True


def inputs_of(case: NodeCase, graph: Graph) -> dict[str, Any]:
    """Return the inputs by name."""
    # What holds nothing is a constant; floats of other widths are taken as float32,
    # integers of few bits as such of 8.
    given = tensors_of(case.inputs)
    return {
        t.name: x.astype(t.dtype.value) if x.dtype.kind == "f" or x.dtype.name in FEW_BITS else x
        for t, x in zip(graph.inputs, given, strict=True)
    }


_DETAILS = re.compile(r"\([^()]*\)|'[^']*'|-?\d+")


def outcome(case: NodeCase) -> str:
    """Return what becomes of a case: passed, wrong, or refused with the kind of its problem."""
    try:
        case, graph = read(case)
    except MicrotirError as error:
        problems = getattr(error, "problems", ()) or (error,)
        if re.search("tensorflow|tflite", str(error), re.IGNORECASE):
            return WRONG  # it speaks of what people have who convert to another format
        what = _DETAILS.sub("#", problems[0].what)
        return f"{REFUSED}: {what[:60]}"
    with np.errstate(all="ignore"):
        got = execute(graph, inputs_of(case, graph))
    if is_equal(case, graph, got):
        return PASSED
    given = {t.name: x for t, x in zip(graph.inputs, case.inputs, strict=True)}
    if case.name not in ONNXRUNTIME_DIFFERS:
        return WRONG
    other = replace(case, outputs=tuple(run_onnxruntime(case.model, given)))
    return AS_ONNXRUNTIME if is_equal(other, graph, got) else WRONG


@cache
def ledger() -> dict[str, str]:
    """Return what becomes of each case."""
    return {case.name: outcome(case) for case in cases()}


def test_what_becomes_of_each_case(golden: Golden) -> None:
    """No case is wrong; those that pass and those that are refused are the same as before.

    A few are as onnxruntime computes them, which the package's own reference does not.
    """
    found = ledger()
    assert not [name for name, became in found.items() if became == WRONG]
    counts = Counter(became for became in found.values())
    assert counts[PASSED] >= LEAST_PASSED
    lines = [f"{len(found)} cases, {counts[PASSED]} passed", ""]
    lines += [f"{name}: {became}" for name, became in found.items()]
    golden.check("onnx/node_cases.txt", "\n".join(lines) + "\n")


def test_cases_with_loops_as_loops_of_the_graph(monkeypatch: pytest.MonkeyPatch) -> None:
    """Their few turns, which are else written out, are one turn that is repeated."""
    became, repeated = ledger(), 0
    monkeypatch.setattr(loops, "FEW_TURNS", 0)
    for case in cases():
        is_one = re.match("test_(loop|scan|gru|rnn|simple_rnn|lstm)", case.name)
        if is_one and became[case.name] == PASSED:
            own, graph = read(case)
            repeated += any(isinstance(node.op, Repeat) for node in graph.nodes)
            assert is_equal(own, graph, execute(graph, inputs_of(own, graph))), case.name
    assert repeated >= LEAST_REPEATED


def passed(remainders: range) -> list[NodeCase]:
    """Return the cases that pass and compute something, of every few the chosen ones."""
    chosen = [case for case in cases() if ledger()[case.name] == PASSED]
    return [case for number, case in enumerate(chosen) if number % EVERY in remainders]


@pytest.mark.timeout(900)  # more than a thousand programs
@pytest.mark.parametrize(
    "remainders",
    [
        pytest.param(range(1), id="a tenth"),
        pytest.param(range(1, EVERY), id="the others", marks=pytest.mark.soak_only),
    ],
)
def test_compiled_cases(tmp_path_factory: pytest.TempPathFactory, remainders: range) -> None:
    """What passes in the reference passes in C."""
    read_cases = [read(case) for case in passed(remainders)]
    config = CompilationConfig.from_target(Target("c"))
    artifacts = [
        build(IRModule(graph=graph), config.with_(module_name=f"case_{number}"))
        for number, (_, graph) in enumerate(read_cases)
    ]
    models = load_batch(artifacts, tmp_path_factory.mktemp("cases"))
    for (case, graph), model in zip(read_cases, models, strict=True):
        assert is_equal(case, graph, model.run(inputs_of(case, graph))), case.name
