"""`microtir evaluate`: accuracy and confusion of a classifier's C, over files and folders."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.support.command import INT8, TEST_SET, Command

pytestmark = pytest.mark.tools

SCALE, ZERO_POINT = 0.00392157, -128  # of the example's input


def facts(microtir: Command, *arguments: object) -> dict[str, Any]:
    """What is known of a dataset."""
    found = json.loads(microtir("evaluate", *arguments, "--json", "-").out)
    assert isinstance(found, dict)
    return found


def test_the_example_brings_its_dataset(microtir: Command) -> None:
    """The matrix has every sample once, and the C decides as the reference does."""
    found = facts(microtir, "example:digits")
    with np.load(TEST_SET) as arrays:
        right = (arrays["outputs"].reshape(450, 10).argmax(axis=1) == arrays["labels"]).sum()
        rows = np.bincount(arrays["labels"], minlength=10)
    assert found["samples"] == 450 and found["right"] == right
    assert found["decided_otherwise"] == 0
    assert np.array_equal(np.sum(found["confusion"], axis=1), rows)
    assert np.trace(found["confusion"]) == right
    shown = microtir("evaluate", "example:digits").out
    assert f"{right} of 450 samples right" in shown and "as 9" in shown


def test_a_board_decides_as_this_machine(microtir: Command, tmp_path: Path) -> None:
    """The same samples, on an emulated core."""
    with np.load(TEST_SET) as arrays:
        part = {name: arrays[name][:20] for name in ("inputs", "labels")}
    np.savez(tmp_path / "part.npz", **part)
    given = INT8, "--dataset", tmp_path / "part.npz"
    assert facts(microtir, *given, "--board", "mps2_an386") == facts(microtir, *given)


def test_real_values_and_folders_are_the_same_samples(microtir: Command, tmp_path: Path) -> None:
    """Real values are quantised, columns of classes and names of folders are labels."""
    with np.load(TEST_SET) as arrays:
        stored, labels = arrays["inputs"][:40], arrays["labels"][:40]
    real = ((stored.astype(np.float32) - ZERO_POINT) * np.float32(SCALE))[:, 0]
    np.savez(tmp_path / "real.npz", x=real, y=np.eye(10)[labels])
    np.savez(tmp_path / "stored.npz", inputs=stored, labels=labels)
    for number, (sample, label) in enumerate(zip(real, labels, strict=True)):
        folder = tmp_path / "classes" / f"digit{label}"
        folder.mkdir(parents=True, exist_ok=True)
        np.save(folder / f"{number}.npy", sample)
    found = [
        facts(microtir, INT8, "--dataset", tmp_path / name)
        for name in ("stored.npz", "real.npz", "classes")
    ]
    assert found[0] == found[1]
    assert found[2]["classes"] == [f"digit{n}" for n in range(10)]
    assert found[2]["confusion"] == found[0]["confusion"]


def test_folders_of_some_classes(microtir: Command, tmp_path: Path) -> None:
    """Numbers as names are the classes' own; other names say nothing where a class has no folder.

    Classes behind a missing one had the number before theirs, and were all counted as wrong.
    """
    with np.load(TEST_SET) as arrays:
        stored, labels = arrays["inputs"][:12], arrays["labels"][:12]
    assert 3 not in labels and 9 in labels
    for name in ("", "digit"):
        for number, (sample, label) in enumerate(zip(stored, labels, strict=True)):
            folder = tmp_path / f"set{name}" / f"{name}{label}"
            folder.mkdir(parents=True, exist_ok=True)
            np.save(folder / f"{number}.npy", sample)
    found = facts(microtir, INT8, "--dataset", tmp_path / "set")
    assert found["right"] == 12 and found["classes"] == [str(n) for n in range(10)]
    result = microtir("evaluate", INT8, "--dataset", tmp_path / "setdigit")
    assert "folders for 7 classes" in result.diagnostic and "fix:" in result.diagnostic
    for name in ("digit3", "digit5", "digit8"):
        (tmp_path / "setdigit" / name).mkdir()
    found = facts(microtir, INT8, "--dataset", tmp_path / "setdigit")
    assert found["right"] == 12 and found["classes"][3] == "digit3"


def test_too_little_is_a_no(microtir: Command) -> None:
    """For scripts: exit status 1 below a limit."""
    assert microtir("evaluate", "example:digits", "--min-accuracy", "0.98").status == 0
    result = microtir("evaluate", "example:digits", "--min-accuracy", "0.995")
    assert result.status == 1 and "below 99.50%" in result.out


IMAGES = np.zeros((3, 8, 8, 1), np.float32)
REFUSED: dict[str, dict[str, Any]] = {
    "the file has no array 'labels'. Its arrays are: inputs": {"inputs": IMAGES},
    "the file has 0 samples, and 0 labels": {"inputs": IMAGES[:0], "labels": np.zeros(0, np.int8)},
    "the file has 8 samples, and 0 labels": {"inputs": IMAGES[0], "labels": np.int8(3)},
    "values that are not numbers": {
        "inputs": np.where(IMAGES == 0, np.nan, IMAGES), "labels": np.zeros(3, np.int8),
    },
    "the file has 3 samples, and 2 labels": {"inputs": IMAGES, "labels": np.zeros(2, np.int8)},
    "a sample has the shape": {"inputs": IMAGES[:, 0], "labels": np.zeros(3, np.int8)},
    "samples have the type uint8": {
        "inputs": IMAGES.astype(np.uint8), "labels": np.zeros(3, np.int8),
    },
    "labels are not classes": {"inputs": IMAGES, "labels": np.array([0, 1, -1])},
    "the dataset has the class 10": {"inputs": IMAGES, "labels": np.array([0, 1, 10])},
}  # fmt: skip


@pytest.mark.parametrize("text", REFUSED)
def test_what_is_no_dataset_of_the_model_is_refused(
    microtir: Command, tmp_path: Path, text: str
) -> None:
    """With the file, what is wrong, and what is legal."""
    np.savez(tmp_path / "set.npz", **REFUSED[text])
    result = microtir("evaluate", INT8, "--dataset", tmp_path / "set.npz")
    assert result.status > 1
    assert text in result.diagnostic
    assert "expected:" in result.diagnostic or "fix:" in result.diagnostic
    assert "defect" not in result.diagnostic


def test_a_dataset_must_be_given(microtir: Command, tmp_path: Path) -> None:
    """A file of a user has none; a folder without classes is none."""
    assert "--dataset FILE.npz|DIR" in microtir("evaluate", INT8).diagnostic
    result = microtir("evaluate", INT8, "--dataset", tmp_path)
    assert "a folder of .npy files for each class" in result.diagnostic
