"""A graph that is what is done with one of several images, run for all of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace

import numpy as np

from microtir.graph.ir import Array, Graph


def one_by_one(graph: Graph, inputs: Mapping[str, Array]) -> Iterator[dict[str, Array]]:
    """Yield the inputs of each image, as the graph takes them."""
    shapes = {tensor.name: tensor.shape for tensor in graph.inputs}
    images = {n: array.reshape(graph.images, *shapes[n]) for n, array in inputs.items()}
    for image in range(graph.images):
        yield {name: array[image] for name, array in images.items()}


def image_by_image(
    graph: Graph,
    inputs: Mapping[str, Array],
    run: Callable[[Graph, dict[str, Array]], dict[str, Array]],
) -> dict[str, Array]:
    """Return the outputs of all images, given the inputs of all and what runs a graph on one."""
    one = replace(graph, images=1, image_axes=())
    results = [run(one, image) for image in one_by_one(graph, inputs)]
    return {
        t.name: np.stack([r[t.name] for r in results]).reshape(graph.type_of_all(t).shape)
        for t in graph.outputs
    }
