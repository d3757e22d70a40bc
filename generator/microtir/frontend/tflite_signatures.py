"""Signatures of TFLite files: names for subgraphs, and for what goes in and comes out.

A tensor of a converted model is called as the converter's steps left it
("serving_default_x:0", "StatefulPartitionedCall_1:0"); its signature has what its author wrote.
"""

from __future__ import annotations

from dataclasses import replace

from microtir.errors import Fix, UsageError, nearest
from microtir.frontend.tflite_file import FileGraph, FileSignature, ModelFile
from microtir.graph.names import brief


def program(file: ModelFile, signature: str | None) -> tuple[ModelFile, int]:
    """Return a file whose ports have the names of a signature, and the signature's subgraph.

    Args:
        file: as it is stored.
        signature: its name; None for the first subgraph, and the first signature of it.

    Raises:
        UsageError: there is none of this name.
    """
    asked = [one for one in file.signatures if signature in {None, one.key}]
    if signature is None:
        asked = [one for one in asked if one.graph == 0]
    elif not asked:
        known = [one.key for one in file.signatures]
        raise UsageError(
            f"the model has no signature {brief(signature)!r}",
            where=file.file,
            legal=", ".join(map(brief, known)) or "none: it has no names for its subgraphs",
            fix=nearest(signature, known) or Fix("leave `signature` out", "leave --signature out"),
        )
    if not asked:
        return file, 0
    chosen, *_ = asked
    graphs = list(file.graphs)
    graphs[chosen.graph] = _named(graphs[chosen.graph], chosen)
    return replace(file, graphs=tuple(graphs)), chosen.graph


def _named(graph: FileGraph, signature: FileSignature) -> FileGraph:
    """Return a subgraph whose inputs and outputs have a signature's names.

    They stay as they are where the signature has no such name, or one for two of them. What goes
    in and comes out as it is has the name of the input.
    """
    ports = {*graph.inputs, *graph.outputs}
    names = {index: name for index, name in reversed(signature.names) if index in ports and name}
    if len(set(names.values())) < len(names):
        return graph
    tensors = (replace(t, name=names.get(t.index, t.name)) for t in graph.tensors)
    return replace(graph, tensors=tuple(tensors))
