"""The graph executor: its table and its JSON, and outputs that are those of `aot`."""

from __future__ import annotations

import binascii
import ctypes
import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import microtir
from microtir import CompilationConfig, Executor, host
from microtir.artifact import Artifact
from microtir.codegen.interface.call_table import make_table
from microtir.codegen.program import make_program
from microtir.errors import RunError
from microtir.graph.ir import Array
from microtir.host.tensors import aligned
from tests.support import shared_programs
from tests.support.c_compilers import INCLUDES, STRICT, compiler_output
from tests.support.calling import PROGRAM, compiled, make_runtime
from tests.support.small_models import module_of, quantised_graph, sample_inputs

DIGITS = Path(__file__).parents[2] / "examples" / "digits" / "digits_int8.tflite"
LINKED = Executor("graph", {"link-params": True})


def built(executor: Executor | str, **fields: object) -> Artifact:
    """The digits model with an executor."""
    fields = {"module_name": "default", **fields}
    config = CompilationConfig(targets="c", executor=executor, **fields)  # type: ignore[arg-type]
    return shared_programs.build(microtir.frontend.from_tflite(DIGITS), config)


def images() -> dict[str, Array]:
    """One input of random bytes."""
    (port,) = [p for p in built("aot").metadata.ports if p.kind == "input"]
    values = np.random.default_rng(5).integers(-128, 128, port.shape)
    return {port.name: values.astype(np.int8)}


@pytest.mark.parametrize("optimize", ["speed", "ram", "flash"])
def test_every_executor_gives_the_same_bytes(optimize: str) -> None:
    """Whole layers and streamed ones: tables, packed operators, weights apart change nothing.

    Executors print one main in different ways: the model is lowered once.
    """
    inputs = images()
    usual = built("aot", optimize=optimize)
    expected = next(iter(host.load(usual).run(inputs).values()))
    config = usual.module.require_config("test")
    for executor in (
        LINKED,
        Executor("debug"),
        Executor("aot", {"interface-api": "packed", "link-params": False}),
    ):
        module = replace(usual.module, config=config.with_(executor=executor))
        model = host.load(microtir.build(module), opt_level=1)
        outputs, layers = host.load(model.artifact, debug=True, opt_level=1).run_layers(inputs)
        for result in (model.run(inputs), outputs):
            np.testing.assert_array_equal(next(iter(result.values())), expected)
        assert len(layers) == len(model.artifact.metadata.layers)


def test_rows_of_several_layers_are_one_node() -> None:
    """Streamed layers share a node, whose rings are no outputs of it."""
    artifact = built(LINKED, optimize="ram-least")
    program = make_program(artifact.module)
    assert program.model is not None
    table = make_table(program, program.model)
    assert len(table.nodes) < len(artifact.metadata.layers)
    for node in table.nodes:
        assert not set(node.outputs) & set(node.scratch)
        for number in node.outputs:
            assert not table.tensors[number].name.startswith("ring")


def test_costs_of_nodes_are_those_of_their_layers() -> None:
    """What a step may be bounded by, and the least bound, in the table and the header."""
    artifact = built(LINKED, optimize="ram-least")
    layers = {layer.function: layer.choice for layer in artifact.metadata.layers}
    nodes = [n for n in json.loads(artifact.source("default_graph.json"))["nodes"] if "attrs" in n]
    costs = []
    for node in nodes:
        choices = [layers[function] for function in node["attrs"]["layers"]]
        costs.append(sum(choice.cycles for choice in choices if choice))
    number = r"(?:UINT32_C\()?(\d+)[u)]"
    code, header = artifact.source("default.c"), artifact.source("default_graph.h")
    rows = re.findall(rf"\{{default_node_\d+, +\d+, +\d+, +{number}\}}", code)
    assert [int(cost) for cost in rows] == costs and len(set(costs)) > 3
    assert re.findall(rf"#define DEFAULT_STEP_LEAST {number}\n", header) == [str(max(costs))]


def test_d5_sizes_in_the_json_are_those_of_the_nodes() -> None:
    """TVM indexed types by storage id: where storage was shared, sizes were another tensor's."""
    artifact = built("graph")
    graph: dict[str, Any] = json.loads(artifact.source("default_graph.json"))
    attrs = graph["attrs"]
    entries = graph["node_row_ptr"][-1]
    assert all(len(attrs[key][1]) == entries for key in ("shape", "dltype", "storage_id", "offset"))
    outputs = {name: layer.outputs for name, layer in _layers(artifact).items()}
    for number, node in enumerate(graph["nodes"]):
        if node["op"] == "null":
            continue
        last = outputs[node["attrs"]["layers"][-1]]
        assert node["attrs"]["num_outputs"] == str(len(last))
        if not last:
            continue  # sums that another node finishes
        (written,) = last
        index = graph["node_row_ptr"][number]
        assert attrs["shape"][1][index] == [written.rows * written.row_elements]
        assert attrs["dltype"][1][index] == written.dtype
    assert graph["arg_nodes"] == [0]
    assert graph["heads"] == [[len(graph["nodes"]) - 1, 0, 0]]


def _layers(artifact: Artifact) -> dict[str, Any]:
    return {layer.function: layer for layer in artifact.metadata.layers}


