"""The bound of the stack in the header, against the frames that compilers write down."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Callable, Mapping
from pathlib import Path

import numpy as np
import pytest

from microtir.codegen.program import Program, make_program
from microtir.codegen.stack import worst_stack
from microtir.config import CompilationConfig, Executor, Runtime
from microtir.driver import build, lower
from microtir.graph import ops
from microtir.graph.ir import Graph
from microtir.ir_module import IRModule
from microtir.tir.dtype import DType
from microtir.tir.ir import Invoke, KernelCall, PrimFunc
from microtir.tir.visitor import walk
from tests.support.graphs import constant, graph, node, quant, tensor
from tests.support.programs import config, matmul_module, model_module
from tests.support.small_models import module_of, quantised_graph

FRAMES = re.compile(r"^[^\t]*:(\w[^:\t]*)\t(\d+)\t", re.MULTILINE)
ARM = ("arm-none-eabi-gcc", "-mthumb", "-mfloat-abi=hard")
COMPILERS: Mapping[str, tuple[str, tuple[str, ...]]] = {
    "host": ("c", ("gcc",)),
    "m4": ("c -mcpu=cortex-m4", (*ARM, "-mcpu=cortex-m4")),
    "m0": ("c -mcpu=cortex-m0", ("arm-none-eabi-gcc", "-mthumb", "-mcpu=cortex-m0")),
    "riscv": (
        "c -march=rv32imac",
        ("riscv64-unknown-elf-gcc", "-march=rv32imac", "-mabi=ilp32", "-ffreestanding"),
    ),
    "avr": ("c -mcpu=atmega2560", ("avr-gcc", "-mmcu=atmega2560")),
    "clang": ("c", ("clang",)),
    "vectors": ("c -mcpu=x86-64", ("gcc", "-mavx2")),
    "vectors-clang": ("c -mcpu=x86-64", ("clang", "-mavx2")),
}
INSTALLED = [name for name, (_, command) in COMPILERS.items() if shutil.which(command[0])]


def mixed_layers() -> Graph:
    """A convolution that a DSP's micro-kernels take, pooling, a dense layer, a softmax."""
    x, a = (tensor(n, (1, 4, 8, 16), DType.INT8, quant(0.1, 3)) for n in "xa")
    b = tensor("b", (1, 2, 4, 16), DType.INT8, quant(0.1, 3))
    flat = tensor("flat", (1, 128), DType.INT8, quant(0.1, 3))
    c = tensor("c", (1, 12), DType.INT8, quant(0.2, -4))
    y = tensor("y", (1, 12), DType.INT8, quant(1 / 256, -128))
    rng = np.random.default_rng(1)
    filters = constant(
        "filters", rng.integers(-99, 99, (16, 3, 3, 16)).astype(np.int8), quant(0.01)
    )
    weights = constant("weights", rng.integers(-99, 99, (12, 128)).astype(np.int8), quant(0.01))
    padding = ops.Padding2D(1, 1, 1, 1)
    return graph(
        [
            node(ops.Conv2D((1, 1), (1, 1), padding), (x, filters), a),
            node(ops.AveragePool2D((2, 2), (2, 2)), (a,), b),
            node(ops.Reshape(), (b,), flat),
            node(ops.FullyConnected(), (flat, weights), c),
            node(ops.Softmax(), (c,), y),
        ],
        [x],
        [y],
    )


def frames_of(module: IRModule, command: tuple[str, ...], level: str, folder: Path) -> int:
    """Bytes of the deepest chain of calls of the compiled code, helpers included.

    A function without a frame of its own was inlined, or is assembly, whose bytes its contract
    states.
    """
    build(module).export(folder, force=True)
    name = module.config.module_name if module.config else ""
    options = ("-std=c99", level, "-fstack-usage", "-w", "-c", f"{name}.c", "-o", f"{name}.o")
    subprocess.run([*command, *options], cwd=folder, check=True, timeout=60)
    text = (folder / f"{name}.su").read_text()
    found = {function.split(".")[0]: int(size) for function, size in FRAMES.findall(text)}
    program = make_program(module)
    known = {program.names[f] for f in program.functions} | {f"{name}_run", f"{name}_status_text"}
    helper = max((size for function, size in found.items() if function not in known), default=0)
    assert f"{name}_run" in found
    return helper + _depth(program, program.entry, found)


