"""Say why outputs may differ from a reference although the C computes what it should."""

from __future__ import annotations

from collections.abc import Callable

from microtir.graph.ir import Graph, Node
from microtir.graph.names import brief
from microtir.operators.division.definition import may_shift_far
from microtir.operators.unary.definition import may_leave_float32

_KNOWN: tuple[tuple[str, Callable[[Node], bool], str], ...] = (
    (
        "DIV",
        may_shift_far,
        (
            "where a numerator is small, tflite-micro and LiteRT shift the quotient\nby more than"
            " 31 bits, which gives what their processor makes of it; here it is 0"
            " (docs/operators.md)"
        ),
    ),
    (
        "EXP",
        may_leave_float32,
        (
            "where a result is too large for float32 or int32, LiteRT gives what its\ncompiler"
            " makes of it; here it is the largest number of the output (docs/operators.md)"
        ),
    ),
)


def operators_that_differ(graph: Graph) -> str:
    """Return what may differ from tflite-micro and LiteRT, and why; empty if nothing may.

    Args:
        graph: as it was read.
    """
    sentences = [
        f"{kind} {', '.join(names)}: {why}"
        for kind, may_differ, why in _KNOWN
        if (names := [repr(brief(node.name)) for node in graph.nodes if may_differ(node)])
    ]
    return "\n".join(sentences)


def one_run_each(samples: int) -> str:
    """Return what samples without an axis of steps are, of a model that keeps something."""
    return (
        "the model keeps something from run to run, and each sample is a run that begins anew; "
        "runs that follow\neach other are one sample with an axis of steps: of the shape "
        f"(1, {samples}, ...) in the place of ({samples}, ...)"
    )
