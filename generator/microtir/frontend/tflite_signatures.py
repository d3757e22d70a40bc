"""Signatures of TFLite files: names for subgraphs, and for their inputs and outputs.

A tensor of a converted model is called as the converter's steps left it
("serving_default_x:0", "StatefulPartitionedCall_1:0"); its signature has what its author wrote.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from microtir.errors import Fix, UsageError, nearest
from microtir.frontend.tflite_file import FileGraph, FileSignature, ModelFile
from microtir.graph.ir import Graph, Tensor
from microtir.graph.names import brief
from microtir.graph.port_names import rename_ports


def chosen_signature(file: ModelFile, key: str | None) -> FileSignature:
    """Return a signature of a file; one without names where the file has none.

    Args:
        file: as it is stored.
        key: of the signature; None for the first subgraph, and the first signature of it.

    Raises:
        UsageError: the file has no such signature.
    """
    if key is None:
        first = (one for one in file.signatures if one.graph == 0)
        return next(first, FileSignature("", 0))
    known: dict[str, FileSignature] = {}
    for one in file.signatures:
        known.setdefault(one.key, one)
    if key not in known:
        raise UsageError(
            f"the model has no signature {brief(key)!r}",
            where=file.file,
            legal=", ".join(map(brief, known)) or "none: it does not name its subgraphs",
            fix=nearest(key, known) or Fix("leave `signature` out", "leave --signature out"),
        )
    return known[key]


def named_by(signature: FileSignature, graph: Graph, file: FileGraph) -> Graph:
    """Return a graph whose inputs and outputs have the names of a signature.

    The names of their tensors become aliases. All keep these names where those of the signature
    are not distinct, or where one is the name of another port's tensor: an alias would be
    ambiguous.

    Args:
        signature: of the file.
        graph: read without a problem.
        file: the subgraph that it was read from.
    """
    names = {
        **_by_port(signature.inputs, graph.arguments, file.inputs),
        **_by_port(signature.outputs, graph.results, file.outputs),
    }
    ports = (*graph.arguments, *graph.results)
    distinct = {names.get(port, port.name) for port in ports}
    before = {port.name: port for port in ports}
    crosses = any(before.get(name, port) is not port for port, name in names.items())
    if crosses or len(distinct) < len(ports):
        return graph
    return rename_ports(graph, names)


def _by_port(
    names: Sequence[tuple[int, str]], ports: Sequence[Tensor], indices: Sequence[int]
) -> Mapping[Tensor, str]:
    """Return the names of ports; a tensor that is listed twice takes its names in turn."""
    left: dict[int, list[str]] = {}
    for index, name in names:
        if name:
            left.setdefault(index, []).append(name)
    pairs = zip(ports, indices, strict=True)
    return {port: left[index].pop(0) for port, index in pairs if left.get(index)}
