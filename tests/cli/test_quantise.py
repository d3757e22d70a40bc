"""`microtir quantise`, and `compile --quantise`: files, figures, and what is refused."""

from __future__ import annotations

import json
import xml.etree.ElementTree as ET
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from microtir.frontend import from_tflite
from microtir.graph.ir import Array, Graph
from microtir.operators.arithmetic.tflite import AddOptions
from microtir.operators.common.tflite_schema import BuiltinOperator
from microtir.quantise import Quantised, QuantiseOptions, quantise
from microtir.rewrite.reference import execute
from microtir.writers import TfliteBuilder, write_tflite
from tests.support.command import FLOAT, INT8, TEST_SET, Command
from tests.support.float_networks import chain, floats
from tests.support.tflm import run_tflm

pytestmark = pytest.mark.tools

SCALE = np.float32(0.00392157)  # of the example's input


_quantised: dict[str, Quantised] = {}


def _quantise(graph: Graph, samples: Mapping[str, Array], options: QuantiseOptions) -> Quantised:
    """Quantise a file by samples once, whichever command line asks for it."""
    arrays = [(name, x.shape, x.tobytes()) for name, x in samples.items()]
    key = repr((graph.source_sha256, graph.name, arrays, options))
    if key not in _quantised:
        _quantised[key] = quantise(graph, samples, options)
    return _quantised[key]


