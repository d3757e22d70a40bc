"""Why each layer got its kernel is written down, and true."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import pytest

from microtir.config.enums import Measure, Optimize
from microtir.dtype import DType
from microtir.graph.ir import Graph, Node, SourceLocation, SumRange, Tensor, TensorType
from microtir.instruction_sets.costs import WorkPercent
from microtir.operators.activations.definition import Relu
from microtir.operators.common.rows import RowWindow
from microtir.plan import measured as records
from microtir.plan import plan
from microtir.plan.decisions import Decision
from microtir.plan.ir import Candidate, Cost, LayoutKind, PlanConstraints, Refusal, spread
from microtir.plan.measured import Key, Measured, signature
from microtir.plan.reasons import decisions

ROWS = 10
CALL, BY_ROWS = 40, 40 * ROWS  # what the calls themselves are counted as
CALL_CYCLES, BY_ROWS_CYCLES = 60, 60 * ROWS


def image(name: str) -> Tensor:
    """An activation of ten rows of eight bytes."""
    return Tensor(name, TensorType((1, ROWS, 8, 1), DType.INT8))


def chain(operators: int) -> Graph:
    """Operators one after the other."""
    tensors = [image(f"t{n}") for n in range(operators + 1)]
    nodes = [
        Node(Relu(), (tensors[n],), (tensors[n + 1],), f"n{n}", SourceLocation("test", n, "X"))
        for n in range(operators)
    ]
    return Graph("g", (tensors[0],), (tensors[-1],), tuple(nodes))


def candidate(
    kernel: str, cost: int, scratch: int = 0, code: int = 0, *, rows: bool = True
) -> Candidate:
    """A kernel of one row at a time, or of the whole output."""
    kinds = (LayoutKind.NHWC,)
    windows = (RowWindow(),) if rows else None
    return Candidate(
        kernel, kinds, kinds, windows, 0, (Cost(cost, 2 * cost),), (scratch,), code_bytes=code
    )


SAME_WORK = WorkPercent()
FAST = candidate("gemm", 1000, scratch=50, code=500)
COMPACT = candidate("gemm_compact", 1800, code=100)
PLAIN = candidate("direct", 9000)


def decided(
    graph: Graph,
    offered: Sequence[Candidate],
    goal: Optimize,
    limit: int | None = None,
    refused: Sequence[tuple[str, Refusal]] = (),
    measure: Measure = Measure.INSTRUCTIONS,
    percent: WorkPercent = SAME_WORK,
) -> Decision:
    """What is decided about the last operator."""
    made = plan(
        graph, lambda _node: tuple(offered), PlanConstraints(goal, measure, limit),
        workspace_io=True,
    )  # fmt: skip
    return decisions(made, goal, lambda _node: refused, percent)[graph.nodes[-1]]


def reasons(decision: Decision) -> Mapping[str, str]:
    """By kernel, of what was not chosen."""
    return {a.kernel: a.reason for a in decision.alternatives}


def test_speed() -> None:
    """Code counts for nothing; every other kernel has its instructions more."""
    found = decided(chain(1), (PLAIN, COMPACT, FAST), Optimize.SPEED)
    assert (found.kernel, found.reason) == ("gemm", "the fastest of 3")
    assert (found.instructions, found.scratch_bytes) == (1000 + CALL, 50)
    assert reasons(found) == {
        "direct": "8,000 instructions more",
        "gemm_compact": "800 instructions more",
    }


def test_cycles() -> None:
    """More instructions that take fewer cycles; both figures are told of every kernel."""
    waiting = replace(FAST, costs=(Cost(1000, 4000),))
    found = decided(chain(1), (PLAIN, COMPACT, waiting), Optimize.SPEED, measure=Measure.CYCLES)
    assert (found.kernel, found.reason) == ("gemm_compact", "the fastest of 3, by cycles")
    assert (found.instructions, found.cycles) == (1800 + CALL, 3600 + CALL_CYCLES)
    assert reasons(found) == {"direct": "14,400 cycles more", "gemm": "400 cycles more"}
    figures = {a.kernel: (a.instructions, a.cycles) for a in found.alternatives}
    assert figures["gemm"] == (1000 + CALL, 4000 + CALL_CYCLES)


def test_cycles_against_code() -> None:
    """A byte of code costs as many cycles as it would instructions."""
    found = decided(chain(1), (COMPACT, FAST), Optimize.BALANCED, measure=Measure.CYCLES)
    assert found.reason.startswith("the best of 2 at 16 cycles for a byte of code")
    assert reasons(found)["gemm"] == "400 bytes more, 1,600 cycles less"


def test_work_is_told_as_the_cpu_takes_it() -> None:
    """A CPU with three times the instructions: figures, differences and prices; no other choice."""
    small = WorkPercent(instructions=300, cycles=400)
    found = decided(chain(1), (COMPACT, FAST), Optimize.BALANCED, percent=small)
    assert found.reason.startswith("the best of 2 at 48 instructions for a byte of code")
    assert (found.instructions, found.cycles) == (3 * (1800 + BY_ROWS), 4 * (3600 + BY_ROWS_CYCLES))
    assert reasons(found)["gemm"] == "400 bytes more, 2,400 instructions less"
    counted = replace(COMPACT, is_measured=True)
    assert decided(chain(1), (counted,), Optimize.SPEED, percent=small).instructions == 1800 + CALL


def test_a_kernel_is_told_as_the_cpu_was_seen_to_take_it() -> None:
    """Half of what it states: what was chosen, and why, stays the same."""
    half = replace(COMPACT, costs=tuple(replace(cost, told=50) for cost in COMPACT.costs))
    found = decided(chain(1), (half, FAST), Optimize.BALANCED)
    before = decided(chain(1), (COMPACT, FAST), Optimize.BALANCED)
    assert (found.kernel, found.instructions) == (before.kernel, before.instructions // 2)
    assert found.cycles == before.cycles // 2


def test_cycles_row_by_row() -> None:
    """Calls for a row each take as many more cycles as they take instructions."""
    slow = replace(PLAIN, costs=spread(9000, 18000, lambda calls: 9000 * (1 + (calls.rows == 1))))
    found = decided(chain(3), (slow,), Optimize.RAM_LEAST, measure=Measure.CYCLES)
    assert found.by_rows and found.cycles == 2 * slow.cost().cycles + CALL_CYCLES * ROWS


def test_flash() -> None:
    """What is smallest, though slower."""
    found = decided(chain(1), (PLAIN, COMPACT, FAST), Optimize.FLASH)
    assert (found.kernel, found.reason) == ("direct", "the smallest of 3 in code and weights")
    assert reasons(found) == {
        "gemm_compact": "100 bytes more, 7,200 instructions less",
        "gemm": "500 bytes more, 8,000 instructions less",
    }


def test_balanced() -> None:
    """400 bytes of code for 800 instructions are too many."""
    found = decided(chain(1), (PLAIN, COMPACT, FAST), Optimize.BALANCED)
    assert found.kernel == "gemm_compact"
    assert found.reason.startswith("the best of 3 at 16 instructions for a byte of code")
    assert reasons(found)["direct"] == "7,200 instructions more, 100 bytes less"
    assert reasons(found)["gemm"] == "400 bytes more, 800 instructions less"


def test_scratch_that_does_not_fit() -> None:
    """Input and output take 160 bytes: of 200 no 50 are left."""
    found = decided(chain(1), (replace(PLAIN, windows=None), replace(FAST, windows=None)),
                    Optimize.SPEED, limit=200)  # fmt: skip
    assert (found.kernel, found.by_rows) == ("direct", False)
    assert found.reason == "the fastest of 1 whose scratch fits into 200 bytes"
    assert reasons(found) == {
        "gemm": "its 50 bytes of scratch do not fit into the 200 bytes of the plan's limit"
    }


def test_a_stream_takes_kernels_that_come_by_rows() -> None:
    """The layers stream to keep to the limit, so that a kernel of whole tensors cannot be used."""
    whole = candidate("gemm", 10, rows=False)
    found = decided(chain(3), (PLAIN, whole), Optimize.RAM_LEAST)
    assert found.by_rows and found.kernel == "direct"
    assert found.instructions == 9000 + BY_ROWS
    assert found.reason.startswith("the only one that can compute it row by row; row by row")
    assert reasons(found)["gemm"] == (
        "computes its output in one call, and the layer runs row by row"
    )


def test_an_accumulator_ends_a_stream() -> None:
    """Where nothing streams it is of no use."""
    sums = replace(candidate("accumulate", 5), accumulator_bytes=32)
    found = decided(chain(1), (PLAIN, sums), Optimize.SPEED)
    assert reasons(found) == {"accumulate": "only ends a stream of rows"}
    assert found.reason == "the only one that can compute it"


def test_equals_and_refusals() -> None:
    """A kernel of equal price is no better; one that is refused has no figures."""
    twin = replace(PLAIN, kernel="copy")
    refused = (("gemm", Refusal.IMAGES),)
    found = decided(chain(1), (PLAIN, twin), Optimize.SPEED, refused=refused)
    assert reasons(found) == {"copy": "no better", "gemm": "takes one image at a time"}
    assert [a.instructions for a in found.alternatives] == [9000 + CALL, None]


def test_tuning_records_are_named() -> None:
    """Measured costs may say that another kernel is faster than was thought."""
    graph = chain(1)
    key = Key(signature(graph.nodes[0]), "direct")
    measured = Measured("c", {key: records.Cost(300)})
    offered = measured.applied(graph.nodes[0], (PLAIN, FAST))
    found = decided(graph, offered, Optimize.SPEED)
    assert (found.kernel, found.is_measured) == ("direct", True)
    assert found.reason == "the fastest of 2, by tuning records"
    assert reasons(found) == {"gemm": "700 instructions more"}


@pytest.mark.parametrize("sums", [None, SumRange(-4, 8)])
def test_bounds_of_sums_come_along(sums: SumRange | None) -> None:
    """What was proven of the node."""
    graph = chain(1)
    graph = replace(graph, nodes=(replace(graph.nodes[0], sums=sums),))
    assert decided(graph, (PLAIN,), Optimize.SPEED).sums == sums


def test_weights_beyond_the_model_s() -> None:
    """What a byte of them is charged is told where a kernel has some."""
    transformed = replace(FAST, kernel="winograd", weight_bytes=100)
    found = decided(chain(1), (PLAIN, COMPACT, transformed), Optimize.BALANCED)
    price = (
        "16 instructions for a byte of code and 30 for a byte of weights beyond the model's own, "
        "160 beyond 3 times those"
    )
    assert found.kernel == "gemm_compact"
    assert found.reason.startswith(f"the best of 3 at {price}; ")
