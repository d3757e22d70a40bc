"""The layers that CMSIS-NN computes, their estimated costs, and the calls that compute them.

Costs are rounded from what emulated Cortex-M3, M4 and M55 take; where the choice is
close, measure (docs/external-kernels.md).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from microtir.external.cmsis_nn import calls, costs
from microtir.external.cmsis_nn.sources import FOLDER, Sources, read_sources
from microtir.external.interface import Code, Library, Match, Rule
from microtir.graph.operator import Operator
from microtir.operators.arithmetic.definition import Add
from microtir.operators.convolution.definition import Conv2D, DepthwiseConv2D
from microtir.operators.dense.definition import FullyConnected
from microtir.operators.pooling.definition import AveragePool2D, MaxPool2D
from microtir.operators.softmax.definition import Softmax
from microtir.rewrite.facts.sums import fits
from microtir.tir.extern import CTemplate

_STACK = 1024  # bytes: the deepest chain of its kernels takes less


@dataclass(frozen=True, slots=True)
class _Kernel:
    operator: type[Operator]
    call: Callable[[Match], calls.LibraryCall]
    accepts: Callable[[Match], bool]
    cost: Callable[[Match], int]


_KERNELS = (
    _Kernel(Conv2D, calls.convolution, calls.is_convolution, costs.convolution),
    _Kernel(DepthwiseConv2D, calls.depthwise, calls.is_depthwise, costs.depthwise),
    _Kernel(FullyConnected, calls.dense, calls.is_dense, costs.dense),
    _Kernel(Add, calls.add, calls.is_add, costs.add),
    _Kernel(AveragePool2D, calls.average_pool, calls.is_pool, costs.pool),
    _Kernel(MaxPool2D, calls.max_pool, calls.is_pool, costs.pool),
    _Kernel(Softmax, calls.softmax, calls.is_softmax, costs.softmax),
)


def cmsis_nn(path: str) -> Library:
    """Describe the library in a folder.

    Raises:
        ToolError: see `read_sources`.
    """
    sources = read_sources(path)
    return Library("cmsis-nn", tuple(_rule(kernel, sources) for kernel in _KERNELS))


def _rule(kernel: _Kernel, sources: Sources) -> Rule:
    def emit(match: Match) -> Code:
        call = kernel.call(match)
        return Code(
            body=CTemplate(f"external/cmsis_nn/{call.template}.c.j2", call.values),
            constants=call.constants,
            scratch_bytes=call.scratch_bytes,
            includes=(f"{FOLDER}/arm_nnfunctions.h",),
            sources=sources.needed(call.functions),
            stack_bytes=_STACK,
        )

    def accepts(match: Match) -> bool:
        if not all(map(fits, match.nodes)):  # the library adds in int32
            return False
        return kernel.accepts(match) and all(map(sources.has, kernel.call(match).functions))

    return Rule((kernel.operator,), emit, kernel.cost, accepts)
