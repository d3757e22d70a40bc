"""Names the ports of a model: what its inputs and outputs are called in C and where they lie."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from microtir.config.compilation import CompilationConfig
from microtir.dtype import DType
from microtir.errors import ConfigError
from microtir.graph.ir import Graph, State, TensorType
from microtir.lowering.input_guards import seen_range
from microtir.module.ir_module import Port, PortKind, RowsInUse, StatePort, StreamInfo
from microtir.support.names import c_names
from microtir.tir.ir import Buffer, PrimFunc
from microtir.tir.memory_plan import TURN_BYTES, KeptBlock, MemoryPlan, StateLayout


def ports_of(graph: Graph, config: CompilationConfig, plan: MemoryPlan) -> tuple[Port, ...]:
    """Return inputs, then outputs; states are neither.

    Args:
        graph: with its inputs and outputs.
        config: says who has memory for them, and whether they change hands row by row.
        plan: whose first placements are those of ports in the workspace.
    """
    inputs, outputs, executor = graph.arguments, graph.results, config.executor
    tensors = (*inputs, *outputs)
    is_placed = config.pass_config.use_workspace_io
    places = plan.placements[: len(tensors)] if is_placed else (None,) * len(tensors)
    kinds = [PortKind.INPUT] * len(inputs) + [PortKind.OUTPUT] * len(outputs)
    by_rows = [executor.row_fed_inputs] * len(inputs)
    by_rows += [executor.row_drained_outputs] * len(outputs)
    # One struct holds the inputs and another the outputs, yet the macros of both share a prefix.
    names = c_names([t.name for t in tensors])
    in_c = dict(zip((t.name for t in outputs), names[len(inputs) :], strict=True))
    in_use = {x.name: RowsInUse(x.axis, in_c[x.count]) for x in graph.counted if x.count in in_c}
    names_of_values = {x.name: x.names for x in graph.named}
    return tuple(
        Port(
            *(kind, t.name, c_name, graph.type_of_all(t), place.offset if place else None),
            t.type.row_bytes if is_by_rows else None,
            place.pool if place else 0,
            in_use=in_use.get(t.name) if kind is PortKind.OUTPUT else None,
            names=names_of_values.get(t.name, ()) if kind is PortKind.OUTPUT else (),
            aliases=graph.aliases_of(t),
        )
        for kind, t, c_name, place, is_by_rows in zip(
            kinds, tensors, names, places, by_rows, strict=True
        )
    )


def guarded(
    ports: Sequence[Port], original: Graph, graph: Graph, config: CompilationConfig
) -> tuple[Port, ...]:
    """Return the ports with what a run counts of the inputs, where the configuration asks for it.

    Args:
        ports: of a model.
        original: the graph as it was read, where QUANTIZE tells of floats.
        graph: what it has become, which notes the ranges that the user declared.
        config: says whether anything is counted.

    Raises:
        ConfigError: it asks for counts, and no input tells what calibration saw.
    """
    if not config.executor.guard_inputs:
        return tuple(ports)
    tensors = {t.name: t for t in original.arguments}
    declared = {t.name: range_ for t, range_ in graph.input_ranges}
    known = {t.name: seen_range(original, t, declared.get(t.name)) for t in tensors.values()}
    if not any(known.values()):
        names = ", ".join(f"'{name}' ({t.dtype.value})" for name, t in tensors.items())
        raise ConfigError(
            "guard-inputs is set, but no input has a calibrated range: "
            f"{names or 'the model has no inputs'}",
            where="executor.guard-inputs",
            legal="a model with a quantised input, or with a float input that only QUANTIZE reads",
            fix="quantise the model, or leave guard-inputs out",
        )
    return tuple(
        replace(port, seen=known[port.name]) if port.kind is PortKind.INPUT else port
        for port in ports
    )


def states_of(graph: Graph, main: PrimFunc) -> tuple[StatePort, ...]:
    """Return what a model keeps from one run to the next.

    Args:
        graph: with its states.
        main: placed; its last parameters are the memory of each.
    """
    first = len(main.params) - len(graph.states)
    blocks = [p for p in main.params[first:] if isinstance(p, Buffer)]
    *names, counter = c_names([*(state.name for state in graph.states), "turn"], ["identity"])
    ports = [
        _state_port(state, name, block.alignment)
        for state, name, block in zip(graph.states, names, blocks, strict=True)
    ]
    if any(state.turns > 1 for state in graph.states):
        first_turn = np.zeros(1, np.uint32)
        type_ = TensorType((1,), DType.UINT32)
        ports.append(StatePort("turn", counter, type_, first_turn, TURN_BYTES, is_counter=True))
    return tuple(ports)


def _state_port(state: State, name: str, alignment: int) -> StatePort:
    """Return a state as a member of the struct; of several values, a line for each, aligned."""
    if state.turns == 1:
        return StatePort(state.name, name, state.type, state.initial, alignment)
    block = KeptBlock(alignment, state.type.bytes, state.turns)
    shape = state.turns, block.stride // state.type.dtype.bytes
    initial = np.tile(np.resize(state.initial, shape[1]), (state.turns, 1))
    type_ = replace(state.type, shape=shape)
    return StatePort(state.name, name, type_, initial, alignment, state.turns)


def stream_of(graph: Graph) -> StreamInfo | None:
    """Return what a run is given of a model that is streamed; None for another one."""
    stream = graph.stream
    if stream is None:
        return None
    window = stream.input.shape[stream.axis]
    return StreamInfo(stream.input.name, stream.axis, stream.hop, window)


def state_bytes(graph: Graph) -> int:
    """Return the bytes of what a model keeps from one run to the next, if no layer aligns it."""
    states = [(state.type, state.turns) for state in graph.states]
    blocks = [KeptBlock(type_.dtype.bytes, type_.bytes, turns) for type_, turns in states]
    return StateLayout.of_blocks(blocks).size


def io_bytes(graph: Graph, config: CompilationConfig) -> int:
    """Return bytes of inputs and outputs outside of the workspace, which no plan changes.

    Args:
        graph: that the configuration asks for.
        config: says which of them lie there.
    """
    if config.pass_config.use_workspace_io:
        return 0
    executor = config.executor
    sides = (
        (graph.arguments, executor.row_fed_inputs),
        (graph.results, executor.row_drained_outputs),
    )
    return sum(t.type.bytes for tensors, by_rows in sides for t in tensors if not by_rows)
