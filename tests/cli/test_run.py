from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from tests.support.command import FLOAT, INT8, TEST_SET, Command


def test_run_on_given_inputs(microtir: Command, tmp_path: Path) -> None:
    """A golden file's inputs give a golden file's outputs, stacked as the inputs were."""
    result = microtir("run", INT8, "--inputs", TEST_SET, "--outputs", tmp_path / "out.npz")
    assert (result.status, result.err) == (0, "")
    with np.load(TEST_SET) as expected, np.load(tmp_path / "out.npz") as got:
        assert np.array_equal(got["probabilities"], expected["outputs"])


def test_run_on_one_sample(microtir: Command, tmp_path: Path) -> None:
    """One array of the input's own shape gives outputs of their own shape."""
    with np.load(TEST_SET) as stored:
        np.save(tmp_path / "one.npy", stored["inputs"][5])
        expected = stored["outputs"][5]
    out = tmp_path / "out"  # no suffix is added to the name
    result = microtir("run", INT8, "-i", tmp_path / "one.npy", "-o", out, "--print-top", 2)
    assert result.status == 0
    with np.load(out) as got:
        assert np.array_equal(got["probabilities"], expected)
    top = [line.split() for line in result.out.splitlines()[4:]]
    best, value = int(expected[0].argmax()), int(expected.max())
    assert len(top) == 2
    assert top[0] == ["[0,", f"{best}]", str(value), f"{(value + 128) / 256:.6g}"]


@pytest.mark.parametrize("fill", ["zeros", "ones", "random"])
def test_fill_modes(microtir: Command, fill: str) -> None:
    """Each fill mode runs, and does so alike every time."""
    first = microtir("run", INT8, "--fill-mode", fill, "--json")
    assert first.status == 0
    (sample,) = json.loads(first.out)
    assert sample["probabilities"]["shape"] == [1, 10]
    assert microtir("run", INT8, "--fill-mode", fill, "--json").out == first.out


def test_random_is_the_default_and_has_a_seed(microtir: Command) -> None:
    """Without inputs they are random; another seed gives others."""
    default = microtir("run", FLOAT, "--json").out
    assert default == microtir("run", FLOAT, "--fill-mode", "random", "--seed", 0, "--json").out
    assert default != microtir("run", FLOAT, "--seed", 1, "--json").out


def test_json_has_the_largest(microtir: Command) -> None:
    """--print-top adds the indices of the largest values to the JSON."""
    (sample,) = json.loads(microtir("run", FLOAT, "--json", "--print-top", 3).out)
    output = sample["probabilities"]
    values = output["values"][0]
    ordered = sorted(values, reverse=True)[:3]
    assert [values[index[1]] for index in output["top"]] == ordered


def test_wrong_type_says_how_to_quantise(microtir: Command, tmp_path: Path) -> None:
    """Floats for an int8 input: status 2, with the formula of the model's own scale."""
    np.save(tmp_path / "x.npy", np.zeros((1, 8, 8, 1)))
    result = microtir("run", INT8, "--inputs", tmp_path / "x.npy")
    assert result.status == 2
    assert "'image' has the type float64" in result.diagnostic
    assert "round(x / 0.00392156886) + -128, clipped to int8" in result.diagnostic


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (["--fill-mode", "ones", "--inputs", "x.npy"], "different sources of inputs"),
        (["--fill-mode", "one"], "did you mean 'ones'?"),
        (["--print-top", "0"], "Invalid value for '--print-top'"),
    ],
)
def test_wrong_options(microtir: Command, arguments: list[str], text: str) -> None:
    """Options that contradict each other are refused with status 2."""
    result = microtir("run", INT8, *arguments)
    assert result.status == 2
    assert text in result.diagnostic


def test_output_that_cannot_be_written(microtir: Command, tmp_path: Path) -> None:
    """An output file that cannot be made: status 3."""
    (tmp_path / "file").touch()
    result = microtir("run", INT8, "--outputs", tmp_path / "file" / "out.npz")
    assert result.status == 3
    assert "out.npz: cannot be written" in result.diagnostic
