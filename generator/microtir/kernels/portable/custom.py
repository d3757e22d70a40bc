"""Operators of the user: the function that they give, checked against the node."""

from __future__ import annotations

import math

from microtir.errors import UsageError
from microtir.graph.ir import Node, Tensor
from microtir.graph.operator import Operator
from microtir.kernels.common import packing
from microtir.kernels.common.kernel import Kernel, work
from microtir.kernels.common.layer import Layer
from microtir.operators import record_of
from microtir.operators.common.formula import WrittenFunction
from microtir.plan.ir import Calls
from microtir.tir.ir import Buffer, Param, PrimFunc
from microtir.tir.visitor import buffers_read


class WholeFunction(Kernel):
    """A function that is written in whole, for an operator of the package or of the user.

    Args:
        name: of the kernel.
        operators: those of the package; the records of users say that they have one.
        in_place: whether it reads each element of a state before it overwrites it.
    """

    def __init__(self, name: str, *operators: type[Operator], in_place: bool = False) -> None:
        self.name, self.operators, self.in_place = name, operators, in_place

    def instructions(self, node: Node, _calls: Calls) -> int:
        """Return what the operator says of itself, or some instructions for each element."""
        own = _written(node).cost
        return 20 * work(node) if own is None else own(node)

    def scratch_bytes(self, node: Node, _calls: Calls) -> int:
        """Return what the operator says of itself."""
        return _written(node).scratch_bytes(node)

    def packed_bytes(self, node: Node) -> int:
        """Return the bytes of the constants of the function; nothing else tells of them."""
        return packing.bytes_of(*dict.fromkeys(buffers_read(_written(node).build(node, "layer"))))

    def emit(self, layer: Layer, name: str) -> PrimFunc:
        """Emit the function that the user's operator builds for a node.

        Raises:
            UsageError: its parameters are not what main passes.
        """
        node = layer.node
        function = _written(node).build(node, name)
        passed = [*dict.fromkeys(node.activations), *node.outputs]
        params = [p for p in function.params if p is not function.scratch]
        wrong = function.name != name or len(params) != len(passed)
        if wrong or not all(_fits(p, t) for p, t in zip(params, passed, strict=True)):
            raise UsageError(
                f"the function of the operator '{record_of(node.op).name}' takes {_listed(params)}",
                where=str(node.source),
                legal=", ".join(f"{t.dtype.value} {t.shape}" for t in passed),
                fix="declare first the inputs that are not constant, then the outputs",
            )
        return function


def _written(node: Node) -> WrittenFunction:
    function = record_of(node.op).function
    assert function is not None, "the table has this kernel for no other operator"
    return function


def _fits(param: Param, tensor: Tensor) -> bool:
    """Return whether a parameter can be given all of a tensor."""
    if not isinstance(param, Buffer) or param.dtype is not tensor.dtype:
        return False
    extents = [extent for extent in param.shape if isinstance(extent, int)]
    return len(extents) == len(param.shape) and math.prod(extents) == tensor.type.elements


def _listed(params: list[Param]) -> str:
    return ", ".join(
        f"{p.dtype.value} {p.shape}" if isinstance(p, Buffer) else p.dtype.value for p in params
    )
