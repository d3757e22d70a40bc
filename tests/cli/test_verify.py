from __future__ import annotations

import json
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from onnx import TensorProto, helper

from microtir.graph.ir import Graph
from microtir.host.oracle import Oracle, expected_outputs
from microtir.host.samples import SampleBatch
from microtir.support.resources import install_extra
from tests.frontend.test_control import coder
from tests.support.command import FLOAT, INT8, TEST_SET, Command
from tests.support.hybrid import hybrid_model
from tests.support.onnx_models import model_of, typed

KEYS = [
    "model",
    "targets",
    "board",
    "samples",
    "steps",
    "outputs",
    "mismatches",
    "max_abs_error",
    "equal",
    "within_one_step",
    "first_wrong_layer",
    "compared_with",
]


@pytest.fixture
def some_samples() -> dict[str, Any]:
    """Four samples of the test set."""
    with np.load(TEST_SET) as stored:
        return {key: stored[key][:4] for key in ("inputs", "outputs")}


@pytest.fixture
def asked_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """An oracle that is asked again about the same model and samples answers from its memory."""
    answers: dict[tuple[object, ...], SampleBatch] = {}

    def recall(
        oracle: Oracle, graph: Graph, model: bytes, samples: SampleBatch, **options: Any
    ) -> SampleBatch:
        arrays = [(k, v.tobytes()) for run in samples.values for k, v in sorted(run.items())]
        key = (oracle, model, *arrays)
        if key not in answers:
            answers[key] = expected_outputs(oracle, graph, model, samples, **options)
        return answers[key]

    monkeypatch.setattr("microtir.host.oracle.expected_outputs", recall)


@pytest.fixture
def onnx_file(tmp_path: Path) -> Path:
    """A model in ONNX whose inputs are of an open length."""
    nodes = [
        helper.make_node("Mul", ["a", "b"], ["product"]),
        helper.make_node("Sigmoid", ["product"], ["y"]),
        helper.make_node("Cast", ["a"], ["z"], to=TensorProto.INT32),
    ]
    shape = ("batch", "length")
    inputs = [typed("a", shape), typed("b", shape)]
    outputs = [typed("y", shape), typed("z", shape, np.int32)]
    path = tmp_path / "pair.onnx"
    path.write_bytes(model_of(nodes, inputs, outputs))
    return path


def test_golden_file(microtir: Command) -> None:
    """The example's test set: every byte equal, status 0, one sentence."""
    result = microtir("verify", INT8, "--golden", TEST_SET)
    assert (result.status, result.err) == (0, "")
    assert result.out == (
        "equal: 450 samples, 4,500 values, every int8 output byte identical; for cortex-m4, run "
        "here as portable C\n"
        "reference: digits_test.npz\n"
    )


def test_example_brings_its_golden_file(microtir: Command) -> None:
    """`example:digits` needs no file, and says which one it used."""
    result = microtir("verify", "example:digits")
    assert result.status == 0
    assert "equal: 450 samples" in result.out
    assert "reference: digits_test.npz" in result.out


def test_reference_oracle(microtir: Command, tmp_path: Path) -> None:
    """Without a golden file, random inputs and microtir's own reference; the JSON says the same."""
    path = tmp_path / "verdict.json"
    result = microtir("verify", INT8, "--samples", 3, "--json", path)
    assert result.status == 0
    assert "equal: 3 samples, 30 values" in result.out
    assert "microtir's numpy reference on random inputs, seed 0" in result.out
    facts = json.loads(path.read_text())
    assert list(facts) == KEYS
    assert facts == {
        "model": "digits_int8.tflite",
        "targets": ["c -mcpu=cortex-m4"],
        "board": "host",
        "samples": 3,
        "steps": None,
        "outputs": 30,
        "mismatches": 0,
        "max_abs_error": 0.0,
        "equal": True,
        "within_one_step": False,
        "first_wrong_layer": None,
        "compared_with": "microtir's numpy reference on random inputs, seed 0",
    }


