"""Every template of a program or a project, with the longest names that are legal."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import jinja2
import jinja2.meta
import numpy as np
import pytest

import microtir
from microtir import CompilationConfig, Executor, Runtime, Target, export_model_library_format
from microtir.artifact import Artifact
from microtir.boards import ProjectType, load_board
from microtir.config import ConstantPoolInfo, WorkspacePoolInfo
from microtir.dtype import DType
from microtir.frontend import from_tflite
from microtir.graph.ir import Graph, Node, SourceLocation, State, Tensor, TensorType
from microtir.module.ir_module import IRModule
from microtir.operators.arithmetic.definition import Add
from microtir.operators.state.definition import Assign
from microtir.projects import ProjectOptions, Samples, generate
from microtir.support.code_templates import make_environment
from microtir.support.names import MAX_C_NAME
from microtir.support.resources import templates
from tests.driver.test_merge_functions import chain
from tests.frontend.test_older_quantization import dense
from tests.support.c_compilers import compiler_output, strict_problems
from tests.support.dsp_cases import add, convolution, pool
from tests.support.ethos_u import NpuModel
from tests.support.moving_cases import moving
from tests.support.operator_cases import generate as operator_case
from tests.support.small_models import module_of, quantised_graph, sample_inputs, two_ports_graph

MODULE = "of_48_letters_which_are_all_that_a_module_may_ha"
OTHER = MODULE[:-1] + "x"
POOL = "pool_of_63_letters_" + "p" * (MAX_C_NAME - 19)
CONSTANTS = "constants_of_63_letters_" + "c" * (MAX_C_NAME - 24)
ETHOS_U_DRIVER = Path(__file__).parents[1] / "external" / "ethos_u_driver"
STAND_IN = Path(__file__).parents[1] / "support" / "cmsis_nn_stand_in"
BASE = CompilationConfig(targets="c", module_name=MODULE)


def long_named(graph: Graph) -> IRModule:
    """Return the graph with a name of over a hundred letters for every tensor and layer."""
    names: dict[Tensor, Tensor] = {}

    def longer(tensor: Tensor) -> Tensor:
        stem = f"{tensor.name}/" + "a_tensor_of_over_a_hundred_letters/" * 3
        return names.setdefault(tensor, replace(tensor, name=stem))

    nodes = tuple(
        replace(
            node,
            inputs=tuple(map(longer, node.inputs)),
            outputs=tuple(map(longer, node.outputs)),
            name=f"{number}/" + "a_layer_of_over_a_hundred_letters/" * 3,
        )
        for number, node in enumerate(graph.nodes)
    )
    inputs, outputs = (tuple(map(longer, group)) for group in (graph.inputs, graph.outputs))
    states = tuple(
        replace(state, before=longer(state.before), after=longer(state.after))
        for state in graph.states
    )
    return module_of(replace(graph, nodes=nodes, inputs=inputs, outputs=outputs, states=states))


def stateful_graph() -> Graph:
    """Return a graph with a state of equal bytes, and one of different ones."""
    type_ = TensorType((1, 4), DType.FLOAT32)
    source = SourceLocation("sums.tflite", 0, "ADD")
    x = Tensor("x", type_)
    given = x
    nodes: list[Node] = []
    states: list[State] = []
    for name, values in (("zeros", np.zeros((1, 4))), ("numbers", np.arange(4.0)[None])):
        before, total, after = (Tensor(f"{name}_{n}", type_) for n in ("before", "sum", "after"))
        nodes.append(Node(Add(), (given, before), (total,), f"add_{name}", source))
        nodes.append(Node(Assign(), (total,), (after,), f"assign_{name}", source))
        states.append(State(before, after, values.astype(np.float32)))
        given = total
    outputs = (given, *(state.after for state in states))
    inputs = (x, *(state.before for state in states))
    return Graph("sums", inputs, outputs, tuple(nodes), states=tuple(states))


def built(graph: Graph, **changes: Any) -> Artifact:
    """Return the C of a graph whose names are long."""
    return microtir.build(long_named(graph), BASE.with_(**changes))


def pools(*, internal: bool) -> list[WorkspacePoolInfo]:
    """Return a workspace in two pools."""
    facts = {"is_internal": internal, "size_hint_bytes": 40, "section": ".fast"}
    return [WorkspacePoolInfo(POOL, (), facts), WorkspacePoolInfo(POOL[:-1] + "q", (), {})]


def constants(**facts: object) -> list[ConstantPoolInfo]:
    """Constants in two pools."""
    return [
        ConstantPoolInfo(CONSTANTS, (), {"size_hint_bytes": 70, **facts}),
        ConstantPoolInfo(CONSTANTS[:-1] + "d", (), facts),
    ]


CRT = Runtime("crt", {"system-lib": True})
PACKED = Executor("aot", {"interface-api": "packed"})
APART = Executor("aot", {"link-params": False})
# Compiler and flags -> the options of programs that it compiles.
CONFIGURATIONS: dict[str, dict[str, Any]] = {
    "plain": {},
    "pools": {"workspace_pools": pools(internal=False), "constant_pools": constants()},
    "sections": {
        "workspace_pools": pools(internal=True),
        "constant_pools": constants(is_internal=True, section=".slow"),
    },
    "packed": {"executor": PACKED, "runtime": CRT},
    "apart": {"executor": APART},
    "graph": {"executor": Executor("graph"), "runtime": CRT},
    "debug": {"executor": Executor("debug", {"link-params": True})},
    "rows": {"executor": Executor("aot", {"row-fed-inputs": True, "row-drained-outputs": True})},
    "steps": {"executor": Executor("aot", {"steps": True})},
    "guard": {"executor": Executor("aot", {"guard-inputs": True, "steps": True})},
    "faults": {"fault_checks": "tensors", "canaries": True},
    "canaries of pools": {"canaries": True, "workspace_pools": pools(internal=True)},
    "microtvm": {"compatibility": "microtvm", "runtime": CRT},
    "microtvm-packed": {"compatibility": "microtvm", "executor": PACKED, "runtime": CRT},
    "microtvm-graph": {"compatibility": "microtvm", "executor": Executor("graph")},
    "avr": {"targets": "c -mcpu=atmega2560"},
}
AVR = ["avr-gcc", "-mmcu=atmega2560", "-std=c99", "-Os", "-Wall", "-Wextra", "-Wundef", "-Werror"]
NAMELESS = ("kernels/", "c/helpers/")  # but for what is printed in intrinsics
INTRINSICS = "kernels/vector/"


@pytest.fixture
def rendered(monkeypatch: pytest.MonkeyPatch) -> set[str]:
    """Paths of the templates that the test has rendered, includes among them."""
    found: set[str] = set()
    get_template = jinja2.Environment.get_template

    def recording(self: jinja2.Environment, name: Any, *args: Any) -> jinja2.Template:
        found.add(name if isinstance(name, str) else str(name.name))
        return get_template(self, name, *args)

    monkeypatch.setattr(jinja2.Environment, "get_template", recording)
    return found


def all_templates(folder: str) -> set[str]:
    """Paths of the templates below a folder."""
    root = templates()
    return {path.relative_to(root).as_posix() for path in (root / folder).rglob("*.j2")}


def test_kernels_and_helpers_print_no_names() -> None:
    """The templates that the tests below leave out speak of nothing that a user named."""
    environment = make_environment(templates())
    for path in all_templates("kernels") | all_templates("c/helpers"):
        source = (templates() / path).read_text("utf-8")
        spoken = jinja2.meta.find_undeclared_variables(environment.parse(source))
        assert path.startswith(INTRINSICS) or not spoken & {"name", "macro", "prefix"}, path


def test_every_configuration_compiles(rendered: set[str], tmp_path: Path) -> None:
    """Generated C and its headers compile without a warning, whatever they are made of."""
    for name, changes in CONFIGURATIONS.items():
        folder = built(two_ports_graph(), **changes).export(tmp_path / name)
        if name == "avr":
            said = compiler_output([*AVR, "-c", f"{MODULE}.c", "-o", "/dev/null"], folder)
        else:
            said = strict_problems(folder, "gcc", "c99", "-fsyntax-only")
        assert not said, f"{name}: {said}"
    doubles = microtir.frontend.from_tflite(dense(0, 77)[0]).graph
    assert doubles is not None
    others = {
        "stateful": built(stateful_graph()),
        "stateful-microtvm": built(stateful_graph(), compatibility="microtvm"),
        "merged": built(chain(), optimize="flash"),
        "doubles": built(doubles),
        "assembly": built(moving(1).graph, targets="c -mcpu=cortex-m4", optimize="speed"),
    }
    for name, artifact in others.items():
        said = strict_problems(artifact.export(tmp_path / name), "gcc", "c99", "-fsyntax-only")
        assert not said, f"{name}: {said}"
    archive = tmp_path / "joint.tar"
    pair = [built(quantised_graph(), compatibility="microtvm")]
    pair.append(built(quantised_graph(), module_name=OTHER, compatibility="microtvm"))
    export_model_library_format(pair, archive)
    printed = all_templates("c") - all_templates("c/helpers")
    assert sorted(printed - rendered) == ["c/extern.c.j2"]


def test_intrinsics_compile(rendered: set[str], tmp_path: Path) -> None:
    """A wrapped macro of vectors had no backslash where the module's name was the longest."""
    config = BASE.with_(targets=Target("c -mcpu=x86-64"), optimize="speed")
    makers: list[Callable[..., Any]] = [convolution, add, pool]
    graphs = [make(seed).graph for make in makers for seed in range(500, 502)]
    graphs += [convolution(seed, depthwise=True).graph for seed in range(500, 504)]
    for number, graph in enumerate(graphs):
        artifact = microtir.build(long_named(graph), config)
        folder = artifact.export(tmp_path / str(number))
        for flags in (["-mavx2"], ["-mavx512vnni", "-mavx512vl"]):
            said = strict_problems(folder, "gcc", "c99", "-fsyntax-only", *flags)
            assert not said, said
    assert not all_templates(INTRINSICS) - rendered


