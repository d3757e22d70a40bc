"""Say that what an NPU computes is not known here."""

from __future__ import annotations

from microtir.errors import UnsupportedModelError
from microtir.graph.ir import Array, Node
from microtir.operators.npu.definition import EthosU


def ethos_u(_op: EthosU, node: Node, *_inputs: Array) -> tuple[Array, ...]:
    """Refuse to compute what commands for an NPU mean."""
    raise UnsupportedModelError(
        "an Ethos-U computes it, and this machine cannot execute its commands",
        where=f"{node.source} ('{node.name}')",
        legal="operators that a CPU computes",
        fix="compare the outputs on the board with those of the model before Vela: verify accepts "
        "that model",
    )
