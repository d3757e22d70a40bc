"""Notes the ranges that the user declares of the inputs in the graph, for analysis."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from microtir.config.input_ranges import InputRange
from microtir.dtype import DType
from microtir.errors import ConfigError, nearest
from microtir.graph.ir import Graph
from microtir.graph.rewriting import Rewrite


@dataclass(frozen=True, slots=True)
class DeclareRanges(Rewrite):
    """Declares ranges of int8 inputs.

    Args:
        ranges: by name of the input; one without a name is for each that has none of its own.

    Raises:
        ConfigError: a name is not that of an int8 input.
    """

    ranges: Sequence[InputRange]

    def __call__(self, graph: Graph) -> Graph:
        inputs = {t.name: t for t in graph.arguments if t.dtype is DType.INT8}
        bounds = {t: (r.low, r.high) for r in self.ranges if not r.name for t in inputs.values()}
        for declared in self.ranges:
            name = graph.port_name(declared.name)
            if name and name not in inputs:
                hint = nearest(name, tuple(inputs))
                raise ConfigError(
                    f"the model has no int8 input '{name}'{f': {hint}' if hint else ''}",
                    where="pass_config.graph.input_ranges",
                    legal=", ".join(inputs) or "none: no input is int8",
                )
            if name:
                bounds[inputs[name]] = (declared.low, declared.high)
        return replace(graph, input_ranges=tuple(bounds.items())) if bounds else graph
