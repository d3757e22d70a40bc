"""Tell graphs of integers that were made of one file from each other, and from the file."""

from __future__ import annotations

import hashlib
from dataclasses import replace

from microtir.graph.ir import Graph


def with_digest(graph: Graph) -> Graph:
    """Return a graph of integers with the digest of what it computes beyond its float file.

    Those are the types and constants: everything else follows from the file.
    """
    digest = hashlib.sha256(graph.source_sha256.encode())
    for tensor in graph.tensors():
        digest.update(f"{tensor.name} {tensor.type}".encode(errors="backslashreplace"))
        if tensor.data is not None:
            digest.update(tensor.data.tobytes())
    return replace(graph, quantised_sha256=digest.hexdigest())