@pytest.mark.parametrize("interface", ["c", "packed"])
def test_d22_models_are_called_by_the_interface_that_they_have(interface: str) -> None:
    """TVM's executor took any library for a packed one, and read metadata that was not there."""
    artifact = built(Executor("aot", {"interface-api": interface}))
    assert next(iter(host.load(artifact).run(images()).values())).size == 10
    declares_structs = "struct default_inputs {" in artifact.source("default.h")
    assert declares_structs is (interface == "c")
    paths = {file.path for file in artifact.sources}
    assert ("default_packed.h" in paths) is (interface == "packed")


def test_the_table_holds_no_names_and_no_heap_is_asked_for() -> None:
    """Names are in the JSON and in comments; only the debug build has them in the program."""
    for executor, named in ((LINKED, False), (Executor("debug"), True)):
        text = built(executor).source("default.c")
        code = re.sub(r"/\*.*?\*/", "", text, flags=re.DOTALL)
        assert ("default_node_names" in code) is named
        assert "malloc" not in code and "strcmp" not in code


class Observer(ctypes.Structure):
    """struct microtir_graph_observer."""

    NODE = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int32, ctypes.c_char_p, ctypes.c_uint32)
    TENSOR = ctypes.CFUNCTYPE(
        None, ctypes.c_void_p, ctypes.c_int32, ctypes.POINTER(ctypes.c_uint32 * 2),
        ctypes.c_void_p, ctypes.c_uint32,
    )  # fmt: skip
    _fields_ = (("context", ctypes.c_void_p), ("node", NODE), ("tensor", TENSOR))


def test_debug_tells_names_and_checksums_of_real_tensors(tmp_path: Path) -> None:
    """Each tensor that is shown has the bytes that the layer computed, and zlib's checksum."""
    config = CompilationConfig(targets="c", executor=Executor("debug", {"link-params": True}))
    artifact = microtir.build(module_of(quantised_graph()), config)
    inputs = sample_inputs(quantised_graph())
    (tmp_path / "runtime").mkdir()
    runtime = make_runtime(tmp_path / "runtime")
    assert not compiled(artifact, tmp_path / "out", runtime)
    names: list[bytes] = []
    dumps: list[bytes] = []

    def node(_context: object, _number: int, name: bytes, _ticks: int) -> None:
        names.append(name)

    def tensor(_context: object, _number: int, facts: Any, data: int, checksum: int) -> None:
        dumps.append(ctypes.string_at(data, facts.contents[1]))
        assert binascii.crc32(dumps[-1]) == checksum

    observer = Observer(None, Observer.NODE(node), Observer.TENSOR(tensor))
    library = ctypes.CDLL(str(tmp_path / "out" / PROGRAM))
    memory = artifact.metadata.memory
    assert memory is not None
    workspace = aligned(memory.workspace_size, memory.alignment, 0xA5)
    scores = np.zeros(5, np.int8)
    ports = [(ctypes.c_void_p * 1)(a.ctypes.data) for a in (inputs["image"], scores)]
    status = library.default_run_observed(
        ports[0], ports[1], ctypes.c_void_p(workspace.ctypes.data), ctypes.byref(observer), None
    )
    assert status == 0
    layers = host.load(artifact, debug=True).run_layers(inputs)[1]
    assert names == [layer.name.encode() for layer in layers]
    assert dumps == [layer.outputs[0].tobytes() for layer in layers]


def test_other_parameters_are_refused() -> None:
    """A file of other code is refused before anything is computed; damage is for the loader."""
    artifact = built("graph")
    (file,) = artifact.data
    wrong = bytearray(file.content)
    wrong[4] ^= 1
    other = replace(artifact, data=(type(file)(file.path, bytes(wrong)),))
    with pytest.raises(RunError, match="not those of this code"):
        host.load(other).run(images())


def test_weights_may_be_exchanged_for_the_same_code() -> None:
    """The identity is that of the code: other values of the same types keep it."""
    first, second = built("graph"), built("graph", budget={"ram": 10**6})
    assert first.metadata.parameters == second.metadata.parameters
    assert first.source("default.h") != second.source("default.h")
    renamed = built("graph", module_name="other").metadata.parameters
    assert renamed is not None and first.metadata.parameters is not None
    assert renamed.identity != first.metadata.parameters.identity


def test_a_file_of_another_size_is_refused(tmp_path: Path) -> None:
    """A file of its header alone was taken, and weights were read behind it."""
    executor = Executor("aot", {"link-params": False})
    config = CompilationConfig(targets="c", executor=executor)
    folder = microtir.build(module_of(quantised_graph()), config).export(tmp_path / "out")
    command = ["gcc", "-std=c99", *STRICT, *INCLUDES, "-O0", "-fPIC", "-shared", "default.c"]
    assert not compiler_output([*command, "-o", "program.so"], folder)
    run = ctypes.CDLL(str(folder / "program.so"))["default_run"]
    run.argtypes = [ctypes.c_void_p] * 4
    (given,) = sample_inputs(quantised_graph()).values()
    result = np.zeros(64, np.int8)
    inputs, outputs = ((ctypes.c_void_p * 1)(a.ctypes.data) for a in (given, result))
    data = np.frombuffer((folder / "default.params").read_bytes(), np.uint8)
    for size, status in ((data.size, 0), (16, -7), (data.size + 1, -7)):
        words = aligned(data.size, 128, 0)
        words[:] = data
        words[8:12] = np.frombuffer(np.uint32(size).tobytes(), np.uint8)
        memory = aligned(1 << 12, 128, 0)
        pointers = (ctypes.addressof(inputs), ctypes.addressof(outputs))
        assert run(*pointers, memory.ctypes.data, words.ctypes.data) == status
