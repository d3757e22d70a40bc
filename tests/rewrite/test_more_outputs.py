"""Tensors inside a model as outputs: what computes them is what computed them before."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import microtir
from microtir import CompilationConfig, host
from microtir.errors import ConfigError
from microtir.rewrite.reference import execute
from microtir.rewrite.requests.more_outputs import AddOutputs
from tests.support.small_models import (
    module_of,
    quantised_graph,
    reference_outputs,
    sample_inputs,
    tiny_graph,
)

DIGITS = Path(__file__).parents[2] / "examples" / "digits" / "digits_int8.tflite"
BASE = CompilationConfig(targets="c")


def with_outputs(names: str, **fields: object) -> CompilationConfig:
    """A configuration with more outputs."""
    return BASE.with_(pass_config={"graph.more_outputs": names}, **fields)


@pytest.mark.tools
@pytest.mark.parametrize("optimize", ["speed", "ram"])
@pytest.mark.parametrize("names", ["depthwise2", "conv1,flatten,logits", "max_pool, average_pool"])
def test_values_are_those_of_the_reference(optimize: str, names: str) -> None:
    """Whole and streamed layers, views, several at once: bit for bit, the model's outputs first."""
    module = microtir.frontend.from_tflite(DIGITS)
    artifact = microtir.build(module, with_outputs(names, optimize=optimize))
    graph = artifact.module.graph
    assert graph is not None and module.graph is not None
    wanted = [name.strip() for name in names.split(",")]
    assert [t.name for t in graph.outputs] == [module.graph.outputs[0].name, *wanted]
    (port,) = graph.inputs
    image = np.random.default_rng(3).integers(-128, 128, port.shape).astype(np.int8)
    expected = execute(graph, {port.name: image})
    found = host.load(artifact).run({port.name: image})
    assert list(found) == list(expected)
    for name, values in expected.items():
        np.testing.assert_array_equal(found[name], values)


def test_the_model_computes_what_it_did() -> None:
    """Its own outputs do not change, nor does a model without the option."""
    model, inputs = quantised_graph(), sample_inputs(quantised_graph())
    inner = next(t.name for n in model.nodes for t in n.outputs if t not in model.outputs)
    more = reference_outputs(AddOutputs([inner])(model), inputs)
    for name, values in reference_outputs(model, inputs).items():
        np.testing.assert_array_equal(more[name], values)
    assert inner in more
    assert AddOutputs([])(model) is model


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("b", "no tensor inside the model is called 'b'"),
        ("y", "no tensor inside the model is called 'y'"),  # an output already
        ("x", "no tensor inside the model is called 'x'"),
        ("weights", "no tensor inside the model is called 'weights'"),
    ],
)
def test_wrong_names(name: str, text: str) -> None:
    """Inputs, constants and outputs are not inside; the tensors that are get listed."""
    with pytest.raises(ConfigError, match=text) as caught:
        microtir.build(module_of(tiny_graph()), with_outputs(name))
    assert caught.value.legal == "a"
    assert caught.value.where == "pass_config.graph.more_outputs"


@pytest.mark.parametrize("text", [",", "a,,b", "a, a"])
def test_wrong_lists(text: str) -> None:
    """The configuration refuses them by the name of the option."""
    with pytest.raises(ConfigError, match="more_outputs"):
        with_outputs(text)
