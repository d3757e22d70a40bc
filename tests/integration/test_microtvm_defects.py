"""Defects of microTVM, one by one: read in its source (D), run (A12, A17) or met by users (A15).

The numbers are those of the project's notes on microTVM. Defects of parts that have a folder of
their own (frontend, project, host) are tested there.
"""

from __future__ import annotations

import re
import subprocess
from itertools import product
from pathlib import Path

import numpy as np
import pytest

import microtir
from microtir import CompilationConfig, Executor, Runtime, Target, host, te
from microtir.artifact import Artifact
from microtir.config import ConstantPoolInfo, Feature, PassConfig, WorkspacePoolInfo
from microtir.dtype import DType
from microtir.errors import ConfigError, MemoryPlanError, ModelFileError
from microtir.operators.common.fixed_point import multiply_by_quantized_multiplier
from microtir.operators.common.multiplier import quantize_multiplier
from microtir.operators.dense.definition import FullyConnected
from tests.support.c_compilers import INCLUDES, STRICT, compiler_output
from tests.support.graphs import constant, graph, node, quant, tensor
from tests.support.small_models import (
    module_of,
    quantised_graph,
    reference_outputs,
    sample_inputs,
    tiny_graph,
)

ROOT = Path(__file__).parents[2]
BASE = CompilationConfig(targets="c")
WITH_SYSTEM_LIB = BASE.with_(runtime=Runtime("crt", {"system-lib": True}))


def c_files(artifact: Artifact, folder: Path) -> list[str]:
    """Export an artifact and list its C files."""
    artifact.export(folder)
    return [file.path for file in artifact.sources if file.path.endswith(".c")]


def refusal(**fields: object) -> ConfigError:
    """Return the diagnostic of a configuration that must not be accepted."""
    with pytest.raises(ConfigError) as caught:
        CompilationConfig(**{"targets": "c", **fields})  # type: ignore[arg-type]
    return caught.value


INTERFACES = (None, "packed", "c", "C", "banana")


@pytest.mark.parametrize(
    "combination", list(product(INTERFACES, (None, False, True), (False, True)))
)
def test_d1_d2_a12_every_accepted_interface_compiles(
    combination: tuple[str | None, bool | None, bool], tmp_path: Path
) -> None:
    """The matrix that was run on TVM: five accepted combinations gave C that did not compile."""
    interface, unpacked, system_lib = combination
    given = {"interface-api": interface, "unpacked-api": unpacked}
    options = {name: value for name, value in given.items() if value is not None}

    def configuration() -> CompilationConfig:
        runtime = Runtime("crt", {"system-lib": system_lib})
        return CompilationConfig(targets="c", executor=Executor("aot", options), runtime=runtime)

    if interface in ("C", "banana") or (interface != "packed" and unpacked is False):
        with pytest.raises(ConfigError) as caught:
            configuration()
        assert caught.value.where in ("executor.interface-api", "executor.unpacked-api")
        return
    config = configuration()
    artifact = microtir.build(module_of(tiny_graph()), config)
    units = c_files(artifact, tmp_path / "sources")
    command = ["gcc", "-std=c99", *STRICT, *INCLUDES, "-fPIC", "-shared", *units, "-o", "x.so"]
    assert not compiler_output(command, tmp_path / "sources")


@pytest.mark.parametrize("value", ["C", "banana", "", True, None])
def test_d2_interface_api_is_no_free_string(value: object) -> None:
    """TVM took any string and then silently left the header out."""
    with pytest.raises(ConfigError, match=r"'interface-api' (is|has no value)") as caught:
        Executor("aot", {"interface-api": value})
    assert caught.value.where == "executor.interface-api"
    assert caught.value.legal == "c, packed"


@pytest.mark.parametrize(
    "option", ["workspace-byte-alignment", "constants-byte-alignment", "constant-byte-alignment"]
)
def test_d3_alignment_is_configured_in_one_place(option: str) -> None:
    """The target's spellings of the executor's options are refused, with the one that counts."""
    with pytest.raises(ConfigError) as caught:
        Target(f"c -{option}=16")
    assert caught.value.fix is not None
    assert caught.value.fix.startswith("it is an option of the executor: Executor('aot', {'")


