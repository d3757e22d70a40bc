"""What a row of the lowering table says of a family of kernels."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from microtir.config.features import Feature
from microtir.config.target import Target
from microtir.graph.ir import Node
from microtir.graph.sums import fits
from microtir.kernels.common.layer import Layer
from microtir.operators.common.formula import FormulaContext, Windows
from microtir.plan.ir import Alone, Kernel, LayoutKind, Planes, Refusal
from microtir.tir.ir import PrimFunc

Emit = Callable[[FormulaContext], None]
"""Computes the outputs of a layer by tensor expressions."""

Build = Callable[[Layer, str], PrimFunc]
"""Writes the function of a layer, of the given name, in TIR."""


@dataclass(frozen=True, slots=True)
class Family:
    """One way to compute the operators of a family.

    `window` gives the input rows behind an output row, or None; `refuses` says what speaks against
    a node, `needs` limits it to targets with a feature, `suits` to those it is meant for;
    `cost` is the estimated number of instructions per element or MAC, or of a node; `row_cost` that
    of a node whose rows are computed by a call each, and `pair_cost` by a call for two, where these
    differ; `cycles` what 100 of these instructions take on CPUs that it is meant for, by the tables
    of `project.cpu_costs`; `code` what its kernels add to the program beyond a direct one (those of
    an addition add nothing); `finish` writes the function that turns accumulators into the output;
    `alone` gives what differs where the kernel runs alone, by calls for 1 or 2 rows each, or by one
    for all of them (0).  `reads` and `writes` are layouts of input and output, `planes` says how
    those that it reads lie.
    """

    kernel: Kernel
    emit: Emit | None
    window: Windows
    cost: int | Callable[[Node], int]
    refuses: Callable[[Node], Refusal | None] = lambda _node: None
    needs: Feature | None = None
    scratch: Callable[[Node], int] = lambda _node: 0
    code: Callable[[Node], int] = lambda _node: 0
    build: Build | None = None
    accumulators: Callable[[Node], int] = lambda _node: 0
    suits: Callable[[Target], bool] = lambda _target: True
    row_cost: Callable[[Node], int] | None = None
    pair_cost: Callable[[Node], int] | None = None
    cycles: int = 150
    finish: Build | None = None
    alone: Callable[[Node, int], Alone] | None = None
    reads: LayoutKind = LayoutKind.NHWC
    writes: LayoutKind = LayoutKind.NHWC
    planes: Callable[[Node], Planes | None] = lambda _node: None

    def refusal(self, node: Node) -> Refusal | None:
        """What speaks against the kernel for a node, or None."""
        # Only direct kernels know accumulators of more than 32 bits.
        if self.kernel is not Kernel.DIRECT and not fits(node):
            return Refusal.SUMS
        return self.refuses(node)

    @property
    def is_plain(self) -> bool:
        """Whether all that it reads and writes is NHWC."""
        return self.reads is self.writes is LayoutKind.NHWC

    def is_for(self, target: Target) -> bool:
        """Whether a target has what the kernel needs, and should use it."""
        return (self.needs is None or target.has(self.needs)) and self.suits(target)
