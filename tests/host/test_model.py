"""Compiled models run from numpy."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from microtir import host
from microtir.dtype import DType
from microtir.errors import RunError, UsageError
from microtir.host.tensors import TensorInfo, matched
from microtir.tir.build import floormod, seq
from microtir.tir.interpreter import Interpreter
from microtir.tir.ir import Buffer, BufferView, IntImm, Invoke, Stmt, Store
from microtir.tir.visitor import Rewriter, rewrite_function
from tests.support.c_compilers import HOST_COMPILERS
from tests.support.programs import (
    ROWS,
    artifact_of,
    config,
    image,
    matmul_module,
    model_module,
)


@pytest.fixture(scope="module")
def model() -> host.Model:
    """Return the small model, compiled."""
    return host.load(artifact_of(model_module()))


def test_description(model: host.Model) -> None:
    """Inputs and outputs are described by name, shape, type and quantisation."""
    (given,), (result,) = model.inputs, model.outputs
    assert (given.name, given.member) == ("serving/image:0", "image")
    assert given.shape == (ROWS, 3)
    assert given.dtype == np.dtype(np.int8)
    assert (given.scale, given.zero_point) == (0.5, -128)
    assert (result.name, result.scale, result.zero_point) == ("scores", 0.25, 3)


def test_result_is_that_of_the_interpreter(model: host.Model) -> None:
    """The compiled model computes what the TIR of its main means."""
    module = model_module()
    scores, workspace = np.zeros((ROWS, 2), np.int8), np.zeros(24, np.uint8)
    Interpreter(module.functions).run("main", [image(), scores, workspace])
    assert np.array_equal(model.run({"image": image()})["scores"], scores)


def test_input_by_either_name(model: host.Model) -> None:
    """An input goes by its name in the model file or by that in C."""
    a = model.run({"image": image()})["scores"]
    b = model.run({"serving/image:0": image()})["scores"]
    assert np.array_equal(a, b)


def test_an_array_is_the_only_input(model: host.Model) -> None:
    """A model with one input takes its array; called, it gives the array of its only output."""
    scores = model.run({"image": image()})["scores"]
    assert np.array_equal(model.run(image())["scores"], scores)
    assert np.array_equal(np.asarray(model(image())), scores)
    with pytest.raises(RunError, match=r"(?s)got float64\[4, 3\].*fix:.*quantise"):
        model.run(image() * 0.5)


def test_an_array_for_several_inputs_is_refused() -> None:
    """Which input it was for, nobody can say."""
    both = [TensorInfo(name, name, (1,), np.dtype(np.int8), None, None) for name in "ab"]
    with pytest.raises(RunError, match=r"(?s)has 2 inputs.*'a' int8\[1\], 'b' int8\[1\]"):
        matched(both, np.zeros(1, np.int8))


def test_real_values_of_a_port() -> None:
    """Real values are stored as QUANTIZE stores them, and come back as multiples of the scale."""
    port = TensorInfo("x", "x", (8,), np.dtype(np.int8), 0.5, 3)
    real = [0.25, -0.25, 0.24, 1e9, -1e9, float("nan"), 62.0, float("-inf")]
    stored = port.quantise(real)
    assert stored.dtype == np.int8
    assert stored.tolist() == [4, 2, 3, 127, -128, -128, 127, -128]
    assert port.dequantise(stored).tolist() == [0.5, -0.5, 0, 62, -65.5, -65.5, 62, -65.5]
    floats = TensorInfo("x", "x", (1,), np.dtype(np.float32), None, None)
    assert floats.quantise([0.1]).dtype == np.float32
    assert floats.dequantise([0.5]).tolist() == [0.5]
    for nothing in ("cat", None, 1j, [[1], [2, 3]]):
        with pytest.raises(RunError, match="are not numbers"):
            port.quantise(nothing)  # type: ignore[arg-type]  # what users give
    for foreign in ([128], [-129, 0], [0.5], [np.nan]):
        with pytest.raises(RunError, match="which it does not store"):
            port.dequantise(foreign)


def test_result_does_not_depend_on_the_workspace(model: host.Model) -> None:
    """Whatever the workspace held before, the result is the same."""
    results = [model.run({"image": image()}, fill_workspace=f)["scores"] for f in (0, 0x7F, 0xA5)]
    assert all(np.array_equal(results[0], result) for result in results[1:])


def test_strided_input(model: host.Model) -> None:
    """An array that is a view of another one is copied before C sees it."""
    wide = np.zeros((ROWS, 6), np.int8)
    wide[:, ::2] = image()
    assert np.array_equal(
        model.run({"image": wide[:, ::2]})["scores"], model.run({"image": image()})["scores"]
    )


@pytest.mark.parametrize(
    ("inputs", "message"),
    [
        ({}, r"input 'serving/image:0' is missing\n  expected: 'serving/image:0' int8\[4, 3\]"),
        ({"imag": image()}, r"(?s)no input 'imag'.*did you mean 'image'"),
        ({"image": image().astype(np.float32)}, r"(?s)got float32\[4, 3\].*int8\[4, 3\]"),
        ({"image": image()[:2]}, r"(?s)got int8\[2, 3\].*int8\[4, 3\]"),
        ({"image": image(), "serving/image:0": image()}, "given twice"),
    ],
)
def test_wrong_inputs(model: host.Model, inputs: dict[str, np.ndarray], message: str) -> None:
    """An input that does not fit is refused before C is called, with what is legal."""
    with pytest.raises(RunError, match=message):
        model.run(inputs)


def test_status_becomes_an_exception(model: host.Model) -> None:
    """What the C code refuses is raised with the C code's own sentence."""
    backend = model._backend
    scores, memory = np.zeros((ROWS, 2), np.int8), np.zeros(64, np.uint8)
    odd = memory[1 + (-memory.ctypes.data % 8) :][:24]
    status = backend.run([image()], [scores], odd)
    assert status == -2
    assert backend.status_text(status) == "the workspace is not aligned"