def test_d3_one_value_reaches_sizing_placement_and_emission() -> None:
    """Offsets, the header's macro and the attribute of every constant have the same number."""
    options = {"workspace-byte-alignment": 32, "constant-byte-alignment": 64}
    config = BASE.with_(executor=Executor("aot", options))
    artifact = microtir.build(module_of(quantised_graph()), config)
    memory = artifact.metadata.memory
    assert memory is not None and memory.alignment == 32
    assert all(placed.offset % 32 == 0 for placed in memory.placements)
    assert "#define DEFAULT_WORKSPACE_ALIGNMENT 32\n" in artifact.source("default.h")
    weights = artifact.source("default_weights.c")
    declared = weights.count("const int")
    assert declared > 2 and weights.count("DEFAULT_ALIGNED(64) const int") == declared


def test_d6_metadata_holds_no_time() -> None:
    """TVM stamped local time as UTC into the metadata, so that no two builds were equal."""
    text = microtir.build(module_of(tiny_graph()), BASE).source("metadata.json")
    assert not re.search(r"\btime|date\b|\d{4}-\d\d-\d\d", text)


def test_d15_macros_that_are_documented_are_those_that_are_read() -> None:
    """Every macro of the runtime's config.h is used, under this name, in its sources."""
    runtime = ROOT / "runtime_crt"
    header = runtime / "include" / "microtir" / "config.h"
    offered = re.findall(r"#ifndef (MICROTIR_\w+)\n#define \1 ", header.read_text("utf-8"))
    others = [p for p in runtime.rglob("*.[ch]") if p != header]
    used = "\n".join(path.read_text("utf-8") for path in others)
    assert offered
    assert all(re.search(rf"\b{name}\b", used) for name in offered)


def test_d18_headers_may_be_included_in_several_files(tmp_path: Path) -> None:
    """An inline function in a public header of TVM gave duplicate or undefined symbols in C99."""
    artifact = microtir.build(module_of(tiny_graph()), WITH_SYSTEM_LIB)
    units = c_files(artifact, tmp_path / "sources")
    includes = "".join(
        f'#include "{file.path.removeprefix("runtime_crt/include/")}"\n'
        for file in artifact.sources
        if file.path.endswith(".h")
    )
    for name, body in (("one.c", "int main(void) { return 0; }\n"), ("two.c", "")):
        (tmp_path / "sources" / name).write_text(includes + body, encoding="utf-8")
    for level in ("-O0", "-O2"):
        command = ["gcc", "-std=c99", *STRICT, *INCLUDES, level, "one.c", "two.c", *units]
        assert not compiler_output([*command, "-o", "program"], tmp_path / "sources")


def test_d20_constants_of_one_name_in_c_keep_their_data() -> None:
    """Two layers whose weights have names that C cannot tell apart each use their own."""
    scale = quant(0.1)
    x, a, y = (tensor(name, (1, 3), DType.INT8, scale) for name in ("x", "a", "y"))
    first = constant("net/w:0", np.diag([100, 50, 25]).astype(np.int8), quant(0.01))
    second = constant("net.w/0", np.diag([-25, 50, -100]).astype(np.int8), quant(0.01))
    layers = [
        node(FullyConnected(), (x, first), a),
        node(FullyConnected(), (a, second), y),
    ]
    model = host.load(microtir.build(module_of(graph(layers, [x], [y])), BASE), opt_level=0)
    result = model.run({"x": np.array([[40, 80, 120]], np.int8)})["y"]
    np.testing.assert_array_equal(result, [[-10, 20, -30]])


def test_d23_constant_pools_are_passed_or_refused() -> None:
    """TVM aborted on the device: "Constant pools not supported"."""
    model = quantised_graph()
    artifact = microtir.build(
        module_of(model), BASE.with_(constant_pools=[ConstantPoolInfo("flash")])
    )
    assert artifact.metadata.constant_pools[0].size > 0
    inputs = sample_inputs(model)
    (expected,) = reference_outputs(model, inputs).values()
    np.testing.assert_array_equal(host.load(artifact).run(inputs)["scores"], expected)
    error = refusal(constant_pools=[ConstantPoolInfo("flash")], executor="graph")
    assert error.where == "constant_pools"


def test_d24_every_program_has_its_configuration() -> None:
    """A single function, too, is built with a runtime and an executor."""
    x = te.placeholder((2,), DType.FLOAT32, "x")
    artifact = microtir.build(te.create_schedule(te.compute((2,), lambda i: x[i] * 2.0, "y")))
    config = artifact.module.require_config("test")
    assert artifact.metadata.config == config.to_dict()
    assert config.runtime == Runtime("crt")


