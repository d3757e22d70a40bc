"""Tensors inside a model as outputs of it: an early exit, or something to look at."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from microtir.errors import ConfigError, nearest
from microtir.graph.ir import Graph
from microtir.graph.rewriting import Rewrite


@dataclass(frozen=True, slots=True)
class AddOutputs(Rewrite):
    """Adds outputs behind the graph's own; what computes them is as it was.

    Args:
        names: of tensors in the model file.

    Raises:
        ConfigError: no operator computes a tensor of this name, several do, or it is an output.
    """

    names: Sequence[str]

    def __call__(self, graph: Graph) -> Graph:
        computed = [t for node in graph.nodes for t in node.outputs if t not in graph.outputs]
        matches = [[t for t in computed if t.name == name] for name in self.names]
        for name, tensors in zip(self.names, matches, strict=True):
            if len(tensors) != 1:
                known = list(dict.fromkeys(t.name for t in computed))
                count = (
                    f"{len(tensors)} tensors are" if tensors else "no tensor inside the model is"
                )
                hint = "" if tensors else nearest(name, known)
                raise ConfigError(
                    f"{count} called '{name}'{f': {hint}' if hint else ''}",
                    where="pass_config.graph.more_outputs",
                    legal=", ".join(known) or "none: all computed tensors are already outputs",
                )
        chosen = tuple(tensor for tensors in matches for tensor in tensors)
        return replace(graph, outputs=(*graph.outputs, *chosen)) if chosen else graph
