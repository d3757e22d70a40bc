"""Compares layers of Keras with what microtir reads of the files that Keras saves.

    KERAS_BACKEND=jax python -m tests.journeys.keras_layers --seeds 20
    KERAS_BACKEND=jax python -m tests.journeys.keras_layers --record

It runs where Keras is installed.  The second form writes what the tests without Keras compare:
a model of each class, and what Keras makes of random inputs.
"""

from __future__ import annotations

import argparse
import io
import sys
import tempfile
import zipfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from microtir.errors import MicrotirError
from microtir.frontend import from_keras
from microtir.graph.ir import Array, Graph
from microtir.rewrite.reference import execute
from tests.journeys.keras_cases import CASES, Drawn
from tests.journeys.keras_networks import NETWORKS

RECORDED = Path(__file__).parents[1] / "frontend" / "keras" / "recorded.zip"

CLASSES = RECORDED.with_name("classes.txt")

NEAR = 3e-5
"""Largest difference to Keras, which adds in float32, as a part of the largest output."""


def difference(graph: Graph, inputs: Sequence[Array], expected: Sequence[Array]) -> str:
    """Return how outputs differ from what Keras gives; empty if they do not."""
    ports = graph.arguments
    got = execute(graph, {port.name: x for port, x in zip(ports, inputs, strict=True)})
    if len(graph.results) != len(expected):
        return f"{len(graph.results)} outputs, Keras has {len(expected)}"
    for port, right in zip(graph.results, expected, strict=True):
        own = got[port.name]
        if own.shape != right.shape:
            return f"{port.name}: shape {own.shape}, Keras has {right.shape}"
        error = np.abs(own.astype(np.float64) - right.astype(np.float64)).max(initial=0.0)
        if not error <= NEAR * max(1.0, float(np.abs(right).max(initial=0.0))):
            return f"{port.name}: differs by {error}"
    return ""


def model_of(keras: Any, kind: str, drawn: Drawn) -> Any:
    """Return a model of one layer."""
    dtype = "int32" if drawn.most else "float32"
    inputs = [keras.Input(shape, dtype=dtype) for shape in drawn.shapes]
    layer = getattr(keras.layers, kind)(**drawn.arguments)
    return keras.Model(inputs, layer(inputs[0] if len(inputs) == 1 else inputs))


def fill(model: Any, rng: np.random.Generator) -> None:
    """Give all variables of a model random values; variances are above 0."""
    for variable in model.variables:
        if "seed" not in variable.path and "int" not in str(variable.dtype):
            values = rng.normal(0.0, 0.5, variable.shape)
            variable.assign(np.abs(values) + 0.3 if "variance" in variable.path else values)


def drawn_inputs(model: Any, most: int, rng: np.random.Generator) -> list[Array]:
    """Return random inputs of a model, of a batch of 1."""
    shapes = [(1, *x.shape[1:]) for x in model.inputs]
    if most:
        return [rng.integers(0, most, shape).astype(np.int32) for shape in shapes]
    return [rng.normal(0.0, 1.0, shape).astype(np.float32) for shape in shapes]


def outputs_of(keras: Any, model: Any, inputs: Sequence[Array]) -> list[Array]:
    """Return what Keras makes of inputs."""
    results = model(inputs[0] if len(inputs) == 1 else list(inputs), training=False)
    ordered = list(results.values()) if isinstance(results, dict) else results
    return [np.asarray(x) for x in keras.tree.flatten(ordered)]


def saved(model: Any, suffix: str) -> bytes:
    """Return the file that Keras saves."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / f"model.{suffix}"
        model.save(path)
        return path.read_bytes()


def models(keras: Any, seed: int) -> Iterator[tuple[str, str, Any, list[Array]]]:
    """Yield names, what was drawn, models and inputs of one seed."""
    for kind, draw in CASES.items():
        rng = np.random.default_rng([seed, *kind.encode()])
        drawn = draw(rng)
        model = model_of(keras, kind, drawn)
        fill(model, rng)
        yield kind, str(drawn), model, drawn_inputs(model, drawn.most, rng)
    for name, build in NETWORKS.items():
        rng = np.random.default_rng([seed, *name.encode()])
        model = build(keras, rng)
        fill(model, rng)
        yield name, "", model, drawn_inputs(model, 0, rng)


def compare(keras: Any, seed: int, only: Sequence[str]) -> Iterator[str]:
    """Yield what differs from Keras for the models of one seed."""
    for name, drawn, model, inputs in models(keras, seed):
        if only and name not in only:
            continue
        expected = outputs_of(keras, model, inputs)
        for suffix in ("keras", "h5"):
            try:
                graph = from_keras(saved(model, suffix)).graph
                assert graph is not None
                problem = difference(graph, inputs, expected)
            except MicrotirError as error:
                problem = str(error)
            if problem:
                yield f"seed {seed}: {name}, .{suffix}: {problem}\n  {drawn}"


def record(keras: Any) -> None:
    """Write a model of each class with inputs and outputs."""
    with zipfile.ZipFile(RECORDED, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as archive:
        for number, (name, _, model, inputs) in enumerate(models(keras, 0)):
            suffix = ("keras", "h5")[number % 2]
            arrays = io.BytesIO()
            expected = outputs_of(keras, model, inputs)
            np.savez(arrays, *inputs, *expected)
            for title, data in (
                (f"{name}.{suffix}", saved(model, suffix)),
                (f"{name}.npz", arrays.getvalue()),
            ):
                archive.writestr(zipfile.ZipInfo(title), data, zipfile.ZIP_DEFLATED)
    layers = vars(keras.layers).values()
    names = sorted({layer.__name__ for layer in layers if isinstance(layer, type)})
    CLASSES.write_text("\n".join((f"# Keras {keras.__version__}", *names, "")), encoding="utf-8")
    _say(f"{RECORDED.name}: {RECORDED.stat().st_size} bytes, Keras {keras.__version__}")


def _say(line: str) -> None:
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


def main() -> int:
    """Compare models of some seeds; status 1 if one differs."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--only", nargs="*", default=())
    parser.add_argument("--record", action="store_true")
    arguments = parser.parse_args()
    import keras

    if arguments.record:
        record(keras)
        return 0
    problems = 0
    for seed in range(arguments.first, arguments.first + arguments.seeds):
        keras.utils.clear_session(free_memory=False)
        for problem in compare(keras, seed, arguments.only):
            _say(problem)
            problems += 1
    count = len(CASES) + len(NETWORKS)
    _say(f"{arguments.seeds} seeds of {count} kinds in two formats: {problems} differ")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
