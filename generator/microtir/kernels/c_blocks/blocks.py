"""Kernels that are blocks of sums in registers, in plain C: what they have in common."""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic, TypeAlias, TypeVar

from microtir.config import Feature
from microtir.config.target import Target
from microtir.dtype import DType
from microtir.graph.ir import Node
from microtir.kernels.common import bordered_rows
from microtir.kernels.common.kernel import Kernel, passes_constants
from microtir.plan.ir import Calls

Suits: TypeAlias = Callable[[Target], bool]
Form = TypeVar("Form")


class Blocks(Kernel, Generic[Form]):
    """A block of sums in registers, of integers or of float32.

    Args:
        name: of the kernel.
        form: the block.
        cycles: of 100 instructions.
        suits: says which targets it is meant for.
        dtype: of inputs and outputs; float32 only where there are instructions for it.
    """

    def __init__(
        self,
        name: str,
        form: Form,
        cycles: int,
        suits: Suits = passes_constants,
        *,
        dtype: DType = DType.INT8,
    ) -> None:
        self.name, self.form, self.cycles = name, form, cycles
        self._suits, self.dtype = suits, dtype
        self.needs = Feature.FPU if dtype.is_float else None

    def suits(self, target: Target) -> bool:
        return self._suits(target)


class WindowedBlocks(Blocks[Form]):
    """Blocks of pixels, which read windows of rows with borders."""

    rescales_in_float = True
    depends_on_calls = True

    def scratch_bytes(self, node: Node, _calls: Calls) -> int:
        return bordered_rows.scratch_bytes(node)
