"""Inputs and outputs of a model as states: what an output was is the input of the next run.

Formats without variables, ONNX among them, give what a model keeps as an input and an output, and
leave it to a loop outside of the model to hand one on as the other.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from microtir.config.states import StatePair
from microtir.errors import ConfigError, nearest
from microtir.graph.ir import Array, Graph, Node, SourceLocation, State, Tensor, TensorType
from microtir.graph.rewriting import Keeps, Rewrite
from microtir.operators.state.definition import Assign

_WHERE = "states"


@dataclass(frozen=True, slots=True)
class BindStates(Rewrite):
    """Keeps inputs from run to run: at first zeros, then what outputs were.

    Args:
        pairs: of names; callers give these inputs no more, and take these outputs no more.

    Raises:
        ConfigError: there is no such input or output, the two differ, or nothing else is left.
    """

    pairs: Sequence[StatePair]
    keeps = Keeps.NOTHING

    def __call__(self, graph: Graph) -> Graph:
        if not self.pairs:
            return graph
        bound = _bound(graph, self.pairs)
        chosen = {output for _, output in bound}
        if chosen.issuperset(graph.results):
            raise _refused(
                "all outputs are states, so no result is left", "an output that is not a state"
            )
        states, assigns, producers = [], [], graph.producers()
        for before, value in bound:
            after = Tensor(f"{value.name}_kept", before.type)
            states.append(State(before, after, _zeros(before.type)))
            source = SourceLocation(producers[value].source.file, -1, "STATE")
            assigns.append(Node(Assign(), (value,), (after,), f"{before.name}_keeps", source))
        return replace(
            graph,
            outputs=(
                *(tensor for tensor in graph.outputs if tensor not in chosen),
                *(state.after for state in states),
            ),
            nodes=(*graph.nodes, *assigns),
            states=(*graph.states, *states),
            input_ranges=tuple(
                (tensor, bounds)
                for tensor, bounds in graph.input_ranges
                if all(tensor is not before for before, _ in bound)
            ),
        )


def _bound(graph: Graph, pairs: Sequence[StatePair]) -> list[tuple[Tensor, Tensor]]:
    """Return the inputs that are kept, each with its output."""
    inputs = {tensor.name: tensor for tensor in graph.arguments}
    outputs = {tensor.name: tensor for tensor in graph.results}
    own, aliases = tuple(inputs), tuple(a for name, a in graph.aliases if name in inputs)
    named = [
        (pair, tuple(map(graph.port_name, bound)))
        for pair in pairs
        for bound in pair.bound(own) or pair.bound(aliases)
    ]
    for pair in pairs:
        if all(pair is not known for known, _ in named):
            raise _unknown("input", pair.input, inputs)
    bound: list[tuple[Tensor, Tensor]] = []
    for _, (name, output) in named:
        if output not in outputs:
            raise _unknown("output", output, outputs)
        before, value = inputs[name], outputs[output]
        if before.type != value.type:
            raise _refused(
                f"'{name}' is {_title(before.type)}, but '{output}' is {_title(value.type)}",
                "an input and an output of the same shape and type; a cache that grows with each "
                "run is not supported",
            )
        if any(before is known or value is other for known, other in bound):
            raise _refused(f"'{name}' or '{output}' is in several pairs", "one pair for each")
        bound.append((before, value))
    return bound


def _unknown(what: str, name: str, known: Mapping[str, Tensor]) -> ConfigError:
    hint = nearest(name, list(known))
    return _refused(
        f"no {what} is called '{name}'{f': {hint}' if hint else ''}", ", ".join(known) or "none"
    )


def _refused(why: str, legal: str) -> ConfigError:
    return ConfigError(why, where=_WHERE, legal=legal)


def _title(type_: TensorType) -> str:
    return f"{type_.dtype.value} {type_.shape}"


def _zeros(type_: TensorType) -> Array:
    """Return the real number 0 in every element."""
    zero = 0 if type_.quantization is None else type_.quant.zero_point
    return np.full(type_.shape, zero, type_.dtype.value)