def test_libraries_of_others_compile(rendered: set[str], tmp_path: Path) -> None:
    """What calls a library compiles, with functions that carry the module's name."""
    config = BASE.with_(targets="c -mcpu=cortex-m4", external=f"cmsis-nn={STAND_IN},all")
    operators = ("CONV_2D", "DEPTHWISE_CONV_2D", "FULLY_CONNECTED", "AVERAGE_POOL_2D")
    modules = [
        from_tflite(operator_case(operator, seed, "int8").model)
        for operator in (*operators, "MAX_POOL_2D", "ADD")
        for seed in range(2)
    ]
    for number, module in enumerate([*modules, long_named(two_ports_graph())]):
        folder = microtir.build(module, config).export(tmp_path / str(number))
        include = f"-I{STAND_IN / 'Include'}"
        said = strict_problems(folder, "gcc", "c99", "-fsyntax-only", include)
        assert not said, said
    npu = from_tflite(NpuModel(fast=96).file())
    for compatibility in ("none", "microtvm"):
        chosen = config.with_(external=None, compatibility=compatibility)
        folder = microtir.build(npu, chosen).export(tmp_path / compatibility)
        said = strict_problems(folder, "gcc", "c99", "-fsyntax-only", f"-I{ETHOS_U_DRIVER}")
        assert not said, said
    # The stand-in has no softmax; the call of it prints no name.
    left_out = {"external/cmsis_nn/softmax.c.j2"}
    assert (all_templates("external") | {"c/extern.c.j2"}) - rendered == left_out


