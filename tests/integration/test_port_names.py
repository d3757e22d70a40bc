"""Names of ports from a signature and from options; names of tensors are accepted beside them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from onnx import helper

from microtir import CompilationConfig, build, host, import_model_library_format
from microtir.config import microcontroller
from microtir.errors import ConfigError, MicrotirError
from microtir.frontend import from_tflite, read_model
from microtir.graph.ir import Array, Graph
from microtir.host.float_samples import read_float_samples
from microtir.operators.arithmetic.tflite import AddOptions
from microtir.operators.common.tflite_schema import BuiltinOperator
from microtir.quantise.samples import Samples
from microtir.rewrite.requests.requested import requested_graph
from microtir.writers.tflite import TfliteBuilder
from tests.support.command import Command
from tests.support.onnx_models import model_of, typed

LEFT, RIGHT, OUT = "serving_default_left:0", "serving_default_right:0", "StatefulPartitionedCall:0"
SIGNATURE = {"left": LEFT, "right": RIGHT, "total": OUT}
RNG = np.random.default_rng(8)
SAMPLES: dict[str, Array] = {
    "left": RNG.standard_normal((3, 1, 4)).astype(np.float32),
    "right": RNG.standard_normal((3, 1, 4)).astype(np.float32),
}
SAMPLES["total"] = SAMPLES["left"] + SAMPLES["right"]


def file() -> bytes:
    """Return left + right, whose tensors have names of a converter."""
    builder = TfliteBuilder()
    x, y, z = (builder.tensor(name, (1, 4), np.float32) for name in SIGNATURE.values())
    builder.operator(BuiltinOperator.ADD, [x, y], [z], AddOptions())
    builder.signature("serving", {"left": x, "right": y}, {"total": z})
    return builder.build([x, y], [z])


def graph() -> Graph:
    """Return the graph of the file."""
    read = from_tflite(file()).graph
    assert read is not None
    return read


def ports(of: Graph) -> list[str]:
    """Return the names of the inputs and outputs."""
    return [tensor.name for tensor in (*of.arguments, *of.results)]


def asked(**options: str) -> Graph:
    """Return the graph that a configuration asks for."""
    return requested_graph(graph(), microcontroller().with_(**options))


def keyed(names: dict[str, str]) -> dict[str, Array]:
    """Return the golden arrays with other names."""
    sections = {"left": "inputs", "right": "inputs", "total": "outputs"}
    return {f"{sections[n]}.{names.get(n, n)}": array for n, array in SAMPLES.items()}


@pytest.fixture
def model(tmp_path: Path) -> Path:
    """Return the path of the file."""
    path = tmp_path / "sum.tflite"
    path.write_bytes(file())
    return path


@pytest.mark.parametrize(
    "names",
    [{}, SIGNATURE, {name: old.replace(":", "_") for name, old in SIGNATURE.items()}],
    ids=["signature", "tensors", "tensors in C"],
)
@pytest.mark.parametrize("renamed", [False, True])
def test_golden_files_have_any_of_the_names(
    model: Path, microtir: Command, names: dict[str, str], renamed: bool
) -> None:
    """Outputs are compared whatever name of a port the arrays have."""
    golden = model.with_suffix(".npz")
    np.savez(golden, **keyed(names))  # type: ignore[arg-type]
    options = ("--rename-input", f"left=a,{RIGHT}=b", "--rename-output", "total=sum")
    result = microtir("verify", model, "--golden", golden, *(options if renamed else ()))
    assert result.status == 0, result.err
    wrong = {**keyed(names), f"outputs.{names.get('total', 'total')}": SAMPLES["total"] + 1}
    np.savez(golden, **wrong)  # type: ignore[arg-type]
    assert microtir("verify", model, "--golden", golden).status == 1


def test_an_array_under_two_names_is_refused(model: Path, microtir: Command) -> None:
    """Which one is meant is not guessed."""
    golden = model.with_suffix(".npz")
    np.savez(golden, **keyed({}), **{f"inputs.{LEFT}": SAMPLES["left"]})  # type: ignore[arg-type]
    told = microtir("verify", model, "--golden", golden).diagnostic
    assert f"'inputs.left' and 'inputs.{LEFT}' are two names of the same tensor" in told
    np.savez(golden, **dict.fromkeys(("left", LEFT, "right"), SAMPLES["left"]))  # type: ignore[arg-type]
    with pytest.raises(MicrotirError, match="are two names of the same tensor"):
        read_float_samples(golden, graph())
    arrays = dict.fromkeys(("left", LEFT, "right"), SAMPLES["left"])
    with pytest.raises(MicrotirError, match="are two names of the same tensor"):
        Samples.of(graph(), arrays, 0)


def test_samples_of_floats_have_either_name(tmp_path: Path) -> None:
    """Samples by which a model is quantised are keyed by tensors or by the signature."""
    for names in ({}, SIGNATURE):
        arrays = {names.get(n, n): SAMPLES[n] for n in ("left", "right")}
        np.savez(tmp_path / "x.npz", **arrays)  # type: ignore[arg-type]
        read = read_float_samples(tmp_path / "x.npz", graph()).inputs
        runs = Samples.of(graph(), arrays, 0).calibrated
        for name in ("left", "right"):
            np.testing.assert_array_equal(read[name], SAMPLES[name])
            np.testing.assert_array_equal([run[name] for run in runs], SAMPLES[name])


def test_a_run_takes_either_name_and_so_does_an_archive(tmp_path: Path) -> None:
    """Aliases are part of the metadata, so that a program that was exported knows them."""
    artifact = build(from_tflite(file()), CompilationConfig(targets="c"))
    artifact.export(tmp_path / "sum.tar", "mlf")
    [imported] = import_model_library_format(tmp_path / "sum.tar")
    inputs = {LEFT: SAMPLES["left"][0], "right": SAMPLES["right"][0]}
    for known in (artifact, imported):
        outputs = host.load(known).run(inputs)
        np.testing.assert_array_equal(outputs["total"], SAMPLES["total"][0])


@pytest.mark.parametrize("name", ["left", LEFT])
def test_options_take_either_name(name: str) -> None:
    """Of steps, states, axes and shapes."""
    assert asked(prepend=f"{name}=uint8,over:255").arguments[0].dtype.value == "uint8"
    output = OUT if name == LEFT else "total"
    assert asked(append=f"{output}=argmax").results[0].dtype.value == "int32"
    with pytest.raises(ConfigError, match="all outputs are states"):
        asked(states=f"{name}={output}")
    read_model(file(), input_shapes={name: (1, 4)})
    with pytest.raises(ConfigError, match="has no consecutive frames"):
        asked(stream_axis=f"{name}=0")


def test_microtvm_has_the_names_of_tensors() -> None:
    """Applications for microTVM know no signatures."""
    assert ports(asked(compatibility="microtvm")) == [LEFT, RIGHT, OUT]
    renamed = asked(compatibility="microtvm", rename_input="left=a")
    assert ports(renamed) == ["a", RIGHT, OUT]


def test_renamed_ports_are_known_by_all_names() -> None:
    """Steps around them have the new names, and take any of them."""
    names = {"rename_input": f"left=a,{RIGHT}=b", "rename_output": "total=y"}
    renamed = asked(**names, append="y=argmax", prepend="left=over:2")
    assert ports(renamed) == ["a", "b", "y"]
    assert [renamed.port_name(n) for n in (LEFT, "right", OUT)] == ["a", "b", "y"]
    assert [renamed.file_name(n) for n in ("a", "b", "y")] == [LEFT, RIGHT, OUT]


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"rename_input": "lft=a"}, "no input is called 'lft': did you mean 'left'?"),
        ({"rename_input": "total=a"}, "no input is called 'total'"),
        ({"rename_output": "left=a"}, "no output is called 'left'"),
        ({"rename_input": f"left=a,{LEFT}=b"}, "'left' is renamed twice"),
        ({"rename_input": "left=right"}, "'right' is already the name of another input or output"),
        (
            {"rename_input": "left=a", "rename_output": "total=a"},
            "'a' is already the name of another",
        ),
        ({"rename_input": "left=a-b"}, "'a-b' is not a valid name in C. 'a_b' is valid"),
        ({"rename_input": "left=a,right=a"}, "names 'a' twice"),
        ({"rename_output": "total=int"}, "'int' is not a valid name in C. 'int_' is valid"),
    ],
)
def test_renames_that_are_refused(options: dict[str, str], text: str) -> None:
    """What does not exist is named with what does, and a name in C is one."""
    with pytest.raises(ConfigError) as caught:
        asked(**options)
    assert text in str(caught.value)
    assert caught.value.where in options


def test_onnxruntime_knows_the_names_of_the_file(tmp_path: Path, microtir: Command) -> None:
    """The reference gets inputs by their names in the file."""
    path = tmp_path / "sum.onnx"
    inputs = [typed("p", (2,)), typed("q", (2,))]
    path.write_bytes(model_of([helper.make_node("Sub", ["p", "q"], ["d"])], inputs, ["d"]))
    options = ("--rename-input", "p=first,q=second", "--rename-output", "d=difference")
    result = microtir("verify", path, "--oracle", "onnxruntime", *options)
    assert result.status == 0, result.err
