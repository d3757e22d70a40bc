"""The range of values of an input that calibration has seen, derived from its quantisation."""

from __future__ import annotations

from collections.abc import Iterator

from microtir.graph.ir import Graph, Quantization, Tensor
from microtir.module.ir_module import SeenRange
from microtir.operators import record_of
from microtir.operators.conversion.definition import Quantize
from microtir.operators.definition import Trait


def seen_range(
    graph: Graph, tensor: Tensor, declared: tuple[int, int] | None = None
) -> SeenRange | None:
    """Return the range of an input that calibration saw; None where the model does not tell.

    Whoever quantised the values of an integer input clipped those that its type does not hold: they
    are at its ends.  Floats are told by the QUANTIZE that reads them.

    Args:
        graph: as it was read.
        tensor: an input of it.
        declared: the stored values that the user said it takes.
    """
    if tensor.dtype.is_float:
        ranges = list(_ranges_of_floats(graph, tensor))
        known = [range_ for range_ in ranges if range_ is not None]
        if not ranges or len(known) < len(ranges):
            return None
        return SeenRange(max(r.low for r in known), min(r.high for r in known))
    ends = tensor.dtype.min, tensor.dtype.max
    if declared is not None and declared != ends:
        return SeenRange(*declared)
    return SeenRange(ends[0] + 1, ends[1] - 1) if tensor.type.quantization is not None else None


def _ranges_of_floats(graph: Graph, tensor: Tensor) -> Iterator[SeenRange | None]:
    """Yield the floats that each QUANTIZE of a tensor keeps; None for whatever else reads it."""
    if tensor in graph.outputs:
        yield None
    for node in graph.consumers().get(tensor, ()):
        if isinstance(node.op, Quantize):
            yield _unclipped_range(node.output, node.output.type.quantization)
        elif record_of(node.op).has(Trait.MOVES_DATA):
            for output in node.outputs:
                yield from _ranges_of_floats(graph, output)
        else:
            yield None


def _unclipped_range(output: Tensor, quantization: Quantization | None) -> SeenRange | None:
    """Return the floats that a QUANTIZE rounds to a value of its type, and does not clip."""
    if quantization is None or quantization.is_per_channel:
        return None
    scale, zero_point = quantization.scale, quantization.zero_point
    low = scale * (output.dtype.min - zero_point - 0.5)
    return SeenRange(low, scale * (output.dtype.max - zero_point + 0.5))