BOARDS = {
    ProjectType.BAREMETAL: ("host", "mps2_an386", "riscv32", "atmega2560"),
    ProjectType.CMAKE: ("mps2_an386",),
    ProjectType.ARDUINO: ("nano33ble", "atmega2560"),
    ProjectType.ESP_IDF: ("esp32_devkitc",),
    ProjectType.PLATFORMIO: ("nano33ble",),
    ProjectType.ZEPHYR: ("mps2_an385",),
}


def test_projects(rendered: set[str], tmp_path: Path) -> None:
    """Projects of every type are written, and that of this machine runs."""
    graph = long_named(two_ports_graph()).graph
    assert graph is not None
    inputs = sample_inputs(graph)
    samples = {MODULE: Samples({name: values[None] for name, values in inputs.items()})}
    for type_, boards in BOARDS.items():
        for number, board in enumerate(boards):
            target = str(load_board(board).target)
            artifacts = [
                built(two_ports_graph(), targets=target, executor=APART),
                built(two_ports_graph(), targets=target, module_name=OTHER),
            ]
            server = type_ is ProjectType.BAREMETAL and board == "mps2_an386"
            options = ProjectOptions(samples={} if server else samples, server=server)
            folder = tmp_path / f"{type_.value}{number}"
            project = generate(artifacts, board, type_, folder, options=options)
            if board == "host":
                project.build(["CFLAGS=-Werror -O0"])
                assert project.run().status == 0
    assert all_templates("projects") - {f"projects/{path}" for path in rendered} == set()