def test_tflm_oracle(microtir: Command) -> None:
    """tflite-micro's kernels agree with the C on random inputs, in every byte."""
    result = microtir("verify", INT8, "--samples", 5, "--oracle", "tflm", "--seed", 7)
    assert result.status == 0
    assert "equal: 5 samples, 50 values, every int8 output byte identical" in result.out
    assert "reference: tflite-micro on random inputs, seed 7" in result.out


def test_litert_oracle(microtir: Command) -> None:
    """LiteRT's reference kernels agree with the C of a float model."""
    result = microtir("verify", FLOAT, "--samples", 2, "--oracle", "litert")
    assert result.status == 0, result.out + result.err
    assert "reference: LiteRT's reference kernels on random inputs, seed 0" in result.out


@pytest.mark.usefixtures("asked_once")
def test_litert_rounds_otherwise(microtir: Command) -> None:
    """Where LiteRT's integers differ, the numerics that have them are named, and are equal."""
    options = ("verify", INT8, "--samples", 64, "--oracle", "litert")
    result = microtir(*options)
    assert result.status == 1
    assert "layers: all equal" in result.out
    assert "LiteRT rounds FULLY_CONNECTED differently from tflite-micro" in result.out
    assert "--numerics tflite_ref gives the outputs of the reference to the bit" in result.out
    result = microtir(*options, "--numerics", "tflite_ref")
    assert result.status == 0, result.out


@pytest.mark.usefixtures("asked_once")
def test_float16_of_onnxruntime(microtir: Command, tmp_path: Path) -> None:
    """A model in float16 is computed in float32: what differs is said to be that."""
    weights = np.random.default_rng(0).standard_normal((32, 16)).astype(np.float16)
    x, y = typed("x", (1, 32), np.float16), typed("y", (1, 16), np.float16)
    nodes = [helper.make_node("MatMul", ["x", "w"], ["y"])]
    path = tmp_path / "half.onnx"
    path.write_bytes(model_of(nodes, [x], [y], {"w": weights}))
    options = ("verify", path, "--oracle", "onnxruntime")
    result = microtir(*options)
    assert result.status == 1
    assert "--rtol 0.01 accepts these" in result.out
    assert microtir(*options, "--rtol", "0.01").status == 0


def test_onnxruntime_oracle(microtir: Command, onnx_file: Path) -> None:
    """The C of a model in ONNX is compared with onnxruntime; extents are said as always."""
    options = ("--samples", 3, "--seed", 5, "--oracle", "onnxruntime")
    result = microtir("verify", onnx_file, "--dim", "length=4", *options)
    assert result.status == 0, result.out + result.err
    assert "equal: 3 samples, 24 values" in result.out
    reference = "reference: onnxruntime without graph optimisations on random inputs, seed 5"
    assert reference in result.out


def test_onnxruntime_hands_states_on(microtir: Command, tmp_path: Path) -> None:
    """What the C keeps between runs is an input and an output of the oracle's."""
    nodes = [helper.make_node("Add", ["past", "x"], ["y"]),
             helper.make_node("Tanh", ["y"], ["present"])]  # fmt: skip
    path = tmp_path / "kept.onnx"
    inputs = [typed("past", (1, 4)), typed("x", (1, 4))]
    path.write_bytes(model_of(nodes, inputs, ["y", "present"]))
    options = ("--states", "past=present", "--steps", 3, "--samples", 2)
    result = microtir("verify", path, *options, "--oracle", "onnxruntime")
    assert result.status == 0, result.out + result.err
    assert "equal: 2 samples" in result.out


