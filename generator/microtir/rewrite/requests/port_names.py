"""Names of inputs and outputs that a configuration asks for."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from microtir.config.renames import Rename
from microtir.errors import ConfigError, nearest
from microtir.graph.ir import Graph, Tensor
from microtir.graph.port_names import rename_ports
from microtir.graph.rewriting import Keeps, Rewrite


@dataclass(frozen=True, slots=True)
class RenamePorts(Rewrite):
    """Gives inputs and outputs the names that an application should see.

    Args:
        inputs: by names or aliases.
        outputs: by names or aliases.
        by_tensors: whether the others have the names of the file's tensors, as microTVM calls
            them, and not those of its signature.

    Raises:
        ConfigError: there is no such port, it is renamed twice, or a new name is that of another.
    """

    inputs: Sequence[Rename]
    outputs: Sequence[Rename]
    by_tensors: bool = False
    keeps = Keeps.NOTHING

    def __call__(self, graph: Graph) -> Graph:
        if self.by_tensors:
            ports = (*graph.arguments, *graph.results)
            graph = rename_ports(graph, {port: graph.file_name(port.name) for port in ports})
        inputs = _chosen(graph, graph.arguments, self.inputs, "rename_input")
        graph = rename_ports(graph, inputs)
        return rename_ports(graph, _chosen(graph, graph.results, self.outputs, "rename_output"))


def _chosen(
    graph: Graph, ports: Sequence[Tensor], wanted: Sequence[Rename], option: str
) -> dict[Tensor, str]:
    """Return new names by port."""
    known = {port.name: port for port in ports}
    chosen: dict[Tensor, str] = {}
    for rename in wanted:
        port = known.get(graph.port_name(rename.old))
        if port is None:
            hint = nearest(rename.old, list(known))
            what = f"no {option.removeprefix('rename_')} is called '{rename.old}'"
            raise _refused(f"{what}{f': {hint}' if hint else ''}", option, known)
        if port in chosen:
            raise _refused(f"'{port.name}' is renamed twice", option, known)
        chosen[port] = rename.new
    for port, new in chosen.items():
        others = (t for t in (*graph.arguments, *graph.results) if t is not port)
        if any(new in (other.name, *graph.aliases_of(other)) for other in others):
            raise _refused(f"'{new}' is already the name of another input or output", option, known)
    return chosen


def _refused(why: str, option: str, known: Iterable[str]) -> ConfigError:
    return ConfigError(why, where=option, legal=", ".join(known) or "none: the model has none")