@pytest.fixture(autouse=True)
def _quantised_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let tests share what is quantised alike."""
    monkeypatch.setattr("microtir.host.quantised.quantise", _quantise)


@pytest.fixture
def samples() -> dict[str, Array]:
    """Return 100 samples of the example as it was trained on them, with their classes."""
    with np.load(TEST_SET) as arrays:
        inputs, labels = arrays["inputs"][:100], arrays["labels"][:100]
    return {"inputs": (inputs.astype(np.float32) + 128) * SCALE, "labels": labels}


def stored(folder: Path, **arrays: Array) -> Path:
    """Write samples."""
    path = folder / "samples.npz"
    np.savez(path, **arrays)  # type: ignore[arg-type]
    return path


def figures(microtir: Command, *arguments: object) -> dict[str, Any]:
    """Return the figures that the verb gives as JSON."""
    result = json.loads(microtir("quantise", *arguments, "--json", "-").out)
    assert isinstance(result, dict)
    return result


def test_a_float_model_becomes_a_file(
    microtir: Command, tmp_path: Path, samples: dict[str, Array]
) -> None:
    """The screen says what was chosen and what it costs; the file is as good as the floats."""
    path, output = stored(tmp_path, **samples), tmp_path / "model.tflite"
    result = microtir("quantise", FLOAT, "--data", path, "-o", output)
    assert (result.status, result.err) == (0, "")
    size = output.stat().st_size
    assert result.out.startswith(f"{FLOAT.name} -> {output}, {size:,} bytes of ")
    assert "20 of 100 samples, that did not calibrate" in result.out
    assert "\nlayers       11 int8\n" in result.out and result.out.count("worst") == 1
    facts = figures(microtir, FLOAT, "--data", path, "-o", output)
    assert facts["bytes"] == {"before": FLOAT.stat().st_size, "after": size}
    assert facts["samples"] == {"all": 100, "measured": 20, "measured_are_new": True}
    assert facts["score"]["kind"] == "accuracy"
    assert facts["score"]["after"] >= facts["score"]["before"] - 0.05
    assert [layer["sqnr_db"] > 20 for layer in facts["layers"]] == [True] * 11
    assert facts["floats"] == facts["warnings"] == []
    graph = from_tflite(output).graph
    assert graph is not None
    assert {t.dtype.value for t in (*graph.inputs, *graph.outputs)} == {"int8"}
    compared = microtir("verify", output, "--oracle", "tflm", "--samples", "5")
    assert compared.out.startswith("equal: 5 samples")


def test_the_suffix_chooses_qdq(
    microtir: Command, tmp_path: Path, samples: dict[str, Array]
) -> None:
    """An .onnx file is run by onnxruntime, and knows most classes."""
    import onnxruntime

    path, output = stored(tmp_path, **samples), tmp_path / "model.onnx"
    facts = figures(microtir, FLOAT, "--data", path, "-o", output, "--inputs", "float",
                    "--weights", "4", "--layer", "*=int8")  # fmt: skip
    assert facts["bytes"]["after"] == output.stat().st_size
    session = onnxruntime.InferenceSession(output.read_bytes(), providers=["CPUExecutionProvider"])
    decided = [
        session.run(None, {"image": image.reshape(1, 8, 8, 1)})[0].argmax()
        for image in samples["inputs"]
    ]
    assert np.mean(np.array(decided) == samples["labels"]) > 0.9


@pytest.mark.model("exported/lstm_fused_float32")
def test_a_file_says_what_it_has_otherwise(
    microtir: Command, tmp_path: Path, samples: dict[str, Array], models_dir: Path
) -> None:
    """LSTMs of a QDQ file are floats; weights of 4 bits take 8 there, and in dense layers."""
    model = models_dir / "exported" / "lstm_fused_float32.tflite"
    graph = from_tflite(model).graph
    assert graph is not None
    (port,) = graph.arguments
    steps = stored(tmp_path, **{port.name: floats(1, 9, *port.shape)})
    lines = []
    for name, asked in (("a.onnx", ()), ("a.tflite", ()), ("b.onnx", ("--weights", "4"))):
        result = microtir("quantise", model, "--data", steps, "-o", tmp_path / name, *asked)
        assert result.status == 0
        lines.append([line for line in result.out.splitlines() if " in the file: '" in line])
    assert [len(found) for found in lines] == [1, 0, 2]
    assert lines[0][0].startswith("LSTMs in floats in the file: ")
    assert (
        "stored with 8 bits in the file" in lines[2][0] and "QDQ has 8-bit weights" in lines[2][0]
    )
    facts = figures(microtir, model, "--data", steps, "-o", tmp_path / "a.onnx")
    assert len(facts["stored_in_floats"]) == 1 and not facts["stored_in_8_bits"]
    digits = microtir("quantise", FLOAT, "--data", stored(tmp_path, **samples), "--weights", "4",
                      "-o", tmp_path / "d.tflite")  # fmt: skip
    assert (
        "stored with 8 bits in the file: 'dense" in digits.out
        and "tflite-micro has no dense" in digits.out
    )


@pytest.mark.parametrize(
    ("options", "dtype"),
    [(("--16x8",), "int16"), (("--weights", "4", "--inputs", "uint8"), "uint8"),
     (("--layer", "dense*=float", "--inputs", "float"), "float32"),
     (("--calibration", "min-max", "--int8"), "int8")],
)  # fmt: skip
def test_widths_and_ports(
    microtir: Command,
    tmp_path: Path,
    samples: dict[str, Array],
    options: tuple[str, ...],
    dtype: str,
) -> None:
    """Options name widths, calibration and the types of ports; tflite-micro runs the file."""
    path, output = stored(tmp_path, **samples), tmp_path / "model.tflite"
    facts = figures(microtir, FLOAT, "--data", path, "-o", output, *options)
    model = output.read_bytes()
    graph = from_tflite(model).graph
    assert graph is not None and graph.inputs[0].dtype.value == dtype
    run_tflm(model, np.zeros(graph.inputs[0].shape, dtype))
    names = [layer["name"] for layer in facts["floats"]]
    assert names == (["dense1"] if "--layer" in options else [])
    assert bool(facts["stored_in_8_bits"]) == ("4" in options)


def test_compile_quantises_in_one_step(
    microtir: Command, tmp_path: Path, samples: dict[str, Array]
) -> None:
    """The program takes what that of the written file takes, and costs the same accuracy."""
    path, output = stored(tmp_path, **samples), tmp_path / "digits_float.tflite"
    cost = figures(microtir, FLOAT, "--data", path, "-o", output)
    taken = []
    for number, arguments in enumerate(((FLOAT, "--quantise", path), (output,))):
        folder = tmp_path / f"c{number}"
        facts = json.loads(microtir("compile", *arguments, "-o", folder, "--json").out)
        taken.append((facts["weights_bytes"], facts["memory"], facts["ports"]))
        found = facts.get("quantisation", {})
        assert {key: cost[key] for key in found} == found and bool(found) == (number == 0)
    assert taken[0] == taken[1]
    screen = microtir("compile", FLOAT, "--quantise", path, "-o", tmp_path / "c0")
    assert screen.err == "" and "accuracy" in screen.out and screen.out.count("worst") == 1


_FOR_A_BOARD = ("--board", "mps2_an386", "--project-type", "baremetal")


@pytest.mark.parametrize(
    "verb",
    [("compile", "-f", "project", *_FOR_A_BOARD), ("micro", "create-project", *_FOR_A_BOARD),
     ("package", "--format", "single-header", "--target", "cortex-m4"),
     ("evidence", *(f"--without={part}" for part in ("check", "coverage", "misra")))],
)  # fmt: skip
def test_projects_and_packages_are_made_of_integers(
    microtir: Command, tmp_path: Path, samples: dict[str, Array], verb: tuple[str, ...]
) -> None:
    """Verbs that compile a model quantise it first, with the options of `microtir quantise`."""
    path, output = stored(tmp_path, **samples), tmp_path / "made"
    options = ("--quantise", path, "--layer", "dense*=16x8", "--inputs", "uint8")
    result = microtir(*verb, FLOAT, *options, "-o", output)
    assert (result.status, result.err) == (0, "")
    texts = [file.read_text("utf-8") for file in output.rglob("*.h")]
    assert any("Integers " in text and "uint8" in text for text in texts)
    assert "accuracy" in result.out and result.out.count("worst") == 1
    alone = microtir(*verb, FLOAT, "--layer", "dense*=16x8", "-o", output)
    assert "--layer has no effect without --quantise" in alone.diagnostic
    if verb[0] in ("micro", "package"):
        several = microtir(*verb, FLOAT, FLOAT, "--quantise", path, "-o", output)
        assert "--quantise can be used with only one model" in several.diagnostic
    if verb[0] == "micro":
        archive = microtir(*verb, "net.tar", "--quantise", path, "-o", output)
        assert "'--quantise' has no effect on an archive" in archive.diagnostic


def test_the_report_says_what_integers_cost(
    microtir: Command, tmp_path: Path, samples: dict[str, Array]
) -> None:
    """In the terminal, in JSON as `quantise` has it, and on the page, with the worst one marked."""
    path, page = stored(tmp_path, **samples), tmp_path / "report.html"
    options = (FLOAT, "--quantise", path, "--calibration", "min-max")
    said = microtir("report", *options, "-o", page).out
    assert "accuracy" in said and said.count("worst") == 1
    text = page.read_text("utf-8")
    assert "What integers cost" in text and text.count('<tr class="marked">') == 1
    found = json.loads(microtir("report", *options, "--json").out)["quantisation"]
    output = tmp_path / "model.tflite"
    expected = figures(microtir, *(FLOAT, "--data", path, "-o", output), "--calibration", "min-max")
    assert {key: expected[key] for key in found} == found
    assert "quantisation" not in json.loads(microtir("report", FLOAT, "--json").out)


def _two_inputs(folder: Path) -> Path:
    """Return a model that adds two rows of three."""
    builder = TfliteBuilder()
    a, b, y = (builder.tensor(name, (1, 3), np.float32) for name in "aby")
    builder.operator(BuiltinOperator.ADD, [a, b], [y], AddOptions())
    path = folder / "sum.tflite"
    path.write_bytes(builder.build([a, b], [y]))
    return path


def test_several_inputs_and_wanted_numbers(microtir: Command, tmp_path: Path) -> None:
    """Arrays go by the names of inputs; float labels are compared by their squared errors."""
    rng = np.random.default_rng(1)
    a, b = (rng.normal(0, 1, (20, 3)).astype(np.float32) for _ in range(2))
    path = stored(tmp_path, a=a, **{"inputs.b": b, "wanted": a + b})
    output = tmp_path / "int8.tflite"
    facts = figures(
        microtir, _two_inputs(tmp_path), "--data", path, "-o", output, "--labels", "wanted"
    )
    assert facts["score"]["kind"] == "mean squared error"
    assert facts["score"]["before"] == 0 < facts["score"]["after"] < 1e-3
    result = microtir("quantise", _two_inputs(tmp_path), "--data", path, "-o", output,
                      "--labels", "nowhere")  # fmt: skip
    assert (
        "the file has no array 'nowhere'. Its arrays are: a, inputs.b, wanted" in result.diagnostic
    )


@pytest.mark.parametrize(
    ("array", "words"),
    [
        (np.zeros((5, 1, 8, 8), np.float32), ", with their channels first"),
        (np.zeros((5, 7, 8, 1), np.float32), "the shape (5, 7, 8, 1)"),
        (np.zeros((5, 8, 8, 1), np.uint8), "the samples have the type uint8"),
        (np.full((5, 8, 8, 1), np.nan, np.float32), "not finite"),
    ],
)
def test_samples_that_do_not_fit(
    microtir: Command, tmp_path: Path, array: Array, words: str
) -> None:
    """Layout, shape, type and NaN are named, and no file is written."""
    output = tmp_path / "model.tflite"
    result = microtir("quantise", FLOAT, "--data", stored(tmp_path, x=array), "-o", output)
    assert result.status == 2 and words in result.diagnostic
    assert not output.exists()


@pytest.mark.parametrize(
    ("array", "words"),
    [
        (np.full((5, 8, 8, 1), 0.5, np.float32), "all samples of 'image' are 0.5"),
        (np.arange(64, dtype=np.float32).reshape(1, 8, 8, 1) / 64, "there is only one sample"),
        (np.arange(320, dtype=np.float32).reshape(5, 8, 8, 1) % 250, "are from 0 to 249"),
    ],
)
def test_samples_that_look_wrong(
    microtir: Command, tmp_path: Path, array: Array, words: str
) -> None:
    """Constants, a single sample and pixels are noted beside the result."""
    output = tmp_path / "model.tflite"
    path = tmp_path / "x.npy"
    np.save(path, array)
    result = microtir("quantise", FLOAT, "--data", path, "-o", output)
    assert result.status == 0 and words in result.out and output.exists()


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--int8", "--16x8"), "--16x8 and --int8 set different widths"),
        (("--weights", "5"), "--weights is 5 bits"),
        (("--layer", "conv"), "'conv' cannot be read"),
        (("--layer", "conv=int9"), "there is no width 'int9'"),
        (("--calibration", "minmax"), "there is no calibration 'minmax'"),
        (("--outputs", "int32"), "there is no type 'int32'"),
        (("--percentile", "20"), "'percentile' is 20"),
    ],
)
def test_options_that_make_no_sense(
    microtir: Command,
    tmp_path: Path,
    samples: dict[str, Array],
    options: tuple[str, ...],
    words: str,
) -> None:
    """Each is refused with what is legal, before a sample is read."""
    path, output = stored(tmp_path, **samples), tmp_path / "model.tflite"
    result = microtir("quantise", FLOAT, "--data", path, "-o", output, *options)
    assert result.status == 2 and words in result.diagnostic


def test_files_that_do_not_fit(
    microtir: Command, tmp_path: Path, samples: dict[str, Array]
) -> None:
    """A quantised model, a folder, another suffix, labels of other samples."""
    path, output = stored(tmp_path, **samples), tmp_path / "model.tflite"
    for model, data, target in ((INT8, path, output), (FLOAT, path, tmp_path / "model.c"),
                                (FLOAT, tmp_path, output), (FLOAT, path, FLOAT)):  # fmt: skip
        assert microtir("quantise", model, "--data", data, "-o", target).diagnostic
    short = stored(tmp_path, inputs=samples["inputs"], labels=samples["labels"][:3])
    result = microtir("quantise", FLOAT, "--data", short, "-o", output)
    assert "'labels' has the shape (3,)" in result.diagnostic and not output.exists()


@pytest.fixture
def dense(tmp_path: Path) -> tuple[Path, Path]:
    """Return a float model of two dense layers, and samples with the classes that it chooses."""
    model = tmp_path / "dense.tflite"
    write_tflite(chain(2), model)
    rows = floats(3, 40, 1, 7)
    answers = [next(iter(execute(chain(2), {"x0": row}).values())).argmax() for row in rows]
    return model, stored(tmp_path, x0=rows, labels=np.array(answers))


def test_widths_are_chosen_within_budgets(
    microtir: Command, tmp_path: Path, dense: tuple[Path, Path]
) -> None:
    """Sensitivity and frontier are printed; the file has the chosen widths, and C the budget."""
    model, data = dense
    output, asked = tmp_path / "model.tflite", ("--optimize", "flash", "--board", "mps2_an386")
    result = microtir("quantise", model, "--data", data, "-o", output, "--max-loss", "100%", *asked)
    assert result.status == 0
    assert "loss by layer (accuracy)" in result.out and "frontier of 9 combinations (all), 8" in (
        result.out
    )
    assert result.out.count("   chosen   ") == 1
    picture = tmp_path / "frontier.svg"
    drawn = ("--max-loss", "100%", *asked, "--plot", picture)
    facts = figures(microtir, model, "--data", data, "-o", output, *drawn)
    marks = ET.parse(picture).getroot().findall("{http://www.w3.org/2000/svg}circle")
    trials = facts["search"]["trials"]
    assert "the limit allows no loss" not in result.out
    strict = microtir("quantise", model, "--data", data, "-o", output, "--max-loss", "1%")
    assert "one of 8 samples is 12.5%: the limit allows no loss" in strict.out
    (chosen,) = (trial for trial in trials if trial["is_chosen"])
    assert chosen["flash"] == min(trial["flash"] for trial in trials)
    best = [mark for mark in marks if mark.attrib["class"] == "best"]
    assert (len(marks), len(best)) == (9, sum(trial["on_frontier"] for trial in trials))
    assert [layer["width"] for layer in facts["layers"]] == chosen["widths"]
    assert facts["score"]["before"] - facts["score"]["after"] == pytest.approx(chosen["loss"])
    budget = str(chosen["flash"] * 11 // 10)  # a trial is estimated, and a program compiled
    built = microtir(
        "compile", model, "--quantise", data, "--max-loss", "100%", "-o", tmp_path / "c",
        "--flash-budget", budget, "--board", "mps2_an386",
    )  # fmt: skip
    assert built.status == 0, built.err
    assert "note: the best of 9 combinations of widths is" in built.err


@pytest.mark.parametrize(
    ("options", "status", "words"),
    [
        (("--max-loss", "0.001"), 2, "1% or 0.5%"),
        (("--max-loss", "1%", "--16x8"), 2, "cannot be combined with --max-loss"),
        (("--flash-budget", "9000"), 2, "add --max-loss 1%"),
        (("--plot", "frontier.svg"), 2, "add --max-loss 1%"),
        (("--max-loss", "100%", "--flash-budget", "400"), 1, "nearest program within the loss is"),
        (
            ("--max-loss", "1%", "--layer", "*=int8"),
            2,
            "no layer with weights whose width the search can",
        ),
    ],
)
def test_limits_that_are_refused(
    microtir: Command,
    tmp_path: Path,
    dense: tuple[Path, Path],
    options: tuple[str, ...],
    status: int,
    words: str,
) -> None:
    """Each says what is legal, or how near the best widths come, and writes no file."""
    model, data = dense
    output = tmp_path / "model.tflite"
    result = microtir("quantise", model, "--data", data, "-o", output, *options)
    assert result.status == status and words in result.err
    assert not output.exists()


def test_a_loss_needs_samples(microtir: Command, tmp_path: Path) -> None:
    """`compile --max-loss` without --quantise says what is missing."""
    result = microtir("compile", FLOAT, "--max-loss", "1%", "-o", tmp_path / "c")
    assert result.status == 2 and "add --quantise samples.npz" in result.diagnostic
