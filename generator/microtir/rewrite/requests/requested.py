"""The graph that a configuration asks for: with more around it, one step of it, or streamed."""

from __future__ import annotations

from microtir.config import Compatibility, CompilationConfig, Numerics
from microtir.config.processing import appended, prepended
from microtir.config.states import states
from microtir.config.stream_axis import stream_axis
from microtir.graph.ir import Graph
from microtir.rewrite.checked import rewritten
from microtir.rewrite.optimise import (
    GRAPH_PASSES,
    FoldConstants,
    FuseLstmLoops,
    MatmulToDense,
    RemoveDeadNodes,
    RemoveIdentities,
)
from microtir.rewrite.requests.bound_states import with_bound_states
from microtir.rewrite.requests.more_outputs import with_more_outputs
from microtir.rewrite.requests.numerics import rescales_as_onnx, with_numerics
from microtir.rewrite.requests.processing import with_appended, with_prepended
from microtir.rewrite.requests.stepwise import one_step
from microtir.rewrite.requests.streaming import check_push, refuse_stream, streamed
from microtir.rewrite.requests.unlike_scales import StoredAsIs, stored_as_is
from microtir.support.names import UNNAMED, module_name_from

# What is followed step by step are layers: loops over time are recurrent ones by then.
_LAYERS = (FoldConstants(), RemoveIdentities(), MatmulToDense(), FuseLstmLoops(), RemoveDeadNodes())


def completed(config: CompilationConfig, graph: Graph | None) -> CompilationConfig:
    """Return a configuration that says what was left to the model: the numerics, and a name.

    Args:
        config: as it was given.
        graph: of the model; None for functions.
    """
    if config.numerics is Numerics.MODEL:
        is_onnx = graph is not None and rescales_as_onnx(graph)
        config = config.with_(numerics=Numerics.ONNXRUNTIME if is_onnx else Numerics.TFLM)
    if config.module_name:
        return config
    return config.with_(module_name=_name_of(graph, config))


def _name_of(graph: Graph | None, config: CompilationConfig) -> str:
    """Return the name of a module that was given none; microTVM's applications know that one."""
    if graph is None or not graph.source_sha256:
        return UNNAMED
    if config.compatibility is not Compatibility.NONE:
        return UNNAMED
    return module_name_from(graph.name)


def requested_graph(graph: Graph, config: CompilationConfig) -> Graph:
    """Return a graph as a configuration asks for it, before anything else is done to it.

    Args:
        graph: as a frontend made it.
        config: what it is compiled for.

    Raises:
        ConfigError: a tensor is not there or cannot be kept, or the model cannot be computed step
            by step, or push by push.
    """
    if graph.stream is not None:
        return graph  # of a module that was lowered
    graph = with_bound_states(graph, states(config.states))
    graph = with_more_outputs(graph, config.pass_config.more_outputs)
    graph = with_prepended(graph, prepended(config.prepend))
    graph = with_appended(graph, appended(config.append))
    graph = with_numerics(graph, config.numerics)
    if config.stateful:
        return one_step(rewritten(graph, _LAYERS, config.pass_config))
    return _streamed(graph, config)


def changed_values(graph: Graph, config: CompilationConfig) -> tuple[StoredAsIs, ...]:
    """Return the nodes that change real values because a reference leaves stored ones as they are.

    Args:
        graph: as a frontend made it.
        config: what it is compiled for.
    """
    return stored_as_is(with_numerics(graph, completed(config, graph).numerics))


def _streamed(graph: Graph, config: CompilationConfig) -> Graph:
    """Return the graph of a push, if a stream is asked for."""
    asked, options = stream_axis(config.stream_axis), config.pass_config
    if asked is None:
        return graph
    refuse_stream(graph, asked.name, asked.axis, config.stream_hop)
    # What is followed along time are layers as they are compiled: padding is part of convolutions.
    whole = rewritten(graph, GRAPH_PASSES, options)
    pushed = streamed(whole, asked.name, asked.axis, config.stream_hop)
    if options.replay_each_pass:
        check_push(pushed)
    return pushed
