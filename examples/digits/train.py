"""Train the digits network with numpy and store its weights.

    python -m examples.digits.train

scikit-learn provides the images and the split, nothing else.  The arithmetic is double precision
and the stored weights are rounded to a grid that is coarse against its rounding errors, so that
another machine's linear algebra library should end in the same file.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from examples.digits.network import (
    NETWORK,
    Array,
    accuracy,
    activations,
    layer_inputs,
    of_layer,
)

Labels: TypeAlias = npt.NDArray[np.int64]

WEIGHTS_FILE = Path(__file__).parent / "weights.npz"
SEED = 20240
WEIGHT_GRID = 2.0**-12


@dataclass(frozen=True, slots=True)
class Digits:
    """The data set: images [N, 8, 8, 1] from 0 to 1, labels from 0 to 9."""

    train_images: Array
    train_labels: Labels
    test_images: Array
    test_labels: Labels


@dataclass(frozen=True, slots=True)
class Schedule:
    """How long and how fast to train."""

    epochs: int = 80
    batch: int = 32
    learning_rate: float = 1e-2
    weight_decay: float = 1e-2


def load_data() -> Digits:
    """Return scikit-learn's digits, a quarter of them held out for the test."""
    from sklearn.datasets import load_digits
    from sklearn.model_selection import train_test_split

    images, labels = load_digits(return_X_y=True)
    train_x, test_x, train_y, test_y = train_test_split(
        images / 16.0, labels, test_size=0.25, random_state=0, stratify=labels
    )
    return Digits(
        train_x.reshape(-1, 8, 8, 1),
        train_y.astype(np.int64),
        test_x.reshape(-1, 8, 8, 1),
        test_y.astype(np.int64),
    )


def initial_parameters(rng: np.random.Generator) -> dict[str, Array]:
    """Draw weights scaled for ReLU layers (He et al., 2015), and biases of zero."""
    parameters: dict[str, Array] = {}
    for layer, shape in layer_inputs(NETWORK):
        weights_shape = layer.weights_shape(shape)
        if weights_shape is not None:
            deviation = np.sqrt(2.0 / layer.fan_in(shape))
            parameters[f"{layer.name}/weights"] = rng.normal(0, deviation, weights_shape)
            parameters[f"{layer.name}/bias"] = np.zeros(layer.output_shape(shape)[-1])
    return parameters


def gradients(images: Array, labels: Labels, parameters: dict[str, Array]) -> dict[str, Array]:
    """Return the mean cross-entropy's gradient between softmax of the logits and the labels."""
    values = activations(images, parameters)
    powers = np.exp(values[-1] - values[-1].max(axis=1, keepdims=True))
    slope: Array = powers / powers.sum(axis=1, keepdims=True)
    slope[np.arange(len(labels)), labels] -= 1
    slope /= len(labels)
    result: dict[str, Array] = {}
    for index in reversed(range(len(NETWORK))):
        layer = NETWORK[index]
        slope, own = layer.backward(
            values[index], values[index + 1], slope, of_layer(parameters, layer)
        )
        result.update({f"{layer.name}/{key}": value for key, value in own.items()})
    return result


class Adam:
    """Adam with decoupled weight decay (Kingma and Ba, 2015; Loshchilov and Hutter, 2019)."""

    def __init__(self, parameters: dict[str, Array], weight_decay: float) -> None:
        self.mean = {key: np.zeros_like(value) for key, value in parameters.items()}
        self.square = {key: np.zeros_like(value) for key, value in parameters.items()}
        self.weight_decay = weight_decay
        self.steps = 0

    def step(self, parameters: dict[str, Array], slopes: dict[str, Array], rate: float) -> None:
        """Move the parameters in place."""
        self.steps += 1
        correct_mean = 1 - 0.9**self.steps
        correct_square = 1 - 0.999**self.steps
        for key, value in parameters.items():
            self.mean[key] += 0.1 * (slopes[key] - self.mean[key])
            self.square[key] += 0.001 * (slopes[key] ** 2 - self.square[key])
            step = self.mean[key] / correct_mean
            step /= np.sqrt(self.square[key] / correct_square) + 1e-8
            if key.endswith("/weights"):
                step += self.weight_decay * value
            value -= rate * step


def augmented(images: Array, rng: np.random.Generator) -> Array:
    """Move every other image by up to one pixel each way, so that position matters less.

    A digit fills its eight columns, so a move often cuts it; half of the images stay whole.
    """
    padded = np.pad(images, ((0, 0), (1, 1), (1, 1), (0, 0)))
    moves = rng.integers(0, 3, (len(images), 2))
    moves[rng.random(len(images)) < 0.5] = 1
    return np.stack([padded[i, y : y + 8, x : x + 8] for i, (y, x) in enumerate(moves)])


def batches(
    data: Digits, schedule: Schedule, rng: np.random.Generator
) -> Iterator[tuple[float, Array, Labels]]:
    """Yield batches in random order, each with the part of the training that lies behind it."""
    per_epoch = len(data.train_images) // schedule.batch
    for epoch in range(schedule.epochs):
        order = rng.permutation(len(data.train_images))
        for number in range(per_epoch):
            chosen = order[number * schedule.batch : (number + 1) * schedule.batch]
            done = (epoch + number / per_epoch) / schedule.epochs
            yield done, augmented(data.train_images[chosen], rng), data.train_labels[chosen]


def train(data: Digits, schedule: Schedule, seed: int = SEED) -> dict[str, npt.NDArray[np.float32]]:
    """Return the trained parameters, named layer/weights and layer/bias."""
    rng = np.random.default_rng(seed)
    parameters = initial_parameters(rng)
    adam = Adam(parameters, schedule.weight_decay)
    for done, images, labels in batches(data, schedule, rng):
        rate = schedule.learning_rate * (1 + np.cos(np.pi * done)) / 2
        adam.step(parameters, gradients(images, labels, parameters), rate)
    return {
        key: (np.rint(value / WEIGHT_GRID) * WEIGHT_GRID).astype(np.float32)
        for key, value in parameters.items()
    }


def main() -> None:
    """Train, say how well, and store the weights."""
    parser = argparse.ArgumentParser(description="Train the digits network.")
    parser.add_argument("--epochs", type=int, default=Schedule().epochs)
    parser.add_argument("--seed", type=int, default=SEED)
    parser.add_argument("--weights", type=Path, default=WEIGHTS_FILE, help="file to write")
    arguments = parser.parse_args()
    data = load_data()
    start = time.perf_counter()
    stored = train(data, Schedule(epochs=arguments.epochs), arguments.seed)
    seconds = time.perf_counter() - start
    np.savez(arguments.weights, allow_pickle=False, **stored)
    parameters = {key: value.astype(np.float64) for key, value in stored.items()}
    for name, images, labels in (
        ("training", data.train_images, data.train_labels),
        ("test", data.test_images, data.test_labels),
    ):
        share = accuracy(activations(images, parameters)[-1], labels)
        print(f"{name} set: {len(labels)} images, accuracy {share:.4f}")
    print(f"trained in {seconds:.0f} s, weights in {arguments.weights}")


if __name__ == "__main__":
    main()
