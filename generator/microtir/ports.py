"""Names the ports of a model: what its inputs and outputs are called in C and where they lie."""

from __future__ import annotations

from microtir.config.compilation import CompilationConfig
from microtir.config.names import c_names
from microtir.graph.ir import Graph
from microtir.graph.more_outputs import with_more_outputs
from microtir.ir_module import IRModule, Port, PortKind
from microtir.memory_plan import MemoryPlan


def ports_of(graph: Graph, config: CompilationConfig, plan: MemoryPlan) -> tuple[Port, ...]:
    """Return inputs, then outputs.

    Args:
        graph: with its inputs and outputs.
        config: says who has memory for them, and whether they change hands row by row.
        plan: whose first placements are those of ports in the workspace.
    """
    inputs, outputs, executor = graph.inputs, graph.outputs, config.executor
    tensors = (*inputs, *outputs)
    is_placed = config.pass_config.use_workspace_io
    places = plan.placements[: len(tensors)] if is_placed else (None,) * len(tensors)
    kinds = [PortKind.INPUT] * len(inputs) + [PortKind.OUTPUT] * len(outputs)
    by_rows = [executor.row_fed_inputs] * len(inputs)
    by_rows += [executor.row_drained_outputs] * len(outputs)
    # One struct holds the inputs and another the outputs, yet the macros of both share a prefix.
    names = c_names([t.name for t in tensors])
    return tuple(
        Port(
            *(kind, t.name, c_name, t.type, place.offset if place else None),
            t.type.row_bytes if is_by_rows else None,
            place.pool if place else 0,
        )
        for kind, t, c_name, place, is_by_rows in zip(
            kinds, tensors, names, places, by_rows, strict=True
        )
    )


def io_bytes(module: IRModule) -> int:
    """Return bytes of inputs and outputs outside of the workspace, which no plan changes."""
    config, graph = module.require_config("io_bytes"), module.graph
    assert graph is not None, "functions have no inputs and outputs of a model"
    if config.pass_config.use_workspace_io:
        return 0
    graph = with_more_outputs(graph, config.pass_config.more_outputs)
    executor = config.executor
    sides = (
        (graph.inputs, executor.row_fed_inputs),
        (graph.outputs, executor.row_drained_outputs),
    )
    return sum(t.type.bytes for tensors, by_rows in sides for t in tensors if not by_rows)
