"""Names of inputs and outputs: their own, and aliases by which users may call them, too.

An alias is a name that a port had before: that of its tensor in the model file, by which samples
and options of other tools know it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import TypeVar

from microtir.errors import UsageError
from microtir.graph.ir import Graph, Tensor
from microtir.graph.rewriting import named_apart, substitute

_ValueT = TypeVar("_ValueT")


def rename_ports(graph: Graph, names: Mapping[Tensor, str]) -> Graph:
    """Return a graph whose ports have other names; those that they had become aliases.

    Args:
        graph: not streamed yet.
        names: of some arguments and results, by tensor. With these, no two ports have one name.
    """
    changed = {port.name: name for port, name in names.items() if port.name != name}
    if not changed:
        return graph
    new = {port: replace(port, name=changed.get(port.name, port.name)) for port in names}
    aliases = [(name, old) for old, name in changed.items()]
    aliases += [(changed.get(name, name), alias) for name, alias in graph.aliases]
    renamed = replace(
        graph,
        inputs=tuple(new.get(t, t) for t in graph.inputs),
        outputs=tuple(new.get(t, t) for t in graph.outputs),
        nodes=tuple(substitute(node, new) for node in graph.nodes),
        input_ranges=tuple((new.get(t, t), bounds) for t, bounds in graph.input_ranges),
        image_axes=tuple((changed.get(name, name), axis) for name, axis in graph.image_axes),
        counted=tuple(
            replace(x, name=changed.get(x.name, x.name), count=changed.get(x.count, x.count))
            for x in graph.counted
        ),
        named=tuple(replace(x, name=changed.get(x.name, x.name)) for x in graph.named),
        aliases=tuple(pair for pair in aliases if pair[0] != pair[1]),
    )
    return named_apart(renamed)


def by_own_names(
    values: Mapping[str, _ValueT], own: Callable[[str], str], where: str
) -> dict[str, _ValueT]:
    """Return values by the ports' own names, where keys may be aliases.

    Args:
        values: such as samples, by names or aliases.
        own: `Graph.port_name` of the graph.
        where: they are from, for the error.

    Raises:
        UsageError: two keys name one port.
    """
    keys: dict[str, str] = {}
    for key in values:
        other = keys.setdefault(own(key), key)
        if other != key:
            raise UsageError(
                f"'{other}' and '{key}' are two names of the same tensor",
                where=where,
                legal="one array for the tensor, with one of these names",
            )
    return {name: values[key] for name, key in keys.items()}
