"""The interface of a kernel: one way to compute some operators, as planning and emission see it.

A kernel is a class; its forms (tiles, layouts that it writes) are instances.  Planning is given
what speaks against a node (`refusal`) and what the kernel costs and takes (`candidate`), and knows
no more of it; emission asks it for one function (`emit`), or two where it accumulates (`finish`).
"""

from __future__ import annotations

from abc import ABC, abstractmethod

from microtir.config import Feature
from microtir.config.target import Target
from microtir.dtype import DType
from microtir.graph.ir import Node
from microtir.graph.operator import Operator
from microtir.kernels.common.layer import Layer
from microtir.operators import record_of
from microtir.operators.common.linear import rescales_in_float
from microtir.operators.common.rows import RowWindow
from microtir.operators.definition import Trait
from microtir.plan import ir as plan
from microtir.rewrite.facts.macs import macs
from microtir.rewrite.facts.sums import fits
from microtir.tir.ir import PrimFunc


class Kernel(ABC):
    """One way to compute operators of some types.

    Attributes:
        name: what planning, metadata and tuning records know it by.
        operators: types of the operators that it computes.
        needs: what it takes of a target, if anything.
        reads: layout of its inputs.
        writes: layout of its outputs.
        cycles: what 100 of its instructions take on the CPUs that it is meant for.
        depends_on_calls: whether its cost or its scratch differs by how it is called.
        has_wide_sums: whether its accumulators have more than 32 bits where that is needed.
        has_wide_weights: whether it takes weights of int16, which are such of 8 bits and a number.
        rescales_in_float: whether it takes layers whose sums are rescaled in float32.
        is_view: whether it has no code, because its output is the memory of its input.
        in_place: whether its output may overwrite an input of equal type.
        is_for_little_flash: whether it is offered only where flash has a budget: it takes RAM for
            what others have in flash.
        is_for_least_ram: whether it is offered where the least memory is asked for. Its output may
            take nothing over from an input within a row, where a formula's would.
    """

    name: str
    operators: tuple[type[Operator], ...]
    needs: Feature | None = None
    reads = plan.LayoutKind.NHWC
    writes = plan.LayoutKind.NHWC
    cycles = 150
    depends_on_calls = False
    has_wide_sums = False
    has_wide_weights = False
    rescales_in_float = False
    is_view = False
    in_place = False
    is_for_little_flash = False
    is_for_least_ram = True

    # --- what a kernel says of itself ---------------------------------------------------------

    def suits(self, _target: Target) -> bool:
        """Return whether it is meant for a target that has what it needs."""
        return True

    def reject(self, _node: Node) -> plan.Refusal | None:
        """Return what speaks against it for a node of one of its operators, or None."""
        return None

    def window(self, node: Node) -> RowWindow | None:
        """Return the input rows behind an output row; None: it computes all of them in one call.

        By default they are those of the operator's formula.
        """
        formula = record_of(node.op).formula
        return None if formula is None else formula.rows(node)

    @abstractmethod
    def instructions(self, node: Node, calls: plan.Calls) -> int:
        """Return the estimated number of instructions of all calls for a node."""

    def cycles_of(self, _node: Node, instructions: int) -> int:
        """Return the estimated cycles of so many of its instructions for a node."""
        return instructions * self.cycles // 100

    def scratch_bytes(self, _node: Node, _calls: plan.Calls) -> int:
        """Return the bytes that last for one call."""
        return 0

    def accumulator_bytes(self, _node: Node) -> int:
        """Return the bytes of the sums that rows are added to, if it accumulates."""
        return 0

    def weight_bytes(self, node: Node) -> int:
        """Return about the bytes of the constants that it reads: by default those of the node."""
        return sum(t.type.bytes for t in node.inputs if t.is_constant)

    def packed_bytes(self, node: Node) -> int:
        """Return the bytes of the constants that its functions read, as they are packed."""
        return self.weight_bytes(node)

    def code_bytes(self, _node: Node) -> int:
        """Return the bytes of code beyond those of a direct kernel; layers may share them."""
        return 0

    def planes(self, _node: Node) -> plan.Planes | None:
        """Return how the planes that it reads lie, if it reads some."""
        return None

    @abstractmethod
    def emit(self, layer: Layer, name: str) -> PrimFunc:
        """Return the function of a layer; parameters as `kernels.emit` has them."""

    def finish(self, layer: Layer, name: str) -> PrimFunc:
        """Return the function that turns accumulators into the output of a layer."""
        raise AssertionError(f"{name}: {self.name} has no accumulators for {layer.node.name}")

    # --- what others ask ----------------------------------------------------------------------

    def is_for(self, target: Target) -> bool:
        """Return whether a target has what the kernel needs, and should use it."""
        return (self.needs is None or target.has(self.needs)) and self.suits(target)

    def suits_node(self, _node: Node, _target: Target) -> bool:
        """Return whether a target has what the kernel needs for a node, beside `needs`."""
        return True

    def refusal(self, node: Node) -> plan.Refusal | None:
        """Return what speaks against the kernel for a node, or None."""
        if not self.has_wide_sums and not fits(node):
            return plan.Refusal.SUMS
        if not self.has_wide_weights and _has_wide_weights(node):
            return plan.Refusal.TYPES
        if not self.rescales_in_float and rescales_in_float(node):
            return plan.Refusal.RESCALING
        return self.reject(node)

    def costs(self, node: Node, _target: Target | None = None) -> tuple[plan.Cost, ...]:
        """Return the cost of each of `CALLS`, or one where they make no difference.

        Kernels that any target has differ in what they cost there.
        """
        whole = self.instructions(node, plan.IN_ONE_CALL)
        cycles = self.cycles_of(node, whole)
        if not self.depends_on_calls:
            return (plan.Cost(whole, cycles),)
        return plan.spread(whole, cycles, lambda calls: self.instructions(node, calls))

    def cost(self, node: Node, calls: plan.Calls) -> plan.Cost:
        """Return the estimate for all calls of a node."""
        costs = self.costs(node)
        return costs[plan.CALLS.index(calls) if len(costs) > 1 else 0]

    def memory(self, node: Node, calls: plan.Calls) -> plan.Memory:
        """Return what it takes beside operands and constants."""
        return plan.Memory(
            self.scratch_bytes(node, calls), self.accumulator_bytes(node), self.code_bytes(node)
        )

    @property
    def is_plain(self) -> bool:
        """Return whether all that it reads and writes is NHWC."""
        return self.reads is self.writes is plan.LayoutKind.NHWC

    def candidate(
        self, node: Node, target: Target | None = None, *, counts_constants: bool = False
    ) -> plan.Candidate:
        """Return the description of the kernel for a node that it does not refuse.

        Where every byte of flash counts, constants are counted as they are packed.
        """
        window, activations = self.window(node), node.activations
        calls = plan.CALLS if self.depends_on_calls else (plan.IN_ONE_CALL,)
        return plan.Candidate(
            kernel=self.name,
            input_layouts=(self.reads,) * len(activations),
            output_layouts=(self.writes,) * len(node.outputs),
            windows=None if window is None else (window,) * len(activations),
            weight_bytes=(self.packed_bytes if counts_constants else self.weight_bytes)(node),
            costs=self.costs(node, target),
            scratch=tuple(self.scratch_bytes(node, way) for way in calls),
            accumulator_bytes=self.accumulator_bytes(node),
            code_bytes=self.code_bytes(node),
            is_view=self.is_view,
            in_place=self.in_place,
            planes=self.planes(node),
        )


def _has_wide_weights(node: Node) -> bool:
    weighted = record_of(node.op).has(Trait.WEIGHTED)
    return weighted and node.inputs[1].dtype is DType.INT16


def work(node: Node) -> int:
    """Return what direct kernels count: multiply-accumulates, or elements of the outputs."""
    return max(macs(node), sum(t.type.elements for t in node.outputs))


def passes_constants(target: Target) -> bool:
    """Return whether a function can be given a pointer to constants: on an AVR it cannot."""
    return not target.has(Feature.AVR_PROGMEM)
