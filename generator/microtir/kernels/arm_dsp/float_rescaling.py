"""Layers whose sums are rescaled in float32, as far as kernels for Arm's DSP extension take them.

Where integers give the same for every sum, any core does; else the FPU multiplies and rounds.
"""

from __future__ import annotations

from microtir.config import Feature
from microtir.config.target import Target
from microtir.dtype import DType
from microtir.graph.ir import Node
from microtir.kernels.common import kernel, made_once, packing
from microtir.operators.common.linear import rescales_in_float


class FloatRescaling(kernel.Kernel):
    """A kernel that takes layers whose sums are rescaled in float32."""

    rescales_in_float = True

    def suits_node(self, node: Node, target: Target) -> bool:
        """Return whether a target has an FPU, or integers do what it would do."""
        return target.has(Feature.FPU) or not rescales_in_float(node) or _has_integers(node)


@made_once.of_node
def _has_integers(node: Node) -> bool:
    if node.output.dtype is DType.INT16:  # of so many steps no integers are looked for
        return False
    factors = packing.requantised(node)
    return factors is not None and not factors.rescaling.in_float