def test_model_has_no_functions(model: host.Model) -> None:
    """A model is not indexed by function, and a user's program has no run()."""
    with pytest.raises(UsageError, match=r"use run\(\)"):
        model["matmul"]
    program = host.load(artifact_of(matmul_module()))
    with pytest.raises(UsageError, match=r"(?s)not a model.*matmul"):
        program.run({})


def test_models_share_a_process() -> None:
    """Two models with equal names of helpers and layers do not disturb each other."""
    first = host.load(artifact_of(model_module(config("first"))))
    second = host.load(artifact_of(model_module(config("second"), rows_at_once=2)))
    a, b = first.run({"image": image()}), second.run({"image": image()})
    assert np.array_equal(a["scores"], b["scores"])


@pytest.mark.parametrize("opt_level", [0, 3])
@pytest.mark.parametrize("compiler", HOST_COMPILERS)
def test_compilers_agree(model: host.Model, compiler: str, opt_level: int) -> None:
    """Every compiler gives the same bytes, at every level of optimisation."""
    expected = model.run({"image": image()})["scores"]
    other = host.load(artifact_of(model_module()), compiler=compiler, opt_level=opt_level)
    assert np.array_equal(other.run({"image": image()})["scores"], expected)


# --- layers -------------------------------------------------------------------------------------


@pytest.mark.parametrize("rows_at_once", [ROWS, 2, 1])
def test_layers(rows_at_once: int) -> None:
    """In a debug build every layer's output is seen, also where it is computed row by row."""
    model = host.load(artifact_of(model_module(rows_at_once=rows_at_once)), debug=True)
    outputs, (dense, relu) = model.run_layers({"image": image()})
    assert (dense.operator, dense.name, dense.index) == ("FULLY_CONNECTED", "net/dense*/MatMul", 0)
    assert dense.function == "small_layer0_fully_connected"
    assert dense.outputs[0].shape == (ROWS, 2)
    assert np.array_equal(np.maximum(dense.outputs[0], -20), outputs["scores"])
    assert np.array_equal(relu.outputs[0].ravel(), outputs["scores"].ravel())


class _Ring(Rewriter):
    """Stores each row of a tensor into the one slot of a ring."""

    def __init__(self, whole: Buffer, slot: Buffer) -> None:
        self.whole = whole
        self.slot = slot

    def stmt(self, s: Stmt) -> Stmt:
        if isinstance(s, Store) and s.buffer is self.whole:
            return Store(self.slot, (floormod(s.indices[0], 1), s.indices[1]), s.value)
        return self.stmt_parts(s)


def test_layers_in_a_rolling_buffer() -> None:
    """Rows of a ring are collected as they are written, before they are overwritten."""
    module = model_module(rows_at_once=1)
    dense, relu, main = module.functions
    x, y, y0, y1 = dense.params
    assert isinstance(y, Buffer)
    slot = replace(y, shape=(1, 2))
    ring = replace(rewrite_function(dense, _Ring(y, slot)), params=(x, slot, y0, y1))
    image_, scores, workspace = (p for p in main.params if isinstance(p, Buffer))
    calls = [
        Invoke(
            dense.name,
            (
                BufferView(image_, (ROWS, 3), DType.INT8),
                BufferView(workspace, (1, 2), DType.INT8, 16),
                IntImm(row),
                IntImm(row + 1),
            ),
        )
        for row in range(ROWS)
    ]
    flat = [BufferView(b, (ROWS * 2,), DType.INT8) for b in (workspace, scores)]
    calls.append(Invoke(relu.name, tuple(flat)))
    ring_module = module.with_functions((ring, relu, replace(main, body=seq(*calls))))
    _, (found, _) = host.load(artifact_of(ring_module), debug=True).run_layers({"image": image()})
    whole = host.load(artifact_of(model_module()), debug=True)
    _, (expected, _) = whole.run_layers({"image": image()})
    assert np.array_equal(found.outputs[0], expected.outputs[0])


def test_layers_need_a_debug_build(model: host.Model) -> None:
    """Without a debug build the layers are not visible, and the error says how to get one."""
    with pytest.raises(UsageError, match=r"debug=True"):
        model.run_layers({"image": image()})
