"""Train a random forest with scikit-learn, compile it to C, and run the C here and on a board.

python examples/wine/demo.py
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from skl2onnx import to_onnx
from sklearn.datasets import load_wine
from sklearn.ensemble import RandomForestClassifier
from sklearn.impute import SimpleImputer
from sklearn.model_selection import train_test_split
from sklearn.pipeline import Pipeline, make_pipeline

import microtir
from microtir import CompilationConfig, MicrotirError, boards, projects

Floats = npt.NDArray[np.float32]

BOARD = "mps2_an386"
MISSING = 0.1
"""Of all readings, those that the sensors of the example leave out."""


@dataclass(frozen=True, slots=True)
class Trained:
    """A pipeline and the samples that it has not seen.

    Args:
        pipeline: what is missing becomes the median, then the trees.
        inputs: (samples, 13) readings; one that is missing is NaN.
        labels: (samples,) the cultivar of each, 0 to 2.
    """

    pipeline: Pipeline
    inputs: Floats
    labels: npt.NDArray[np.int64]


def train() -> Trained:
    """Fit the pipeline to two thirds of the data set; the same every time."""
    wines = load_wine()
    inputs = wines.data.astype(np.float32)
    missing = np.random.default_rng(7).random(inputs.shape) < MISSING
    inputs[missing] = np.nan
    fitted, held, labels, held_labels = train_test_split(
        inputs, wines.target, test_size=1 / 3, random_state=0, stratify=wines.target
    )
    pipeline = make_pipeline(
        SimpleImputer(strategy="median"),
        RandomForestClassifier(n_estimators=12, max_depth=5, random_state=0),
    )
    return Trained(pipeline.fit(fitted, labels), held, held_labels.astype(np.int64))


def exported(trained: Trained) -> bytes:
    """Return the pipeline as an ONNX file; probabilities are a tensor, not a list of maps."""
    made = to_onnx(trained.pipeline, trained.inputs[:1], options={"zipmap": False}, target_opset=17)
    return bytes(made.SerializeToString())


def answers(results: Sequence[Mapping[str, Any]]) -> tuple[npt.NDArray[np.int64], Floats]:
    """Return labels (samples,) and probabilities (samples, 3) of runs of the C."""
    labels = np.array([int(result["label"][0]) for result in results], np.int64)
    return labels, np.stack([result["probabilities"][0] for result in results])


def difference(trained: Trained, results: Sequence[Mapping[str, Any]]) -> tuple[int, float]:
    """Return how many labels scikit-learn has, too, and the largest difference of a probability."""
    labels, shares = answers(results)
    equal = int((labels == trained.pipeline.predict(trained.inputs[: len(labels)])).sum())
    wanted = trained.pipeline.predict_proba(trained.inputs[: len(labels)])
    return equal, float(np.abs(shares - wanted).max())


def main() -> int:
    """Return the exit status: that of the demonstration, or of the error that ended it."""
    try:
        return demonstrate()
    except MicrotirError as error:
        print(f"error: {error}", file=sys.stderr)
        return error.exit_code


def demonstrate() -> int:
    """Return 0 if the C has scikit-learn's label for every sample, else 1."""
    parser = argparse.ArgumentParser(description="Compile a random forest and run the C.")
    parser.add_argument("--output", type=Path, default=Path("build/wine"), help="folder for files")
    parser.add_argument("--board", help=f"runs it there, too, for example on {BOARD}")
    arguments = parser.parse_args()
    arguments.output.mkdir(parents=True, exist_ok=True)

    trained = train()
    file = arguments.output / "wine.onnx"
    file.write_bytes(exported(trained))
    board = boards.load_board(arguments.board or BOARD)
    config = CompilationConfig.from_target(board.target).with_(module_name="wine")
    artifact = microtir.build(microtir.frontend.from_onnx(file), config)
    artifact.export(arguments.output / "c", force=True)

    samples = [{"X": x[np.newaxis]} for x in trained.inputs]
    model = microtir.host.load(artifact)
    runs: dict[str, Sequence[Mapping[str, Any]]] = {
        "this machine": [model.run(sample) for sample in samples]
    }
    if arguments.board:
        runs[arguments.board] = projects.run_samples(artifact, board, samples)
    total, equal = len(samples), 0
    right = trained.pipeline.score(trained.inputs, trained.labels)
    print(f"accuracy               {right:.1%} of {total} samples that were held back")
    for where, results in runs.items():
        equal, most = difference(trained, results)
        print(f"labels as scikit-learn {equal} of {total} on {where}; shares within {most:.1e}")
        if equal < total:
            return 1
    print(f"weights                {artifact.metadata.weights_bytes} bytes of flash")
    print(f"code                   about {artifact.metadata.code_bytes_estimate} bytes of flash")
    print(f"C sources in           {arguments.output / 'c'}")
    print(f"next: microtir profile {file} --board {BOARD}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