def _depth(program: Program, function: PrimFunc, found: Mapping[str, int]) -> int:
    is_entry = function is program.entry
    own = found.get(f"{program.name}_run" if is_entry else program.names[function], 0)
    below = [0]
    for n in walk(function):
        if isinstance(n, Invoke):
            below.append(_depth(program, program.callee(n.function), found))
        elif isinstance(n, KernelCall):
            depth = _depth(program, n.meaning, found)
            is_assembly = "assembly" in n.meaning.attrs
            below.append(max(depth, n.contract.stack_bytes if is_assembly else 0))
    return own + max(below)


@pytest.mark.parametrize("model", [quantised_graph, mixed_layers])
@pytest.mark.parametrize("name", INSTALLED)
def test_no_compiler_takes_more(name: str, model: Callable[[], Graph], tmp_path: Path) -> None:
    """At every level below -O3 the frames of the deepest chain are within the bound."""
    target, command = COMPILERS[name]
    module = lower(module_of(model()).with_configuration(CompilationConfig(targets=target)))
    bound = worst_stack(make_program(module)).bytes
    taken = [frames_of(module, command, f"-O{n}", tmp_path / "out") for n in ("0", "1", "2", "s")]
    assert max(taken) <= bound
    assert bound <= 12 * max(taken), "a bound that is never near is of no use"


EXECUTORS = {
    "packed": (
        Executor("aot", {"interface-api": "packed"}),
        ("_run", "_run_unpacked", "_packed", "_layer", "microtir_tensor_argument"),
    ),
    "graph": (Executor("graph"), ("_run", "microtir_graph_run", "_node_", "_layer")),
    "debug": (
        Executor("debug"),
        ("_run", "_run_observed", "microtir_graph_run_observed", "microtir_measure", "run_step",
         "microtir_graph_run_node", "_node_", "_layer"),
    ),
}  # fmt: skip


@pytest.mark.parametrize("level", ["-O0", "-O2"])
@pytest.mark.parametrize("name", EXECUTORS)
def test_no_executor_takes_more(name: str, level: str, tmp_path: Path) -> None:
    """What runs between the entry and a layer counts: the largest frame of each kind."""
    executor, chain = EXECUTORS[name]
    config_ = CompilationConfig(targets="c", executor=executor)
    artifact = build(module_of(mixed_layers()), config_)
    artifact.export(tmp_path / "out")
    units = [file.path for file in artifact.sources if file.path.endswith(".c")]
    options = ("-std=c99", level, "-fstack-usage", "-w", "-I.", "-Iruntime_crt/include", "-c")
    subprocess.run(["gcc", *options, *units], cwd=tmp_path / "out", check=True, timeout=60)
    text = "".join(path.read_text() for path in (tmp_path / "out").glob("*.su"))
    found = {function.split(".")[0]: int(size) for function, size in FRAMES.findall(text)}
    taken = sum(
        max((size for function, size in found.items() if _is_of(function, part)), default=0)
        for part in chain
    )
    bound = worst_stack(make_program(artifact.module)).bytes
    assert taken <= bound <= 12 * taken


def _is_of(function: str, part: str) -> bool:
    """Whether a function is meant by a part of a chain: by its whole name, start or end."""
    if part in ("_node_", "_layer"):
        return function.startswith(f"default{part}") and not function.endswith("_packed")
    return (
        function == part
        or (part.startswith("_") and function in (f"default{part}",))
        or (part == "_packed" and function.endswith(part))
    )


def test_the_chain_is_named_from_the_entry_to_the_library() -> None:
    """Frames are those of the entry, a layer, a micro-kernel and what the compiler calls."""
    config_ = CompilationConfig(targets="c -mcpu=cortex-m4", optimize="speed")
    program = make_program(lower(module_of(mixed_layers()).with_configuration(config_)))
    chain = [frame.function for frame in worst_stack(program).frames]
    assert chain[0] == "default_run"
    assert chain[1].startswith("default_layer")
    assert chain[2].startswith(("default_gemm", "default_dense", "default_patch"))
    assert chain[3] == "library"


def test_a_wrapper_and_wide_registers_count() -> None:
    """A packed wrapper is a call more, and code for any CPU may run on one of 64 bits."""
    plain = worst_stack(make_program(model_module()))
    packed = worst_stack(
        make_program(model_module(config("packed", runtime=Runtime("crt", {"system-lib": True}))))
    )
    assert packed.frames[0].function == "packed_run_packed"
    assert packed.bytes > plain.bytes
    narrow = worst_stack(make_program(model_module(config().with_(targets="c -mcpu=cortex-m0"))))
    assert narrow.bytes < plain.bytes


def test_a_program_without_a_model_has_a_bound() -> None:
    """The functions of a user count from the deepest one on."""
    worst = worst_stack(make_program(lower(matmul_module())))
    assert worst.bytes > 0
    assert "matmul" in worst.frames[0].function
