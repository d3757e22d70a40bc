"""Train the sentences model with numpy and store its weights.

    python -m examples.sentences.train

One seed and float32; the weights are stored as float16, which both models are made of.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from examples.sentences.corpus import batch_of, split
from examples.sentences.network import SHAPE, Array, Shape, Value, loss_of

WEIGHTS_FILE = Path(__file__).parent / "weights.npz"
SEED = 7


@dataclass(frozen=True, slots=True)
class Schedule:
    """How long and how fast to train."""

    steps: int = 400
    batch: int = 32
    learning_rate: float = 4e-3
    warm_up: int = 20
    decay: float = 0.02


def initial_parameters(rng: np.random.Generator, shape: Shape = SHAPE) -> dict[str, Array]:
    """Return gains of 1, and weights whose products keep the size of what they are given."""
    made: dict[str, Array] = {}
    for name, extents in shape.parameters().items():
        if len(extents) == 1:
            made[name] = np.ones(extents, np.float32)
        else:
            spread = 0.5 if name == "embedding" else extents[1] ** -0.5
            made[name] = (rng.normal(size=extents) * spread).astype(np.float32)
    return made


def trained(schedule: Schedule, seed: int = SEED) -> Iterator[tuple[float, dict[str, Array]]]:
    """Yield the loss of each step and the weights behind it (Adam, with decay of weights)."""
    rng = np.random.default_rng(seed)
    rows = batch_of(split()[0])
    parameters = initial_parameters(rng)
    first = {name: np.zeros_like(value) for name, value in parameters.items()}
    second = {name: np.zeros_like(value) for name, value in parameters.items()}
    for step in range(1, schedule.steps + 1):
        values = {name: Value(value) for name, value in parameters.items()}
        loss = loss_of(values, rows[rng.integers(0, len(rows), schedule.batch)])
        loss.backward()
        turn = 0.5 * (1 + np.cos(np.pi * step / schedule.steps))
        rate = schedule.learning_rate * min(step / schedule.warm_up, 1) * turn
        for name, value in values.items():
            slope = np.clip(value.slope, -0.1, 0.1)
            first[name] += 0.1 * (slope - first[name])
            second[name] += 0.01 * (np.square(slope) - second[name])
            move = (first[name] / (1 - 0.9**step)) / (
                np.sqrt(second[name] / (1 - 0.99**step)) + 1e-8
            )
            kept = 1 - rate * schedule.decay * (value.data.ndim > 1)
            parameters[name] = (parameters[name] * kept - rate * move).astype(np.float32)
        yield float(loss.data), parameters


def main() -> None:
    """Train, print the loss now and then, and write the weights."""
    parser = argparse.ArgumentParser(description="Train the sentences model.")
    parser.add_argument("--output", type=Path, default=WEIGHTS_FILE)
    parser.add_argument("--steps", type=int, default=Schedule().steps)
    arguments = parser.parse_args()
    begun, last = time.monotonic(), dict[str, Array]()
    for step, (loss, parameters) in enumerate(trained(Schedule(arguments.steps)), 1):
        last = parameters
        if step % 50 == 0 or step == 1:
            print(f"step {step:5}  loss {loss:.4f}  {time.monotonic() - begun:.0f} s", flush=True)
    stored: dict[str, Any] = {name: value.astype(np.float16) for name, value in last.items()}
    np.savez_compressed(arguments.output, **stored)


if __name__ == "__main__":
    main()
