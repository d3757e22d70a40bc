"""The bound of the stack in the header, against the frames that compilers write down."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Callable, Mapping
from pathlib import Path

import numpy as np
import pytest

from microtir.codegen import measured
from microtir.codegen.program import CProgram, make_program
from microtir.config import CompilationConfig, Executor, Runtime
from microtir.driver import build, lower
from microtir.dtype import DType
from microtir.frontend import from_tflite
from microtir.graph.ir import Graph
from microtir.instruction_sets.arm import Arm
from microtir.measure.functions import has_intrinsics
from microtir.module.ir_module import IRModule
from microtir.operators.common.attributes import Padding2D
from microtir.operators.convolution.definition import Conv2D
from microtir.operators.dense.definition import FullyConnected
from microtir.operators.movement.definition import Reshape
from microtir.operators.pooling.definition import AveragePool2D
from microtir.operators.softmax.definition import Softmax
from microtir.profiling.disassembly import Instruction, parse
from microtir.profiling.stack_bound import pushed
from microtir.tir.ir import Invoke, KernelCall, PrimFunc
from microtir.tir.visitor import walk
from tests.support.dsp_cases import cases as dsp_cases
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
    padding = Padding2D(1, 1, 1, 1)
    return graph(
        [
            node(Conv2D((1, 1), (1, 1), padding), (x, filters), a),
            node(AveragePool2D((2, 2), (2, 2)), (a,), b),
            node(Reshape(), (b,), flat),
            node(FullyConnected(), (flat, weights), c),
            node(Softmax(), (c,), y),
        ],
        [x],
        [y],
    )


def frames_of(
    module: IRModule, program: CProgram, command: tuple[str, ...], level: str, folder: Path
) -> int:
    """Bytes of the deepest chain of calls of the compiled code, helpers included.

    A function without a frame of its own was inlined, or is assembly, whose bytes its contract
    states.
    """
    name = module.config.module_name if module.config else ""
    options = ("-std=c99", level, "-fstack-usage", "-w", "-c", f"{name}.c", "-o", f"{name}.o")
    subprocess.run([*command, *options], cwd=folder, check=True, timeout=60)
    text = (folder / f"{name}.su").read_text()
    found: dict[str, int] = {}
    for function, size in FRAMES.findall(text):
        plain = function.split(".")[0]
        found[plain] = max(found.get(plain, 0), int(size))
    public = {f"{name}_{function}" for function in ("run", "step", "status_text")}
    known = {program.names[f] for f in program.functions} | public
    helper = max((size for function, size in found.items() if function not in known), default=0)
    assert f"{name}_run" in found
    return helper + _depth(program, program.entry, found)


def _depth(program: CProgram, function: PrimFunc, found: Mapping[str, int]) -> int:
    names = [program.names[function]]
    if function is program.entry:
        names = [f"{program.name}_run", f"{program.name}_step"]
    own = max(found.get(name, 0) for name in names)
    below = [0]
    for n in walk(function):
        if isinstance(n, Invoke):
            below.append(_depth(program, program.callee(n.function), found))
        elif isinstance(n, KernelCall):
            depth = _depth(program, n.meaning, found)
            is_assembly = n.meaning in program.assembly and not has_intrinsics(n.meaning)
            below.append(max(depth, n.contract.stack_bytes if is_assembly else 0))
    return own + max(below)


LEVELS = ("-O0", "-O1", "-O2", "-Os")


def check_bounds(module: IRModule, command: tuple[str, ...], in_c: bool, folder: Path) -> None:
    """What every level takes is within the bound for it, and that is no wild guess."""
    stacks = measured(module).stacks
    bounds = dict.fromkeys(LEVELS, stacks.in_c if in_c else stacks.best)
    bounds["-O0"] = stacks.unoptimised
    build(module).export(folder)
    program = make_program(module)
    taken = {level: frames_of(module, program, command, level, folder) for level in LEVELS}
    for level in LEVELS:
        assert taken[level] <= bounds[level].bytes, (level, taken, stacks)
    # Vectors in intrinsics take far less where they are optimised than their contract says.
    most = 12 * max(taken.values())
    assert max(b.bytes for b in bounds.values()) <= most, "a bound that is never near is of no use"


@pytest.mark.parametrize("model", [quantised_graph, mixed_layers])
@pytest.mark.parametrize("name", INSTALLED)
def test_no_compiler_takes_more(name: str, model: Callable[[], Graph], tmp_path: Path) -> None:
    """At every level below -O3 the frames of the deepest chain are within the bound."""
    target, command = COMPILERS[name]
    module = lower(module_of(model()).with_configuration(CompilationConfig(targets=target)))
    check_bounds(module, command, False, tmp_path / "out")


@pytest.mark.parametrize("goal", ["ram", "speed"])
@pytest.mark.parametrize("name", INSTALLED)
def test_a_step_takes_no_more(name: str, goal: str, tmp_path: Path) -> None:
    """Where each step has pointers of its own, which -O0 keeps all, the bound counts them."""
    target, command = COMPILERS[name]
    config_ = CompilationConfig(
        targets=target, optimize=goal, executor=Executor("aot", {"steps": True})
    )
    module = lower(module_of(mixed_layers()).with_configuration(config_))
    check_bounds(module, command, False, tmp_path / "out")


@pytest.mark.parametrize("name", INSTALLED)
def test_counting_inputs_takes_no_more(name: str, tmp_path: Path) -> None:
    """What counts elements of inputs is called before the layers, whose frames are deeper."""
    target, command = COMPILERS[name]
    config_ = CompilationConfig(targets=target, executor=Executor("aot", {"guard-inputs": True}))
    module = lower(module_of(quantised_graph()).with_configuration(config_))
    check_bounds(module, command, False, tmp_path / "out")


CORES = {
    "m4": (*COMPILERS["m4"], False),
    "m4-in-c": ("c -mcpu=cortex-m4", (*ARM, "-mcpu=cortex-m3", "-mfloat-abi=soft"), True),
    "m55": ("c -mcpu=cortex-m55", (*ARM, "-mcpu=cortex-m55"), False),
    "riscv": (*COMPILERS["riscv"], False),
}


@pytest.mark.model("kws_int8")
@pytest.mark.parametrize("core", CORES)
def test_the_bound_of_a_model_is_true_and_small(
    core: str, models_dir: Path, tmp_path: Path
) -> None:
    """A real model in the least RAM: blocks of sums, peeled borders, assembly and its twins."""
    target, command, in_c = CORES[core]
    config_ = CompilationConfig(targets=target, optimize="ram-least")
    module = lower(from_tflite(models_dir / "kws_int8.tflite").with_configuration(config_))
    check_bounds(module, command, in_c, tmp_path / "out")
    assert measured(module).stacks.in_c.bytes <= 640


@pytest.mark.parametrize("core", ["cortex-m4", "cortex-m55"])
def test_assembly_takes_what_its_contract_says(core: str, tmp_path: Path) -> None:
    """What the instructions of a micro-kernel push at most is within it, and near."""
    seen = 0
    config_ = CompilationConfig(targets=f"c -mcpu={core}", optimize="speed")
    for number, model in enumerate([mixed_layers(), *(c.graph for c in dsp_cases(1))]):
        module = lower(module_of(model).with_configuration(config_))
        folder = tmp_path / str(number)
        build(module).export(folder)
        options = ("-std=c99", "-O2", "-w", "-c", "default.c", "-o", "default.o")
        subprocess.run([*ARM, f"-mcpu={core}", *options], cwd=folder, check=True, timeout=60)
        march = ("-m", "armv8.1-m.main") if core == "cortex-m55" else ()
        dump = ("arm-none-eabi-objdump", "-d", "--no-show-raw-insn", *march, "default.o")
        text = subprocess.run(dump, cwd=folder, check=True, capture_output=True, text=True).stdout
        code: dict[str, list[Instruction]] = {}
        for instruction in parse(text).values():
            code.setdefault(instruction.function, []).append(instruction)
        program = make_program(module)
        for function in program.functions:
            for n in walk(function):
                if isinstance(n, KernelCall) and n.meaning in program.assembly:
                    assert not has_intrinsics(n.meaning)
                    name = program.names[n.meaning]
                    taken = pushed(code[name], Arm())
                    assert taken <= n.contract.stack_bytes <= taken + 32, name
                    seen += 1
    assert seen >= 6


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
    stacks = measured(artifact.module).stacks
    bound = (stacks.unoptimised if level == "-O0" else stacks.best).bytes
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
    stacks = measured(lower(module_of(mixed_layers()).with_configuration(config_))).stacks
    for stack in (stacks.best, stacks.in_c):
        chain = [frame.name for frame in stack.frames]
        assert chain[0] == "default_run"
        assert chain[1].startswith("layer")
    assert chain[2].startswith(("gemm", "dense", "patch", "winograd"))
    assert chain[3:] == ["library"]
    # Kernels in assembly may keep weights on the stack, which their twins read where they are.
    assert max(stacks.best.bytes, stacks.in_c.bytes) < stacks.unoptimised.bytes


def test_a_wrapper_and_wide_registers_count() -> None:
    """A packed wrapper is a call more, and code for any CPU may run on one of 64 bits."""
    plain = measured(model_module()).stacks.best
    packed = measured(
        model_module(config("packed", runtime=Runtime("crt", {"system-lib": True})))
    ).stacks.best
    assert packed.frames[0].name == "packed_run_packed"
    assert packed.bytes > plain.bytes
    narrow = measured(model_module(config().with_(targets="c -mcpu=cortex-m0"))).stacks.best
    assert narrow.bytes < plain.bytes


def test_a_program_without_a_model_has_a_bound() -> None:
    """The functions of a user count from the deepest one on."""
    worst = measured(lower(matmul_module())).stacks.best
    assert worst.bytes > 0
    assert "matmul" in worst.frames[0].name


def test_the_header_has_the_bound_of_the_flags_it_is_compiled_with(tmp_path: Path) -> None:
    """Which of the three it is, the preprocessor says as for the micro-kernels."""
    config_ = CompilationConfig(targets="c -mcpu=cortex-m4", optimize="speed")
    artifact = build(module_of(mixed_layers()), config_)
    artifact.export(tmp_path / "out")
    stack = artifact.metadata.stack
    wanted = {
        ("-O0", "cortex-m4"): stack.bytes_unoptimised,
        ("-O2", "cortex-m4"): stack.bytes,
        ("-Os", "cortex-m3"): stack.bytes_in_c,
    }
    assert len(set(wanted.values())) == 3
    source = '#include "default.h"\nDEFAULT_STACK_SIZE\n'
    for (level, core), size in wanted.items():
        command = ["arm-none-eabi-gcc", "-mthumb", f"-mcpu={core}", level, "-E", "-P", "-"]
        text = subprocess.run(
            command, cwd=tmp_path / "out", input=source, check=True, capture_output=True, text=True
        ).stdout
        assert text.split()[-1] == str(size)
