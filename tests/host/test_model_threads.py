"""Loaded models in several threads: each call sees what is its own."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest

import microtir
from microtir import CompilationConfig, host
from microtir.graph.ir import Array
from tests.support.command import INT8

THREADS, RUNS = 4, 48
INTERNAL = {"pool_name": "own", "pool_info_properties": {"is_internal": True}}


def loaded(config: CompilationConfig, *, debug: bool = False) -> host.Model:
    """Return the example model."""
    artifact = microtir.build(microtir.frontend.from_tflite(INT8), config)
    return host.load(artifact, debug=debug)


def in_threads(call: Callable[[Array], Any]) -> tuple[list[Any], list[Any]]:
    """Return what calls give one after another, and all at once, on the same images."""
    rng = np.random.default_rng(1)
    images = [rng.integers(-128, 128, (1, 8, 8, 1)).astype(np.int8) for _ in range(RUNS)]
    alone = [call(image) for image in images]
    with ThreadPoolExecutor(THREADS) as pool:
        return alone, list(pool.map(call, images))


def test_layers_of_several_threads() -> None:
    """One hook for all mixed the layers of runs, and its callback was freed under a run."""
    model = loaded(CompilationConfig(targets="c"), debug=True)

    def layers(image: Array) -> list[bytes]:
        outputs, found = model.run_layers({"image": image})
        values = [array.tobytes() for layer in found for array in layer.outputs]
        return [*values, outputs["probabilities"].tobytes()]

    alone, together = in_threads(layers)
    assert together == alone


def test_nodes_of_several_threads() -> None:
    """The observers of a graph were those of the thread that had come last."""
    model = loaded(CompilationConfig(targets="c", executor="debug"))

    def nodes(image: Array) -> list[object]:
        outputs, found = model.run_nodes({"image": image})
        tensors = [(node.name, [tensor.data for tensor in node.tensors]) for node in found]
        return [*tensors, outputs["probabilities"].tobytes()]

    alone, together = in_threads(nodes)
    assert together == alone


@pytest.mark.parametrize("interface", ["c", "packed"])
def test_runs_of_a_program_with_its_own_memory(interface: str) -> None:
    """Two models of one artifact are one library: runs that are not re-entrant take turns."""
    config = CompilationConfig(
        targets="c",
        executor=microtir.Executor("aot", {"interface-api": interface}),
        workspace_pools=[INTERNAL],
    )
    models = [loaded(config), loaded(config)]

    def outputs(image: Array) -> bytes:
        model = models[int(image[0, 0, 0, 0]) % 2]
        return b"".join(model.run({"image": image})["probabilities"].tobytes() for _ in range(20))

    alone, together = in_threads(outputs)
    assert together == alone
