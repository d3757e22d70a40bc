"""The first graph pass that breaks a rule or changes an output is named."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
import pytest

import microtir
from microtir import CompilationConfig
from microtir.config import PassConfig
from microtir.dtype import DType
from microtir.errors import GraphError
from microtir.graph.ir import Graph
from microtir.graph.rewriting import Keeps, substitute, with_nodes
from microtir.graph.text import to_text
from microtir.operators.common.attributes import Activation
from microtir.operators.convolution.definition import Conv2D
from microtir.rewrite.checked import check_meaning, rewritten
from microtir.rewrite.optimise import GRAPH_PASSES
from tests.support.command import INT8
from tests.support.small_models import quantised_graph

REPLAY = PassConfig({"tir.replay_each_pass": True})
VERIFY = PassConfig({"tir.verify_each_pass": True})


@dataclass(frozen=True)
class ForgetTheActivation:
    """A pass that changes what the model computes."""

    name: ClassVar[str] = "forget_the_activation"

    def __call__(self, graph: Graph) -> Graph:
        """Convolutions do not clamp any more."""
        nodes = [
            replace(n, op=replace(n.op, activation=Activation.NONE)) if isinstance(n.op, Conv2D)
            else n for n in graph.nodes
        ]  # fmt: skip
        return replace(graph, nodes=tuple(nodes))


@dataclass(frozen=True)
class ForgetTheLastLayer:
    """A pass that breaks a rule."""

    name: ClassVar[str] = "forget_the_last_layer"

    def __call__(self, graph: Graph) -> Graph:
        """Nothing computes the output."""
        return replace(graph, nodes=graph.nodes[:-1])


def test_a_changed_output_names_the_pass() -> None:
    """Between passes that are right; without the option nobody notices."""
    passes = (GRAPH_PASSES[0], ForgetTheActivation(), *GRAPH_PASSES[1:])
    with pytest.raises(GraphError, match=r"'forget_the_activation' changed .*'scores': element"):
        rewritten(quantised_graph(), passes, REPLAY)
    rewritten(quantised_graph(), passes, PassConfig({}))


@pytest.mark.parametrize("options", [VERIFY, REPLAY])
def test_a_broken_rule_names_the_pass(options: PassConfig) -> None:
    """At once, and not at the end of all passes."""
    passes = (ForgetTheLastLayer(), *GRAPH_PASSES)
    with pytest.raises(GraphError, match="pass 'forget_the_last_layer' made"):
        rewritten(quantised_graph(), passes, options)
    with pytest.raises(GraphError) as caught:
        rewritten(quantised_graph(), passes, PassConfig({}))
    assert "forget_the_last_layer" not in str(caught.value)


def test_values_keep_to_declared_ranges() -> None:
    """What holds for the declared inputs only is no change."""
    graph = quantised_graph()
    (image,) = graph.inputs
    declared = replace(graph, input_ranges=((image, (-7, -7)),))
    weights = next(t for t in graph.nodes[0].inputs if t.name == "filters")
    assert weights.data is not None
    # The input is its zero point everywhere: weights do not matter.
    other = replace(weights, data=np.ascontiguousarray(weights.data[::-1]))
    first = graph.nodes[0]
    node = replace(first, inputs=tuple(other if t is weights else t for t in first.inputs))
    changed = replace(declared, nodes=(node, *graph.nodes[1:]))
    check_meaning(declared, changed, "reverse")
    with pytest.raises(GraphError, match="'reverse' changed"):
        check_meaning(graph, changed, "reverse")


def test_the_passes_of_the_compiler_change_nothing() -> None:
    """A real model, with every pass replayed, is the same program as without."""
    model = microtir.frontend.from_tflite(INT8)
    assert model.graph is not None
    config = CompilationConfig(targets="c", pass_config={"tir.replay_each_pass": True})
    found = [rewritten(model.graph, GRAPH_PASSES, o) for o in (config.pass_config, PassConfig({}))]
    assert to_text(found[0]) == to_text(found[1])


@dataclass(frozen=True)
class DoubleTheWeights:
    """A pass that says which bits may change, and changes more."""

    keeps: Keeps
    name: ClassVar[str] = "double_the_weights"

    def __call__(self, graph: Graph) -> Graph:
        """The first convolution gives other numbers."""
        weights = next(n.inputs[1] for n in graph.nodes if isinstance(n.op, Conv2D))
        assert weights.data is not None
        other = replace(weights, data=np.ascontiguousarray(weights.data // 2))
        return with_nodes(graph, [substitute(node, {weights: other}) for node in graph.nodes])


@pytest.mark.parametrize("kept", [Keeps.BITS, Keeps.SUMS, Keeps.NUMBERS])
def test_what_is_kept_has_a_limit(kept: Keeps) -> None:
    """A pass that may round may not compute another number; one that keeps nothing is verified."""
    with pytest.raises(GraphError, match="'double_the_weights' changed the output"):
        rewritten(quantised_graph(), (DoubleTheWeights(kept),), REPLAY)
    rewritten(quantised_graph(), (DoubleTheWeights(Keeps.NOTHING),), REPLAY)


def test_steps_are_numbers() -> None:
    """A step of integers is what NUMBERS leaves open, and SUMS does not."""
    graph = quantised_graph()
    last = graph.nodes[-1]
    assert last.output.dtype is DType.INT8
    shifted = replace(last.output.type.quant, zero_points=(last.output.type.quant.zero_point + 1,))
    other = replace(last.output, type=replace(last.output.type, quantization=shifted))
    after = replace(
        graph,
        nodes=(*graph.nodes[:-1], substitute(last, {last.output: other})),
        outputs=(other,),
    )
    check_meaning(graph, after, "step", Keeps.NUMBERS)
    for kept in (Keeps.SUMS, Keeps.BITS):
        with pytest.raises(GraphError, match="'step' changed the output"):
            check_meaning(graph, after, "step", kept)
