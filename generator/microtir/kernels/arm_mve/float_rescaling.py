"""Layers with sums rescaled in float32, as kernels for Helium take them: vectors of floats."""

from __future__ import annotations

from microtir.config import Feature
from microtir.config.target import Target
from microtir.graph.ir import Node
from microtir.kernels.common.kernel import Kernel
from microtir.operators.common.linear import rescales_in_float


class FloatRescaling(Kernel):
    """A kernel that takes layers of int8 whose sums vectors of floats rescale."""

    def suits_node(self, node: Node, target: Target) -> bool:
        """Return whether a target has vectors of floats, or a layer needs none."""
        return target.has(Feature.MVE_FLOAT) or not rescales_in_float(node)
