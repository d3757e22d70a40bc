"""A graph that is what is done with one of several images, run for all of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace

import numpy as np

from microtir.graph.ir import Array, Graph


def one_by_one(graph: Graph, inputs: Mapping[str, Array]) -> Iterator[dict[str, Array]]:
    """Yield the inputs of each image, as the graph takes them."""
    extents = {tensor.name: tensor.shape[0] for tensor in graph.inputs if tensor.shape}
    for image in range(graph.images):
        yield {
            name: array[image * extents[name] : (image + 1) * extents[name]]
            for name, array in inputs.items()
        }


def image_by_image(
    graph: Graph,
    inputs: Mapping[str, Array],
    run: Callable[[Graph, dict[str, Array]], dict[str, Array]],
) -> dict[str, Array]:
    """Return the outputs of all images, given the inputs of all and what runs a graph on one."""
    one = replace(graph, images=1)
    results = [run(one, given) for given in one_by_one(graph, inputs)]
    return {t.name: np.concatenate([result[t.name] for result in results]) for t in graph.outputs}
