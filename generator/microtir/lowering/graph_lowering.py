"""Rewrites the graph of a model before it is planned."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

from microtir.config import CompilationConfig, Measure, Optimize
from microtir.errors import Fix, UnsupportedModelError
from microtir.external import Library, Partition, library_of
from microtir.external.ethos_u import DriverCalls
from microtir.graph.ir import Graph, Node
from microtir.graph.rewriting import GraphPass
from microtir.operators.control.definition import Control
from microtir.rewrite import verify as graph_verify
from microtir.rewrite.checked import changed_by_user, rewritten
from microtir.rewrite.extra_passes import ExtraPasses
from microtir.rewrite.offload.row_ports import RowPorts
from microtir.rewrite.optimise import FuseChains, graph_passes_of
from microtir.rewrite.optimise.split_images import node_that_mixes
from microtir.rewrite.requests.requested import request_passes_of
from microtir.rewrite.variants import VARIANT_PASSES

CostOf: TypeAlias = Callable[[Node, Measure], int]
"""Estimates what the cheapest kernel of a node takes, in a measure."""


def optimised_graph(graph: Graph, config: CompilationConfig, extra: ExtraPasses) -> Graph:
    """Return a graph that computes the same with less.

    Args:
        graph: that the configuration asks for.
        config: what is compiled for.
        extra: passes of the user.

    Raises:
        GraphError: a graph breaks a rule.
        UnsupportedModelError: the executor has no place for what the model does.
    """
    _refuse_stream(graph, config)
    graph = _rewritten(graph, config, extra)
    _refuse_control(graph, config)
    _refuse_mixed(graph, config)
    return graph


def offloaded_graph(
    graph: Graph,
    config: CompilationConfig,
    extra: ExtraPasses,
    libraries: Sequence[Library],
    cost_of: CostOf,
) -> Graph:
    """Return the graph that is planned: work of others is given to them.

    Args:
        graph: as the optimising passes leave it.
        config: what is compiled for.
        extra: passes of the user.
        libraries: third-party kernels beside those that the configuration names.
        cost_of: what a layer costs without a library, in a measure.

    Raises:
        GraphError: a graph breaks a rule.
        MicrotirError: any diagnostic of a library.
    """
    passes = offload_passes_of(config, libraries, cost_of)
    return rewritten(graph, passes, config.pass_config, extra.after)


def graph_pass_names(config: CompilationConfig) -> tuple[str, ...]:
    """Return the names of all passes over the graph that `lower` runs, in order."""
    passes = (
        *request_passes_of(config), *graph_passes_of(config), *offload_passes_of(config),
        *VARIANT_PASSES,
    )  # fmt: skip
    return tuple(graph_pass.name for graph_pass in passes)


def offload_passes_of(
    config: CompilationConfig,
    libraries: Sequence[Library] = (),
    cost_of: CostOf = lambda _node, _measure: 0,
) -> tuple[GraphPass, ...]:
    """Return the passes that give work to others, in order.

    Libraries, an NPU, then what is left is computed in fewer loops, and the caller of rows.

    Args:
        config: what is compiled for.
        libraries: third-party kernels beside those that the configuration names.
        cost_of: what a layer costs without a library, in a measure.
    """
    named = [(library_of(external), external) for external in config.external]
    every = (*named, *((library, None) for library in libraries))
    executor, goal = config.executor, config.optimize
    counts_memory = goal is not Optimize.SPEED or config.has_limits()

    def own_instructions(node: Node) -> int:
        # Libraries state instructions, whatever the plan is decided by.
        return cost_of(node, Measure.INSTRUCTIONS)

    def own_cost(node: Node) -> int:
        return cost_of(node, config.measure)

    return (
        Partition(every, config.primary_target(), own_instructions, config.module_name),
        DriverCalls(config),
        FuseChains(own_cost, goal is not Optimize.FLASH, counts_memory),
        RowPorts(executor.row_fed_inputs, executor.row_drained_outputs),
    )


def _refuse_control(graph: Graph, config: CompilationConfig) -> None:
    """Refuse what runs some operators several times, or not at all, where each is a node once."""
    node = next((node for node in graph.nodes if isinstance(node.op, Control)), None)
    if node is not None and config.is_graph():
        raise UnsupportedModelError(
            "the graph executor runs each operator once, but the model has a condition, or a loop "
            "that cannot be unrolled",
            where=str(node.source),
            legal="executor 'aot'",
            fix=Fix("use executor='aot'", "compile with --executor aot"),
        )


def _refuse_mixed(graph: Graph, config: CompilationConfig) -> None:
    """Refuse to compute some entries of a batch where they cannot be told apart."""
    if config.executor.batch_count and graph.images == 1:
        node = node_that_mixes(graph)
        reason = (
            "there is one entry, inputs have different numbers of entries, or the model has a state"
            if node is None
            else f"'{node.op.name}' computes an entry of its result from several entries, or does"
            " not distinguish them"
        )
        raise UnsupportedModelError(
            f"the entries of the outermost dimension cannot be computed one by one: {reason}",
            where=f"{graph.name if node is None else node.source}, batch-count",
            legal="a dimension that is outermost in all inputs and outputs, after extents of 1, "
            "along which every operator computes each entry separately",
            fix=Fix(
                "set the dimension to the extent that you need, and leave 'batch-count' out",
                "leave batch-count out, and pass one extent, not a range, to --dim",
            ),
        )


def _refuse_stream(graph: Graph, config: CompilationConfig) -> None:
    """Refuse a table of calls where states change places from run to run."""
    if graph.stream is not None and config.is_graph():
        raise UnsupportedModelError(
            "the graph executor has a fixed address for each state, but the states of a streamed "
            "model move from run to run",
            where="stream_axis",
            legal="executor 'aot'",
            fix=Fix("use executor='aot'", "compile with --executor aot"),
        )


def _rewritten(graph: Graph, config: CompilationConfig, extra: ExtraPasses) -> Graph:
    graph_verify.verify(graph)
    graph = changed_by_user(graph, extra.graph_first, "passes.graph_first", has_bounds=False)
    graph = rewritten(graph, graph_passes_of(config), config.pass_config, extra.after)
    return changed_by_user(graph, extra.graph_last, "passes.graph_last", has_bounds=True)
