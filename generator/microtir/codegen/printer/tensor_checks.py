"""Prints checksums of tensors, by which a run notices bits that change between two layers.

Bytes that a layer reads are summed after the statement of main that wrote them, and compared before
the statement that reads them.  A loop over several layers is one statement.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import pairwise

import numpy as np

from microtir.codegen.printer.names import ScopedNames
from microtir.codegen.program import TENSOR_STATUS, CProgram
from microtir.config.enums import FaultChecks
from microtir.support.arrays import Array
from microtir.tir.ir import Buffer, Invoke, Seq, Stmt
from microtir.tir.visitor import buffers_read, invokes_of


@dataclass(frozen=True, slots=True)
class TensorChecks:
    """The comparisons before a statement of main, and the sums after it, by its first call."""

    before: Mapping[int, list[str]] = field(default_factory=lambda: defaultdict(list))
    after: Mapping[int, list[str]] = field(default_factory=lambda: defaultdict(list))


@dataclass(frozen=True, slots=True)
class _Span:
    """Bytes of a workspace pool, and the statement that wrote them."""

    pool: Buffer
    low: int
    high: int
    writer: int


def tensor_checks(
    program: CProgram, names: ScopedNames, pools: Mapping[Buffer, int]
) -> TensorChecks:
    """Return the checks of the tensors in these pools, none if the options do not ask for them.

    `pools` are the workspace pools in main, with their bytes.
    """
    checks, sums = TensorChecks(), dict[_Span, str]()
    if program.config.fault_checks is not FaultChecks.TENSORS:
        return checks
    for reader, span in dict.fromkeys(_reads(program, pools)):
        place = f"&{names.of(span.pool)}[{span.low}], {span.high - span.low}u"
        text = f"{program.name}_checksum({place}, UINT32_C(0xffffffff))"
        if span not in sums:
            sums[span] = names.reserve("sum")
            checks.after[span.writer].append(f"const uint32_t {sums[span]} = {text};")
        status = f"{program.macro}_{TENSOR_STATUS}"
        checks.before[reader].extend(
            [f"if ({text} != {sums[span]}) {{", f"    return {status};", "}"]
        )
    return checks


def _reads(program: CProgram, pools: Mapping[Buffer, int]) -> Iterator[tuple[int, _Span]]:
    """Yield what each statement reads of other statements, parts by their writers."""
    writers: dict[Buffer, Array] = {pool: np.full(size, -1) for pool, size in pools.items()}
    for statement, call in _calls(program.entry.body):
        callee = program.callee(call.function)
        places = [
            (parameter, view.buffer, view.byte_offset, math.prod(view.shape) * view.dtype.bytes)
            for parameter, view in program.views(call)
            if view.buffer in writers
        ]
        for parameter, pool, low, size in places:
            if parameter in buffers_read(callee) and parameter is not callee.scratch:
                written = writers[pool][low : low + size]
                for begin, end in _runs(written):
                    if (writer := int(written[begin])) not in (-1, statement):
                        yield statement, _Span(pool, low + begin, low + end, writer)
        for parameter, pool, low, size in places:
            if parameter in program.written[callee]:
                writers[pool][low : low + size] = statement


def _calls(body: Stmt) -> Iterator[tuple[int, Invoke]]:
    """Yield each call of main, with the number of the first call of its statement."""
    number = 0
    for statement in body.statements if isinstance(body, Seq) else (body,):
        calls = invokes_of(statement)
        yield from ((number, call) for call in calls)
        number += len(calls)


def _runs(values: Array) -> Iterator[tuple[int, int]]:
    """Yield the ranges of equal values."""
    edges = [0, *(np.flatnonzero(np.diff(values)) + 1).tolist(), len(values)]
    return pairwise(edges)
