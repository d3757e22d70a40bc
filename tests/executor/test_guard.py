"""Counts of inputs that calibration did not see: compared with numpy, and free where left out."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import cffi
import numpy as np
import pytest

import microtir
from microtir import CompilationConfig, Executor, Runtime
from microtir.artifact import Artifact
from microtir.codegen.unseen import guarded_ports, unseen_counter
from microtir.dtype import DType
from microtir.errors import ConfigError
from microtir.graph.ir import Array, Graph
from microtir.host.declarations import declarations
from microtir.host.toolchain import find_compiler
from microtir.lowering.input_guards import seen_range
from microtir.module.ir_module import IRModule, SeenRange
from microtir.operators.activations.definition import HardSwish
from microtir.operators.arithmetic.definition import Add
from microtir.operators.conversion.definition import Dequantize, Quantize
from microtir.operators.movement.definition import Reshape
from microtir.tir.analysis.access import prove_accesses
from microtir.tir.interpreter import Interpreter
from microtir.tir.verify import verify
from tests.support.board_projects import digits_with
from tests.support.c_compilers import INCLUDES, STRICT, compiler_output
from tests.support.graphs import graph, node, quant, tensor

GUARD = Executor("aot", {"guard-inputs": True})
CONFIG = CompilationConfig(targets="c", module_name="net", executor=GUARD)
SHAPE = (2, 3, 50)
SCALE, ZERO = 0.0625, -7


def stored_graph(dtype: DType) -> Graph:
    """Return a sum of two inputs of an integer type, as real numbers."""
    type_ = quant(0.05, 0 if dtype is DType.INT16 else 3)
    left, right = (tensor(name, SHAPE, dtype, type_) for name in ("left", "guard"))
    reals = [tensor(f"{t.name}_real", SHAPE) for t in (left, right)]
    y = tensor("y", SHAPE)
    nodes = [node(Dequantize(), (t,), r) for t, r in zip((left, right), reals, strict=True)]
    return graph([*nodes, node(Add(), reals, y)], [left, right], [y])


def real_graph(*, is_read_as_it_is: bool = False) -> Graph:
    """Return floats that QUANTIZE reads behind another shape, and a second input that none does."""
    x, other = tensor("x", SHAPE), tensor("other", SHAPE)
    flat, z = tensor("flat", (6, 50)), tensor("z", SHAPE)
    y = tensor("y", (6, 50), DType.INT8, quant(SCALE, ZERO))
    nodes = [
        node(Reshape(), (x,), flat),
        node(Quantize(), (flat,), y),
        node(HardSwish(), (x if is_read_as_it_is else other,), z),
    ]
    return graph(nodes, [x, other], [y, z])


class Program:
    """A compiled artifact, called through cffi."""

    def __init__(self, artifact: Artifact, folder: Path) -> None:
        artifact.export(folder)
        units = [file.path for file in artifact.sources if file.path.endswith(".c")]
        command = ["gcc", "-std=c99", *STRICT, "-O2", "-fPIC", "-shared", *INCLUDES]
        said = compiler_output([*command, *units, "-o", "net.so", "-lm"], folder)
        assert not said, said
        self.ffi = cffi.FFI()
        self.ffi.cdef(declarations(find_compiler("gcc"), folder, ["net.h"]))
        self.library: Any = self.ffi.dlopen(str(folder / "net.so"))
        self.model = artifact.module.model
        self.guard = self.ffi.new("struct net_guard *")

    def arguments(self, inputs: dict[str, Array]) -> list[Any]:
        """Return the arguments of a run up to the place of counts, and keep them alive."""
        assert self.model is not None
        self.memory = np.zeros(self.model.memory.workspace_size + 64, np.uint8)
        self.made = {p.c_name: np.zeros(p.type.shape, p.type.dtype.value)
                     for p in self.model.outputs}  # fmt: skip
        structs = []
        for kind, arrays in (("inputs", inputs), ("outputs", self.made)):
            struct = self.ffi.new(f"struct net_{kind} *")
            for name, array in arrays.items():
                types = dict(self.ffi.typeof(struct[0]).fields)
                setattr(struct, name, self.ffi.cast(types[name].type, array.ctypes.data))
            structs.append(struct)
        start = -self.memory.ctypes.data % 64
        return [*structs, self.ffi.cast("void *", self.memory.ctypes.data + start)]

    def run(self, inputs: dict[str, Array], *, is_asked: bool = True) -> None:
        """Run the model; what was counted is in `guard`."""
        place = self.guard if is_asked else self.ffi.NULL
        assert self.library.net_run(*self.arguments(inputs), place) == 0


def ends_of(values: Array) -> int:
    """Count the values at the ends of their type."""
    info = np.iinfo(values.dtype)
    return int(((values == info.min) | (values == info.max)).sum())


@pytest.mark.parametrize("dtype", [DType.INT8, DType.UINT8, DType.INT16])
def test_stored_values(dtype: DType, tmp_path: Path) -> None:
    """The ends of a type are counted for each input, each run anew; NULL asks for nothing."""
    program = Program(microtir.build(IRModule(graph=stored_graph(dtype)), CONFIG), tmp_path)
    rng, info = np.random.default_rng(5), np.iinfo(dtype.value)
    for spread in (0.5, 1.5):
        values = rng.normal(0, spread, (2, *SHAPE)) * (info.max - info.min) / 2
        middle = (info.max + info.min + 1) // 2
        left, right = np.clip(np.round(values + middle), info.min, info.max).astype(dtype.value)
        program.run({"left": left, "guard": right})
        assert program.guard.left == ends_of(left) > 0
        assert program.guard.guard == ends_of(right) > 0
    program.guard.left = 4711
    program.run({"left": left, "guard": right}, is_asked=False)
    assert program.guard.left == 4711


def test_floats_that_are_quantised(tmp_path: Path) -> None:
    """Those that QUANTIZE clips are counted, with NaN; an input that is not quantised has none."""
    program = Program(microtir.build(IRModule(graph=real_graph()), CONFIG), tmp_path)
    assert "other" not in dict(program.ffi.typeof("struct net_guard").fields)
    values = np.random.default_rng(6).normal(0, 6, SHAPE).astype(np.float32)
    values[0, 0, :3] = np.nan, np.inf, -np.inf
    stored = np.round(values / np.float32(SCALE)) + ZERO
    outside = ~((stored >= -128) & (stored <= 127))
    assert 10 < outside.sum() < values.size / 2
    program.run({"x": values, "other": np.zeros(SHAPE, np.float32)})
    assert program.guard.x == outside.sum()


@pytest.mark.parametrize("dtype", [DType.INT8, DType.UINT8, DType.INT16, DType.FLOAT32])
def test_the_counter_is_tir(dtype: DType) -> None:
    """It is proven like any function, and what it computes is interpreted before it is printed."""
    whole = real_graph() if dtype.is_float else stored_graph(dtype)
    model = microtir.build(IRModule(graph=whole), CONFIG).module.model
    assert model is not None
    counter = unseen_counter(model)
    assert counter is not None
    verify(counter)
    prove_accesses(counter)
    rng = np.random.default_rng(7)
    values = [rng.normal(0, 90, 300).round() for _ in counter.params[::2]]
    ends = (-128, 127) if dtype.is_float else (dtype.min, dtype.max)
    arrays = [np.clip(v, *ends).astype(dtype.value) for v in values]
    if dtype.is_float:
        arrays[0][:2] = np.nan, -np.inf
    counts = [np.full(1, 4711, np.uint32) for _ in arrays]
    pairs = [array for pair in zip(arrays, counts, strict=True) for array in pair]
    Interpreter([counter]).run(counter.name, pairs)
    for (_, seen), array, count in zip(guarded_ports(model), arrays, counts, strict=True):
        inside = (array >= np.float32(seen.low)) & (array <= np.float32(seen.high))
        assert count[0] == (~inside).sum()


def test_ends_of_floats() -> None:
    """What is rounded to an end of the type is inside; half a step further it is clipped."""
    whole = real_graph()
    low, high = SCALE * (-128.5 - ZERO), SCALE * (127.5 - ZERO)
    assert seen_range(whole, whole.inputs[0]) == SeenRange(low, high)
    shared = real_graph(is_read_as_it_is=True)
    assert seen_range(shared, shared.inputs[0]) is None


def test_declared_ranges(tmp_path: Path) -> None:
    """Where the user declared what an input takes, other values are counted: they go wrong."""
    config = CONFIG.with_(pass_config={"graph.input_ranges": "left=-100..127"})
    graph_ = stored_graph(DType.INT8)
    program = Program(microtir.build(IRModule(graph=graph_), config), tmp_path)
    values = np.arange(300).reshape(SHAPE) % 256 - 128
    left = values.astype(np.int8)
    program.run({"left": left, "guard": left})
    assert program.guard.left == (left < -100).sum()
    assert program.guard.guard == ends_of(left)


def test_steps_count_once(tmp_path: Path) -> None:
    """The first step of a run counts, and the others leave the counts alone."""
    # Elsewhere all operators of this graph are one loop, and so one step.
    config = CONFIG.with_(executor=GUARD.with_options({"steps": True}), optimize="flash")
    program = Program(microtir.build(IRModule(graph=stored_graph(DType.INT8)), config), tmp_path)
    left = (np.arange(300).reshape(SHAPE) % 256 - 128).astype(np.int8)
    given = {"left": left, "guard": left}
    arguments, following = program.arguments(given), program.ffi.new("int32_t *")
    assert program.library.net_step(*arguments, program.guard, following) == 0
    assert program.guard.left == ends_of(left)
    program.guard.left = 4711
    while program.library.net_step(*arguments, program.guard, following) == 0:
        assert program.guard.left == 4711
    assert following[0] > 1


def test_nothing_is_left_where_it_is_off() -> None:
    """Off is the default: the very same files come out, and none of them names the option."""
    plain = digits_with(CompilationConfig(targets="c"))
    off = digits_with(
        CompilationConfig(targets="c", executor=Executor("aot", {"guard-inputs": False}))
    )
    assert plain.files == off.files
    text = "".join(file.text for file in plain.sources)
    assert "guard" not in text and "unseen" not in text


@pytest.mark.parametrize(
    ("options", "what"),
    [
        ({"executor": GUARD.with_options({"interface-api": "packed"})}, "a packed call"),
        ({"runtime": Runtime("crt", {"system-lib": True})}, "a packed call"),
        ({"compatibility": "microtvm"}, "applications for microTVM"),
        ({"executor": GUARD.with_options({"row-fed-inputs": True})}, "no buffer holds"),
    ],
)
def test_what_is_refused(options: dict[str, Any], what: str) -> None:
    """Where a call has no place for counts, or no input is whole, the reason is said."""
    with pytest.raises(ConfigError, match=f"'guard-inputs' is True, .* because {what}") as error:
        CONFIG.with_(**options)
    assert error.value.where == "executor.guard-inputs"


def test_graph_executors_do_not_know_it() -> None:
    """Their table of calls has no place for what is looked at before the first."""
    with pytest.raises(ConfigError, match="'guard-inputs' is unknown"):
        Executor("graph", {"guard-inputs": True})


def test_models_that_tell_nothing_are_refused() -> None:
    """Floats that are computed with as they are have no range."""
    x, y = tensor("x", SHAPE), tensor("y", SHAPE)
    with pytest.raises(ConfigError, match="no input has a calibrated range: 'x'"):
        microtir.build(IRModule(graph=graph([node(HardSwish(), (x,), y)], [x], [y])), CONFIG)
