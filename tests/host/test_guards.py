"""Guard zones: sanitizers see every access beside a buffer of the workspace."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest

import microtir
from microtir import host
from microtir.artifact import Artifact, SourceFile
from microtir.config import CompilationConfig, Optimize
from microtir.errors import RunError
from microtir.graph.ir import Graph
from tests.support.small_models import mixed_graph, module_of, reference_outputs, sample_inputs
from tests.support.streams import Garden


def guarded(
    graph: Graph, goal: Optimize, placement: str = "guarded", *, workspace_io: bool = False
) -> Artifact:
    """Return a program whose buffers have gaps between them."""
    options = {"memory.placement": placement, "memory.use_workspace_io": workspace_io}
    config = CompilationConfig(targets="c", optimize=goal, pass_config=options)
    return microtir.build(module_of(graph), config)


def test_buffers_do_not_touch() -> None:
    """Between any two buffers lie 64 bytes or more, whatever their lifetimes."""
    memory = guarded(mixed_graph(), Optimize.BALANCED).metadata.memory
    assert memory is not None and memory.verified
    placed = sorted((p.offset, p.size) for p in memory.placements)
    assert len(placed) > 2
    for (offset, size), (following, _) in pairwise(placed):
        assert following >= offset + size + 64


def overrun(artifact: Artifact) -> Artifact:
    """Return the same program with a layer that computes one element more than its buffers have."""
    (source,) = (file for file in artifact.sources if file.path == "default.c")
    before, name, body = source.text.partition("void default_layer2_softmax")
    assert name and "ch < 7;" in body
    wrong = SourceFile(source.path, before + name + body.replace("ch < 7;", "ch < 8;", 1))
    others = tuple(file for file in artifact.sources if file is not source)
    return replace(artifact, sources=(wrong, *others))


def test_an_overrun_is_seen_between_guards_only() -> None:
    """A layer that writes one element too many is silent in a plan that has no gap there."""
    graph = mixed_graph()
    inputs = sample_inputs(graph)
    expected = reference_outputs(graph, inputs)
    # With inputs and outputs in the workspace its buffers are not what lies last there.
    tight = guarded(graph, Optimize.BALANCED, "greedy", workspace_io=True)
    assert set(host.run_sanitized(overrun(tight), inputs)) == set(expected)
    loose = guarded(graph, Optimize.BALANCED, workspace_io=True)
    with pytest.raises(RunError, match="use-after-poison"):
        host.run_sanitized(overrun(loose), inputs)


def test_inputs_and_outputs_in_the_workspace_have_guards_too() -> None:
    """A layer that writes behind its buffer is seen where ports are buffers like all others."""
    graph = mixed_graph()
    inputs = sample_inputs(graph)
    artifact = guarded(graph, Optimize.BALANCED, workspace_io=True)
    outputs = host.run_sanitized(artifact, inputs)
    for name, array in reference_outputs(graph, inputs).items():
        np.testing.assert_array_equal(outputs[name], array)
    with pytest.raises(RunError, match="use-after-poison"):
        host.run_sanitized(overrun(artifact), inputs)


@pytest.mark.parametrize("placement", ["greedy", "guarded"])
def test_a_tensor_of_the_workspace_may_be_overwritten(placement: str) -> None:
    """Sanitized runs place inputs, and find outputs, where the header says."""
    graph = Garden(5).graph(6)
    inputs = sample_inputs(graph)
    artifact = guarded(graph, Optimize.RAM_LEAST, placement, workspace_io=True)
    outputs = host.run_sanitized(artifact, inputs)
    for name, array in reference_outputs(graph, inputs).items():
        np.testing.assert_array_equal(outputs[name], array)


@pytest.mark.parametrize("goal", [Optimize.RAM_LEAST, Optimize.BALANCED])
@pytest.mark.parametrize("seed", [3, 8, 21])
def test_random_graphs_stay_between_their_guards(seed: int, goal: Optimize) -> None:
    """Chains, residuals and streams of random operators touch nothing beside their buffers."""
    graph = Garden(seed).graph(8)
    inputs = sample_inputs(graph)
    outputs = host.run_sanitized(guarded(graph, goal), inputs)
    expected = reference_outputs(graph, inputs)
    assert expected
    for name, array in expected.items():
        np.testing.assert_array_equal(outputs[name], array)
