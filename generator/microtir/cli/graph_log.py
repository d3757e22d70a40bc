"""Notes the graph behind each pass, for who looks for the one that did something."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import partial

from microtir.graph.ir import Graph
from microtir.graph.text import to_text
from microtir.lowering.stages import Stage
from microtir.rewrite.extra_passes import GraphFunction


class GraphLog:
    """List of passes over a graph, in the order in which they ran, and of what each left."""

    def __init__(self) -> None:
        self._entries: list[tuple[str, Graph]] = []

    def behind(self, stages: Iterable[Stage]) -> Mapping[str, Sequence[GraphFunction]]:
        """Return the functions that note the graph behind each pass of these stages."""
        names = dict.fromkeys(name for stage in stages for name, _ in stage.passes)
        return {name: (partial(self._note, name),) for name in names}

    def _note(self, name: str, graph: Graph) -> Graph:
        self._entries.append((name, graph))
        return graph

    def text(self) -> str:
        """Return a section for each pass: the graph that it left, or that it left it as it was."""
        sections, before = [], ""
        for name, graph in self._entries:
            after = to_text(graph)
            sections.append(
                f"--- {name} (unchanged)\n" if after == before else f"--- {name}\n{after}"
            )
            before = after
        return "".join(sections)