def test_d26_headers_include_nothing_by_relative_path() -> None:
    """No generated file and none of the runtime reaches outside its folder."""
    artifact = microtir.build(module_of(tiny_graph()), WITH_SYSTEM_LIB)
    for file in artifact.sources:
        assert not re.search(r'#include\s*[<"][./]', file.text), file.path


@pytest.mark.parametrize("name", ["workspace-byte-alignment", "constant-byte-alignment"])
@pytest.mark.parametrize("value", [3, -5, 0, 256, "16", True, 4.0])
def test_a12_alignments_are_powers_of_two(name: str, value: object) -> None:
    """TVM accepted 3 and -5; the C compiler refused them."""
    with pytest.raises(ConfigError, match=f"'{name}' is") as caught:
        Executor("aot", {name: value})
    assert caught.value.legal == "1, 2, 4, 8, 16, 32, 64, 128"


@pytest.mark.parametrize("value", [1, 0, "True"])
def test_a12_an_int_is_no_bool(value: object) -> None:
    """A flag given as a number is a size gone astray, or a typing error."""
    with pytest.raises(ConfigError, match=r"'unpacked-api' is .*, not true or false"):
        Executor("aot", {"unpacked-api": value})
    with pytest.raises(ConfigError, match=r"'system-lib' is .*, not true or false"):
        Runtime("crt", {"system-lib": value})


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"tir.usmp.use_workspace_io": True}, "use memory.use_workspace_io"),
        ({"tir.usmp.enable": True}, "memory is always planned"),
        ({"tir.disable_vectorize": True}, "because C has no vector types"),
        ({"memory.placement": "nosuch"}, "expected: greedy, exact"),
        ({"memory.placment": "exact"}, "did you mean 'memory.placement'?"),
    ],
)
def test_a12_a15_pass_options_are_checked(options: dict[str, object], text: str) -> None:
    """A key of TVM says what took its place, a misspelt one the nearest; none is ignored."""
    with pytest.raises(ConfigError) as caught:
        PassConfig(options)
    assert text in str(caught.value)
    assert len(str(caught.value).splitlines()) <= 3


def test_a12_vectorised_loops_need_no_option(tmp_path: Path) -> None:
    """TVM printed `float4` unless vectorisation was disabled by hand."""
    x = te.placeholder((8,), DType.FLOAT32, "x")
    y = te.compute((8,), lambda i: x[i] * 2.0, "y", axes=("i",))
    schedule = te.create_schedule(y)
    schedule.vectorize(schedule.loop(y, "i"))
    units = c_files(microtir.build(schedule, BASE), tmp_path / "sources")
    command = ["gcc", "-std=c99", *STRICT, *INCLUDES, "-c", *units]
    assert not compiler_output(command, tmp_path / "sources")


def test_a12_options_describe_and_print_themselves() -> None:
    """Types are those of the user's language, and a repr loses nothing."""
    described = Executor.list_registered_options("aot")
    assert described["link-params"].domain.type_name == "bool"
    assert described["interface-api"].domain.choices() == ("c", "packed")
    runtime = Runtime("crt", {"system-lib": True})
    assert repr(runtime) == "Runtime('crt', {'system-lib': True})"


@pytest.mark.parametrize("cpu", ["nonsense", "cortex-m99", "cortex-m4x"])
def test_a12_a15_unknown_processors_are_refused(cpu: str) -> None:
    """TVM dropped to generic code, silently or behind 74 lines about LLVM."""
    error = refusal(targets=f"c -mcpu={cpu}")
    assert "'mcpu'" in str(error) and cpu in str(error)


@pytest.mark.parametrize(
    ("target", "has_dsp"),
    [
        ("c -mcpu=cortex-m0plus", False),
        ("c -mcpu=cortex-m23", False),
        ("c -mcpu=cortex-m33", True),
        ("c -mcpu=cortex-m33 -mattr=-dsp", False),
    ],
)
def test_a12_features_follow_from_the_whole_name(target: str, has_dsp: bool) -> None:
    """TVM matched prefixes of processor names, and knew no -mattr for C."""
    assert (Feature.DSP in Target(target).features) is has_dsp


@pytest.mark.parametrize(
    ("fields", "where"),
    [
        ({"targets": ["c", "c -mcpu=cortex-m4"]}, "targets"),
        ({"executor": "vm"}, "executor"),
        ({"runtime": "cpp"}, "runtime"),
    ],
)
def test_a12_what_tvm_refused_is_refused(fields: dict[str, object], where: str) -> None:
    """Two targets of one kind, and executors and runtimes that do not exist."""
    assert refusal(**fields).where == where


