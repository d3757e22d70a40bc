"""A batch is computed image by image: the memory, the kernels and the streams of one."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import microtir
from microtir import CompilationConfig, Executor, host
from microtir.artifact import Artifact
from microtir.config import Optimize
from microtir.graph.ir import Array, Graph
from microtir.host.layers import first_wrong_layer
from microtir.host.samples import SampleBatch
from microtir.host.tolerance import RelativeTolerance
from microtir.module.ir_module import IRModule
from microtir.rewrite.reference import execute
from tests.support.batch import load_batch
from tests.support.c_compilers import STRICT
from tests.support.seeds import seeds
from tests.support.streams import Garden

IMAGES = 3


def grown(seed: int, images: int = IMAGES) -> Graph:
    """A random graph on a batch: but for the batch, the same for all numbers of images."""
    garden = Garden(seed, images=images)
    return garden.graph(6)


def built(
    graph: Graph, name: str = "net", goal: Optimize = Optimize.RAM_LEAST, **options: Any
) -> Artifact:
    """The program of a graph."""
    config = CompilationConfig(targets="c", module_name=name, optimize=goal, **options)
    return microtir.build(IRModule(graph=graph), config)


def images_of(graph: Graph) -> dict[str, Array]:
    """Random values for a batch."""
    shape = graph.inputs[0].shape
    values = np.random.default_rng(7).integers(-128, 128, shape).astype(np.int8)
    return {graph.inputs[0].name: values}


def workspace(artifact: Artifact) -> int:
    """Bytes that the application provides."""
    memory = artifact.metadata.memory
    assert memory is not None and memory.verified
    return memory.workspace_size


@pytest.mark.parametrize("goal", [Optimize.RAM_LEAST, Optimize.SPEED])
def test_random_graphs(goal: Optimize, tmp_path: Path) -> None:
    """All outputs are right to the bit, in as much memory as one image takes."""
    graphs = [g for seed in seeds(0, 5) if (g := grown(seed)).nodes]
    artifacts = [built(g, f"net{n}", goal) for n, g in enumerate(graphs)]
    for graph, artifact, model in zip(
        graphs, artifacts, load_batch(artifacts, tmp_path, flags=STRICT), strict=True
    ):
        inputs = images_of(graph)
        expected = execute(graph, inputs)
        for name, got in model.run(inputs).items():
            np.testing.assert_array_equal(got, expected[name])
        assert artifact.metadata.images == IMAGES


@pytest.mark.parametrize("goal", [Optimize.RAM_LEAST, Optimize.SPEED])
def test_a_batch_takes_the_memory_of_one_image(goal: Optimize) -> None:
    """The work is that of all."""
    for seed in range(2):
        one, batch = (built(grown(seed, n), goal=goal) for n in (1, IMAGES))
        assert workspace(batch) == workspace(one)
        for alone, layer in zip(one.metadata.layers, batch.metadata.layers, strict=True):
            assert layer.macs == IMAGES * alone.macs
            assert (alone.choice is None) == (layer.choice is None)  # of what finishes a layer
            if layer.choice and alone.choice and layer.choice.kernel == alone.choice.kernel:
                assert layer.choice.instructions == IMAGES * alone.choice.instructions


def test_the_interface_has_the_whole_batch() -> None:
    """Its sizes and its text, and a loop around the calls; one image has none."""
    graph = grown(1)
    artifact = built(graph)
    shapes = {p.name: p.shape for p in artifact.metadata.ports}
    assert shapes == {t.name: t.shape for t in (*graph.inputs, *graph.outputs)}
    text = artifact.source("net.c")
    size = graph.inputs[0].type.bytes
    assert f"for (int32_t image = 0; image < {IMAGES}; image++) {{" in text
    assert f" + image * {size // IMAGES};" in text
    assert re.search(rf"_SIZE +{size} /\* bytes", artifact.source("net.h"))
    assert '"images"' in artifact.metadata.text
    single = built(grown(1, 1))
    assert "image * " not in single.source("net.c") and '"images"' not in single.metadata.text


@pytest.mark.parametrize(
    "options",
    [
        {"executor": "graph"},
        {"executor": Executor("aot", {"row-fed-inputs": True})},
        {"executor": Executor("aot", {"row-drained-outputs": True})},
        {"pass_config": {"memory.use_workspace_io": True}},
    ],
    ids=["table of calls", "rows in", "rows out", "tensors in the workspace"],
)
def test_what_needs_the_whole_batch_at_once(options: dict[str, Any]) -> None:
    """A table of calls has no loop over images, and rows and places are those of whole tensors."""
    artifact = built(grown(2), "net", Optimize.RAM_LEAST, **options)
    assert artifact.metadata.images == 1


def test_packed_calls_under_sanitizers() -> None:
    """Tensors of a whole batch are checked, and computed image by image."""
    graph, executor = grown(3), Executor("aot", {"interface-api": "packed"})
    artifact = built(graph, executor=executor)
    assert artifact.metadata.images == IMAGES
    inputs = images_of(graph)
    expected = execute(graph, inputs)
    for name, got in host.run_sanitized(artifact, inputs).items():
        np.testing.assert_array_equal(got, expected[name])


def test_layers_of_all_images_are_compared() -> None:
    """A layer that is wrong in one image alone is found."""
    artifact = built(grown(4))
    planned = artifact.module.require_program("test").graph
    inputs, exact = images_of(grown(4)), RelativeTolerance(0.0)
    model = host.load(artifact, debug=True, opt_level=0)
    assert first_wrong_layer(model, planned, SampleBatch((inputs,)), {0}, exact) is None
    layers = model.run_layers(inputs)[1]
    assert [len(a) % IMAGES for layer in layers for a in layer.outputs] == [0] * len(layers)
    (name, values) = next(iter(inputs.items()))
    changed = values.copy()
    changed[-1] = ~changed[-1]  # in the C, of the last image only
    outputs = model.run({name: changed})
    expected = execute(planned, {name: values})
    differs = [[(a != b).any() for a, b in zip(outputs[n], e, strict=True)]
               for n, e in expected.items()]  # fmt: skip
    assert all(not any(images[:-1]) for images in differs) and any(i[-1] for i in differs)
