"""Estimate code: what functions have written in them, in bytes that compilers make of it.

`measured/CPU.json` has the bytes of each kind of work and of the compiler's libraries, as GCC makes
them with -O2; `python -m benchmarks code calibrate` fits them to random networks and writes them.
What a kind needs of the libraries is linked once, however many functions need it.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache, lru_cache
from pathlib import Path

from microtir.measure.functions import Functions, kernels_of
from microtir.support.sums import sum_in_order
from microtir.tir.analysis.code import code_of
from microtir.tir.ir import Buffer, PrimFunc

UNMEASURED = 20.0  # bytes of a kind that no network of the calibration has
_LONG = "mul_long", "mla_long", "saturating_rounding_doubling_high_mul"
_PRODUCTS = *_LONG, "multiply_by_quantized_multiplier", "multiply_by_quantized_multiplier_by"
_MEASURED = Path(__file__).parent / "measured"
_written = lru_cache(maxsize=1024)(code_of)


@dataclass(frozen=True, slots=True)
class CodeFigures:
    """Sizes of what a compiler makes for a CPU.

    Args:
        bytes: of each kind of work.
        libraries: bytes of the members of libraries.
        needs: the members that are linked where there is a kind of work.
        least: percent of the estimate that the smallest of all measured programs took.
        most: the same of the largest.
    """

    bytes: Mapping[str, float]
    libraries: Mapping[str, int]
    needs: Mapping[str, tuple[str, ...]]
    least: int
    most: int

    def of(self, work: Mapping[str, int]) -> float:
        """Return the bytes of what is written, without libraries."""
        return sum_in_order(
            self.bytes.get(kind, UNMEASURED) * times for kind, times in work.items()
        )

    def linked(self, kinds: Iterable[str]) -> int:
        """Return the bytes of all members that kinds need, each counted once."""
        members = {member for kind in kinds for member in self.needs.get(kind, ())}
        return sum(self.libraries[member] for member in members)


def measured_file(cpu: str) -> Path:
    """Return the file of what was measured for a CPU."""
    return _MEASURED / f"{cpu}.json"


@cache
def code_figures(cpu: str) -> CodeFigures:
    """Read what was measured for a CPU."""
    return CodeFigures(**json.loads(measured_file(cpu).read_text("utf-8")))


def written_in(functions: Functions, function: PrimFunc) -> Counter[str]:
    """Return what is written in a function, with what compilers put into it of its callees."""
    work = Counter(_written(function, functions.arguments.get(function, ())))
    for kernel in kernels_of(function):
        if not is_compiled_alone(functions, functions.originals[kernel]):
            work += _written(kernel)
    if function is not functions.main:
        return work + Counter(("function",))
    ports = [p for p in function.params if isinstance(p, Buffer)]
    work = Counter({f"main_{kind}": times for kind, times in work.items()})
    is_wide = any(port.dtype.bytes > 1 for port in ports)
    return work + Counter(main=1, main_port=len(ports), main_wide=is_wide)


def with_copies(work: Counter[str]) -> Counter[str]:
    """Return work with the products of 64 bits that are copied to where they are used."""
    return work + Counter(copied_product=sum(work[kind] for kind in _PRODUCTS))


def is_compiled_alone(functions: Functions, function: PrimFunc) -> bool:
    """Return whether a function stays one: kernels do where the C says so, or are assembly."""
    kernel = function.kernel
    is_own = function in functions.own or function in functions.assembly
    return is_own or (kernel is not None and (kernel.noinline or kernel.merges))