def test_a12_weights_are_constant(tmp_path: Path) -> None:
    """TVM's weights came out in a writable section, and so in RAM."""
    units = c_files(microtir.build(module_of(quantised_graph()), BASE), tmp_path / "sources")
    command = ["gcc", "-std=c99", "-c", *INCLUDES, *units]
    assert not compiler_output(command, tmp_path / "sources")
    symbols = subprocess.run(
        ["nm", "default_weights.o"], cwd=tmp_path / "sources",
        capture_output=True, text=True, check=True,
    ).stdout.split()[1::3]  # fmt: skip
    assert symbols and set(symbols) == {"R"}
    objects = subprocess.run(
        ["size", "default.o", "default_weights.o"], cwd=tmp_path / "sources",
        capture_output=True, text=True, check=True,
    ).stdout.splitlines()[1:]  # fmt: skip
    assert [line.split()[1:3] for line in objects] == [["0", "0"], ["0", "0"]]  # data, bss


def test_a12_declarations_agree_between_files(tmp_path: Path) -> None:
    """Link-time optimisation compares types across translation units, and finds them equal."""
    artifact = microtir.build(module_of(tiny_graph()), WITH_SYSTEM_LIB)
    units = c_files(artifact, tmp_path / "sources")
    (tmp_path / "sources" / "main.c").write_text(
        '#include "default_packed.h"\n'
        "int main(void) { return microtir_system_lib_entry_point()->function_count != 1; }\n",
        encoding="utf-8",
    )
    flags = ["-std=c99", "-O2", "-flto", "-Wlto-type-mismatch", "-Werror", *INCLUDES]
    command = ["gcc", *flags, "main.c", *units, "-o", "program"]
    assert not compiler_output(command, tmp_path / "sources")
    subprocess.run([str(tmp_path / "sources" / "program")], check=True, timeout=60)


def test_a12_members_are_typed_and_shapes_are_stated() -> None:
    """TVM's members were void pointers, and its metadata had sizes without shapes."""
    artifact = microtir.build(module_of(quantised_graph()), BASE)
    assert "    const int8_t *image;" in artifact.source("default.h")
    assert "#define DEFAULT_IMAGE_SHAPE      {1, 3, 4, 1}" in artifact.source("default.h")
    (image, scores) = artifact.metadata.ports
    assert (image.shape, image.dtype) == ((1, 3, 4, 1), "int8")
    assert scores.quantization is not None and scores.quantization.zero_point == 4
    assert scores.quantization.scale == pytest.approx(0.11)


def test_a12_a15_a_small_pool_says_by_how_much() -> None:
    """TVM's advice was "Please increase the size_hints", without a layer or a number."""
    pool = WorkspacePoolInfo("sram", (), {"size_hint_bytes": 4})
    with pytest.raises(MemoryPlanError) as caught:
        microtir.build(module_of(quantised_graph()), BASE.with_(workspace_pools=[pool]))
    text = str(caught.value)
    assert "the workspace takes 36 bytes, 32 more than the pool 'sram' has" in text
    assert "CONV_2D 'features_node'" in text


def test_a15_interface_c_without_unpacked_api_is_one_sentence() -> None:
    """TVM: 47 lines that ended in an expression of its source."""
    with pytest.raises(
        ConfigError, match="cannot be combined with 'interface-api' = 'c'"
    ) as caught:
        Executor("aot", {"interface-api": "c", "unpacked-api": False})
    assert caught.value.fix == "leave unpacked-api out, or choose interface-api 'packed'"


def test_a15_a_misspelt_target_option_names_the_nearest() -> None:
    """What TVM did well is kept."""
    assert "did you mean 'mcpu'?" in str(refusal(targets="c -mcu=cortex-m4"))


@pytest.mark.parametrize(
    ("name", "hint"), [("my-model.v2", "my_model_v2"), ("2net", "model_2net"), ("string", "")]
)
def test_a15_module_names_that_c_cannot_have_are_refused(name: str, hint: str) -> None:
    """TVM wrote `struct tvmgen_my-model.v2_inputs`; the refusal suggests a legal name."""
    error = refusal(module_name=name)
    assert error.where == "module_name"
    assert hint in str(error)


def test_a15_file_names_and_includes_have_the_same_case() -> None:
    """TVM wrote tvmgen_mynet.h and included <tvmgen_MyNet.h>."""
    artifact = microtir.build(module_of(tiny_graph()), WITH_SYSTEM_LIB.with_(module_name="MyNet"))
    paths = {file.path.removeprefix("runtime_crt/include/") for file in artifact.sources}
    included = {m for f in artifact.sources for m in re.findall(r'#include "([^"]+)"', f.text)}
    assert included and included <= paths