@pytest.mark.parametrize("oracle", ["tflm", "litert"])
def test_oracles_of_tflite_for_onnx(microtir: Command, onnx_file: Path, oracle: str) -> None:
    """An oracle that does not read the file is refused before anything is compiled."""
    result = microtir("verify", onnx_file, "--oracle", oracle)
    assert result.status == 2
    assert result.diagnostic == (
        f"error: --oracle: the oracle '{oracle}' runs only TFLite models, but pair.onnx is a "
        "model in ONNX\n  expected: reference, onnxruntime\n  fix:      use --oracle onnxruntime\n"
    )


def test_oracle_of_another_file(microtir: Command, tmp_path: Path) -> None:
    """A file that no oracle reads is named for what it is."""
    path = tmp_path / "net.npy"
    path.write_bytes(b"\x93NUMPY")
    result = microtir("verify", path, "--oracle", "onnxruntime")
    assert result.status == 3
    assert "this is a file of numpy arrays" in result.diagnostic


def test_oracle_of_a_signature(microtir: Command, tmp_path: Path) -> None:
    """Interpreters run the first program, so another one is not compared with them."""
    path = tmp_path / "two.tflite"
    path.write_bytes(coder())
    result = microtir("verify", f"{path}#encode", "--oracle", "tflm")
    assert result.status == 2
    assert "not the signature 'encode'" in result.diagnostic


def test_oracle_of_single_steps(microtir: Command) -> None:
    """A step of a sequence is nothing that another runtime computes."""
    result = microtir("verify", INT8, "--stateful", "true", "--oracle", "tflm")
    assert result.status == 2
    assert "runs the model on whole sequences" in result.diagnostic


def test_pushes_equal_tflm_on_whole_windows(microtir: Command) -> None:
    """What is pushed frame by frame is given to tflite-micro as the window that it ends."""
    options = ("--stream-axis", 1, "--steps", 50, "--samples", 1, "--oracle", "tflm")
    result = microtir("verify", INT8, *options)
    assert result.status == 0, result.err
    assert "1 sample of 50 steps, 500 values, every int8 output byte identical" in result.out


