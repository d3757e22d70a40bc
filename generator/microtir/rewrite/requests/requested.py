"""The graph that a configuration asks for: with more around it, one step of it, or streamed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType

from microtir.config import Compatibility, CompilationConfig, Feature, Measure, Numerics, Target
from microtir.config.processing import appended, prepended
from microtir.config.renames import renames
from microtir.config.states import states
from microtir.config.stream_axis import stream_axis
from microtir.graph.ir import Graph
from microtir.graph.rewriting import GraphPass
from microtir.rewrite.checked import rewritten
from microtir.rewrite.extra_passes import GraphFunction
from microtir.rewrite.facts.declared_ranges import DeclareRanges
from microtir.rewrite.facts.macs import macs
from microtir.rewrite.optimise import (
    GRAPH_PASSES,
    FoldConstants,
    FuseLstmLoops,
    MatmulToDense,
    RemoveDeadNodes,
    RemoveIdentities,
)
from microtir.rewrite.requests.block_activations import ChooseActivations
from microtir.rewrite.requests.bound_states import BindStates
from microtir.rewrite.requests.more_outputs import AddOutputs
from microtir.rewrite.requests.numerics import ChooseNumerics, made_for
from microtir.rewrite.requests.port_names import RenamePorts
from microtir.rewrite.requests.processing import Append, Prepend
from microtir.rewrite.requests.round_caches import RoundCaches
from microtir.rewrite.requests.stepwise import OneStep
from microtir.rewrite.requests.streaming import CheckPush, Push, check_push
from microtir.rewrite.requests.unlike_scales import StoredAsIs, stored_as_is
from microtir.support.names import UNNAMED, module_name_from

# What is followed step by step are layers: loops over time are recurrent ones by then.
_LAYERS = (FoldConstants(), RemoveIdentities(), MatmulToDense(), FuseLstmLoops(), RemoveDeadNodes())


def completed(config: CompilationConfig, graph: Graph | None) -> CompilationConfig:
    """Return a configuration that says what was left to the model: numerics, measure, and a name.

    Args:
        config: as it was given.
        graph: of the model; None for functions.
    """
    if config.numerics is Numerics.MODEL:
        config = config.with_(numerics=Numerics.TFLM if graph is None else made_for(graph))
    if config.measure is Measure.MODEL:
        config = config.with_(measure=_measure_of(graph, config.primary_target()))
    if config.module_name:
        return config
    return config.with_(module_name=_name_of(graph, config))


def _measure_of(graph: Graph | None, target: Target) -> Measure:
    """Return what the kernels of a model are priced in.

    A fused multiply-add waits for longer than a product and a sum: with an FPU, cycles decide.
    """
    if graph is None or not target.has(Feature.FPU) or target.has(Feature.BIT64):
        return Measure.INSTRUCTIONS
    counts = [(macs(node), node.outputs[0].dtype.is_float) for node in graph.nodes]
    in_floats = sum(count for count, is_float in counts if is_float)
    is_in_floats = 2 * in_floats > sum(count for count, _ in counts)
    return Measure.CYCLES if is_in_floats else Measure.INSTRUCTIONS


def _name_of(graph: Graph | None, config: CompilationConfig) -> str:
    """Return the name of a module that was given none; microTVM's applications know that one."""
    if graph is None or not graph.source_sha256:
        return UNNAMED
    if config.compatibility is not Compatibility.NONE:
        return UNNAMED
    return module_name_from(graph.name)


def requested_graph(
    graph: Graph,
    config: CompilationConfig,
    after: Mapping[str, Sequence[GraphFunction]] = MappingProxyType({}),
) -> Graph:
    """Return a graph as a configuration asks for it, before anything else is done to it.

    Args:
        graph: as a frontend made it.
        config: what it is compiled for.
        after: functions of the user, by the name of the pass behind which they run.

    Raises:
        ConfigError: a tensor is not there or cannot be kept, or the model cannot be computed step
            by step, or push by push.
    """
    options = config.pass_config
    graph = rewritten(graph, request_passes_of(config), options, after)
    if graph.stream is not None and options.replay_each_pass:
        check_push(graph)
    return graph


def request_passes_of(config: CompilationConfig) -> tuple[GraphPass, ...]:
    """Return the passes that make the graph which a configuration asks for, in order."""
    always = (
        BindStates(states(config.states)),
        AddOutputs(config.pass_config.more_outputs),
        RenamePorts(
            renames(config.rename_input),
            renames(config.rename_output),
            by_tensors=config.compatibility is Compatibility.MICROTVM,
        ),
        Prepend(prepended(config.prepend)),
        Append(appended(config.append)),
        ChooseNumerics(config.numerics),
        ChooseActivations(config.pass_config.block_activations),
        RoundCaches(config.pass_config.attention_cache),
    )
    axis, ranges = stream_axis(config.stream_axis), DeclareRanges(config.pass_config.input_ranges)
    if config.stateful:
        return (*always, *_LAYERS, OneStep(), ranges)
    if axis is not None:
        asked = (axis.name, axis.axis, config.stream_hop)
        # What is followed along time are layers as they are compiled: padding is part of
        # convolutions.  What a push is made of is rewritten once more, since it is another graph.
        return (*always, CheckPush(*asked), *GRAPH_PASSES, Push(*asked), ranges)
    return (*always, ranges)


def changed_values(graph: Graph, config: CompilationConfig) -> tuple[StoredAsIs, ...]:
    """Return the nodes that change real values because a reference leaves stored ones as they are.

    Args:
        graph: as a frontend made it.
        config: what it is compiled for.
    """
    return stored_as_is(ChooseNumerics(completed(config, graph).numerics)(graph))