def test_a15_pool_names_are_mapped_to_c() -> None:
    """TVM wrote `uint8_t* dtcm-2_0_var`."""
    artifact = microtir.build(module_of(tiny_graph()), BASE.with_(workspace_pools=["dtcm-2"]))
    code = re.sub(r"/\*.*?\*/", "", artifact.source("default.c"), flags=re.DOTALL)
    assert "dtcm_2" in code and "dtcm-2" not in code


@pytest.mark.parametrize("size", [0, 3, 40, 5000])
def test_a15_a_truncated_model_is_one_diagnostic(size: int, tmp_path: Path) -> None:
    """TVM: 34 lines that ended in struct.error."""
    model = (ROOT / "examples" / "digits" / "digits_int8.tflite").read_bytes()
    path = tmp_path / "cut.tflite"
    path.write_bytes(model[:size])
    with pytest.raises(ModelFileError) as caught:
        microtir.frontend.from_tflite(path)
    assert "cut.tflite" in str(caught.value)


def single_rounding(x: int, multiplier: int, shift: int) -> int:
    """Compute as TVM does: x * multiplier * 2^(shift - 31), rounded once, ties up."""
    total = 31 - shift
    return (x * multiplier + (1 << (total - 1))) >> total


def test_a17_requantisation_rounds_twice() -> None:
    """Where one and two roundings differ, the C gives tflite-micro's two."""
    scales = [float(np.float32(scale)) for scale in (0.1, 0.01, 0.07)]
    multiplier, shift = quantize_multiplier(scales[0] * scales[1] / scales[2])
    sums = [a * b for a in range(-128, 128) for b in (-127, -77, -3, 5, 61, 126)]
    twice = {s: int(multiply_by_quantized_multiplier(s, multiplier, shift)) for s in sums}
    telling = [s for s in sums if twice[s] != single_rounding(s, multiplier, shift)]
    assert telling
    for b in (-127, -77, -3, 5, 61, 126):
        inputs = [a for a in range(-128, 128) if a * b in telling]
        if not inputs:
            continue
        x = tensor("x", (len(inputs), 1), DType.INT8, quant(0.1))
        y = tensor("y", (len(inputs), 1), DType.INT8, quant(0.07))
        weights = constant("w", np.array([[b]], np.int8), quant(0.01))
        model = graph([node(FullyConnected(), (x, weights), y)], [x], [y])
        compiled = host.load(microtir.build(module_of(model), BASE), opt_level=0)
        result = compiled.run({"x": np.array(inputs, np.int8).reshape(-1, 1)})["y"]
        expected = [max(-128, min(127, twice[a * b])) for a in inputs]
        np.testing.assert_array_equal(result.reshape(-1), expected)


def test_a17_errors_reach_the_caller(tmp_path: Path) -> None:
    """Generated CMSIS-NN calls of TVM turned every error into success."""
    artifact = microtir.build(module_of(tiny_graph()), BASE)
    units = c_files(artifact, tmp_path / "sources")
    (tmp_path / "sources" / "main.c").write_text(
        '#include <stddef.h>\n#include "default.h"\n'
        "static DEFAULT_WORKSPACE(memory);\n"
        "int main(void)\n{\n"
        "    static int8_t x[5], y[3];\n"
        "    const struct default_inputs in = {x}, no_in = {NULL};\n"
        "    const struct default_outputs out = {y}, no_out = {NULL};\n"
        "    return default_run(&in, &out, memory) != DEFAULT_OK\n"
        "        || default_run(&no_in, &out, memory) != DEFAULT_ERROR_NULL_POINTER\n"
        "        || default_run(&in, &no_out, memory) != DEFAULT_ERROR_NULL_POINTER\n"
        "        || default_run(NULL, &out, memory) != DEFAULT_ERROR_NULL_POINTER\n"
        "        || default_run(&in, NULL, memory) != DEFAULT_ERROR_NULL_POINTER\n"
        "        || default_run(&in, &out, NULL) != DEFAULT_ERROR_NULL_POINTER;\n}\n",
        encoding="utf-8",
    )
    command = ["gcc", "-std=c99", *STRICT, *INCLUDES, "main.c", *units, "-o", "program"]
    assert not compiler_output(command, tmp_path / "sources")
    subprocess.run([str(tmp_path / "sources" / "program")], check=True, timeout=60)