@pytest.mark.parametrize("hop", [1, 3])
def test_golden_windows_are_pushed_frame_by_frame(microtir: Command, hop: int) -> None:
    """The last push of each image gives what the file has for the image, whatever was before."""
    result = microtir("verify", "example:digits", "--stream-axis", 1, "--stream-hop", hop)
    assert result.status == 0, result.err
    steps = -(-8 // hop)
    assert f"equal: 450 samples of {steps} steps, 4,500 values" in result.out


def test_oracle_that_is_not_installed(microtir: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    """A missing oracle is named with the extra to install, before anything is compiled."""
    for oracle, module in (
        ("tflm", "tflite_micro"), ("litert", "ai_edge_litert"), ("onnxruntime", "onnxruntime"),
    ):  # fmt: skip
        monkeypatch.setitem(sys.modules, module, None)
        result = microtir("verify", "unread.tflite", "--oracle", oracle)
        assert result.status == 3
        assert module.replace("_", "-") in result.diagnostic
        assert f"fix:      {install_extra('test')}" in result.diagnostic


def test_float_model(microtir: Command) -> None:
    """Floats are equal if they are as near to the exact values as float32 is; the text says so."""
    result = microtir("verify", FLOAT, "--samples", 4)
    assert result.status == 0
    assert "every float32 output within the error of a float32 sum of " in result.out
    result = microtir("verify", FLOAT, "--samples", 1, "--rtol", "1e-4")
    assert "every float32 output within 0.0001 of the sample's largest" in result.out


def test_hybrid_reference(microtir: Command, tmp_path: Path) -> None:
    """The cause of 8 bits in a hybrid model's reference is named; a sixteenth is not excused."""
    model, images = tmp_path / "hybrid.tflite", np.ones((1, 1, 4), np.float32)
    model.write_bytes(hybrid_model())
    exact = np.array([0.6, 2.2, 3.8], np.float32).reshape(1, 1, 3)
    for error, status in ((0.02, 0), (0.1, 1)):
        np.savez(tmp_path / "g.npz", inputs=images, outputs=exact + np.float32(3.8 * error))
        result = microtir("verify", model, "--golden", tmp_path / "g.npz")
        assert result.status == status, result.out + result.err
        assert "the reference itself is up to 0.0" in result.out or error > 0.05
        assert "TFLite's kernels round the activations" in result.out
        assert "with --numerics tflite_ref it rounds as LiteRT's" in result.out
        result = microtir(
            "verify", model, "--golden", tmp_path / "g.npz", "--numerics", "tflite_ref"
        )
        assert "TFLite's kernels round the activations" in result.out
        assert "tflite_ref" not in result.out, "it is what was done already"
    result = microtir("verify", model, "--samples", 2)
    assert result.status == 0 and "hybrid" not in result.out.replace("hybrid.tflite", "")


def test_tolerance(microtir: Command, tmp_path: Path) -> None:
    """Expected floats that are off by a thousandth fail by default and pass with --rtol 0.01."""
    golden = tmp_path / "off.npz"
    outputs = tmp_path / "out.npz"
    image = np.linspace(-1, 1, 64, dtype=np.float32).reshape(1, 8, 8, 1)
    np.save(tmp_path / "image.npy", image)
    assert microtir("run", FLOAT, "-i", tmp_path / "image.npy", "-o", outputs).status == 0
    with np.load(outputs) as stored:
        exact = stored["probabilities"]
    off = exact + np.float32(1e-3) * exact.max()
    np.savez(golden, inputs=image[None], outputs=off[None])
    assert microtir("verify", FLOAT, "--golden", golden).status == 1
    assert microtir("verify", FLOAT, "--golden", golden, "--rtol", "0.01").status == 0
    np.savez(golden, inputs=image[None], outputs=np.full_like(off, np.nan)[None])
    result = microtir("verify", FLOAT, "--golden", golden, "--rtol", "1", "--json", "-")
    facts = json.loads(result.out)
    assert (result.status, facts["mismatches"], facts["max_abs_error"]) == (1, 10, None)


def test_difference_is_shown(
    microtir: Command, tmp_path: Path, some_samples: dict[str, Any]
) -> None:
    """One wrong expected byte: status 1, a row that names it, and no layer to blame."""
    right = int(some_samples["outputs"][2, 0, 7])
    some_samples["outputs"][2, 0, 7] = right ^ 2
    golden, verdict = tmp_path / "golden.npz", tmp_path / "verdict.json"
    np.savez(golden, **some_samples)
    result = microtir("verify", INT8, "--golden", golden, "--json", verdict)
    assert (result.status, result.err) == (1, "")
    assert result.out.startswith(
        "DIFFERENT: 1 of 40 values in 1 of 4 samples, by up to 2; for cortex-m4, run here"
    )
    row = next(line for line in result.out.splitlines() if "probabilities" in line)
    assert row.split() == [
        "2", "probabilities", "1", "10", "2", "[0,", "7]", str(right ^ 2), str(right),
    ]  # fmt: skip
    assert "the reference outputs belong to another model" in result.out
    facts = json.loads(verdict.read_text())
    assert (facts["equal"], facts["mismatches"], facts["max_abs_error"]) == (False, 1, 2.0)
    assert (facts["first_wrong_layer"], facts["within_one_step"]) == (None, False)


@pytest.mark.parametrize(("options", "status"), [((), 0), (("--exact",), 1)])
def test_one_step_is_a_rounding_of_the_reference(
    microtir: Command, tmp_path: Path, some_samples: dict[str, Any],
    options: tuple[str, ...], status: int,
) -> None:  # fmt: skip
    """A golden file of LiteRT's may be a step off, which is said, and is a no with --exact."""
    some_samples["outputs"][2, 0, 7] ^= 1
    golden, verdict = tmp_path / "golden.npz", tmp_path / "verdict.json"
    np.savez(golden, **some_samples)
    result = microtir("verify", INT8, "--golden", golden, "--json", verdict, *options)
    assert (result.status, result.err) == (status, "")
    words = "equal within one quantisation step (1 of 40 values; the reference rounds halves"
    assert result.out.startswith("DIFFERENT: " if status else words)
    assert "another model" not in result.out and "docs/frontend.md" in result.out
    facts = json.loads(verdict.read_text())
    assert (facts["equal"], facts["within_one_step"]) == (False, True)


def test_a_step_from_a_reference_that_rounds_alike_is_a_difference(
    microtir: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    """tflite-micro rounds as the C does: a value that is one off is a no, by any name."""

    def off_by_one(*arguments: Any, **options: Any) -> SampleBatch:
        expected = expected_outputs(*arguments, **options)
        first = {name: array ^ 1 for name, array in expected.values[0].items()}
        return replace(expected, values=(first, *expected.values[1:]))

    monkeypatch.setattr("microtir.host.oracle.expected_outputs", off_by_one)
    for options in (("--oracle", "tflm"), ()):
        result = microtir("verify", INT8, "--samples", 2, *options)
        assert result.status == 1
        assert result.out.startswith("DIFFERENT: 10 of 20 values")


def test_many_differences_are_cut(microtir: Command, tmp_path: Path) -> None:
    """A table of differences has twenty rows at most and says how many are left out."""
    with np.load(TEST_SET) as stored:
        np.savez(tmp_path / "g.npz", inputs=stored["inputs"][:30], outputs=stored["outputs"][30:60])
    result = microtir("verify", INT8, "--golden", tmp_path / "g.npz")
    assert result.status == 1
    rows = sum("probabilities" in line for line in result.out.splitlines())
    assert rows == 20
    assert "more rows" in result.out


def test_every_layer(microtir: Command) -> None:
    """--every-layer compares all layers although all outputs are equal."""
    result = microtir("verify", INT8, "--samples", 1, "--every-layer")
    assert result.status == 0
    assert "layers: all equal to microtir's numpy reference" in result.out


def test_sanitizers(microtir: Command) -> None:
    """--sanitize runs the same C under the sanitizers, which find nothing."""
    result = microtir("verify", INT8, "--samples", 2, "--sanitize")
    assert result.status == 0
    assert "equal: 2 samples" in result.out
    assert "sanitizers: nothing found" in result.out


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (["--golden", "x.npz", "--samples", "3"], "different sources of reference outputs"),
        (["--golden", "x.npz", "--oracle", "tflm"], "different sources of reference outputs"),
        (["--oracle", "onnxruntime"], "fix:      use --oracle tflm"),
        (["--oracle-timeout", "5"], "expected: --oracle tflm, litert or onnxruntime"),
        (["--oracle", "referenc"], "did you mean 'reference'?"),
        (["--rtol", "-1"], "the tolerance is -1.0"),
        (["--rtol", "nan"], "the tolerance is nan"),
    ],
)
def test_wrong_options(microtir: Command, arguments: list[str], text: str) -> None:
    """Options that contradict each other, or are not built, are refused with status 2."""
    result = microtir("verify", INT8, *arguments)
    assert result.status == 2
    assert text in result.diagnostic


def test_golden_file_that_is_missing(microtir: Command, tmp_path: Path) -> None:
    """A golden file that is not there: status 3."""
    result = microtir("verify", INT8, "--golden", tmp_path / "none.npz")
    assert result.status == 3
    assert "none.npz: the file cannot be read" in result.diagnostic


def test_json_that_cannot_be_written(microtir: Command, tmp_path: Path) -> None:
    """A verdict that cannot be written is an error, whatever it says."""
    (tmp_path / "file").touch()
    result = microtir("verify", INT8, "--samples", 1, "--json", tmp_path / "file" / "v.json")
    assert result.status == 3
    assert "v.json: cannot be written" in result.diagnostic
