"""Say why outputs may differ from a reference although the C computes what it should."""

from __future__ import annotations

from microtir.graph.ir import Graph
from microtir.graph.names import brief
from microtir.operators.division.definition import may_shift_far


def operators_that_differ(graph: Graph) -> str:
    """Return what may differ from tflite-micro and LiteRT, and why; empty if nothing may.

    Args:
        graph: as it was read.
    """
    found = [brief(node.name) for node in graph.nodes if may_shift_far(node)]
    if not found:
        return ""
    return (
        f"DIV {', '.join(map(repr, found))}: where a numerator is small, tflite-micro and LiteRT "
        "shift the quotient\nby more than 31 bits, which gives what their processor makes of it; "
        "here it is 0 (docs/operators.md)"
    )


def one_run_each(samples: int) -> str:
    """Return what samples without an axis of steps are, of a model that keeps something."""
    return (
        "the model keeps something from run to run, and each sample is a run that begins anew; "
        "runs that follow\neach other are one sample with an axis of steps: of the shape "
        f"(1, {samples}, ...) in the place of ({samples}, ...)"
    )
