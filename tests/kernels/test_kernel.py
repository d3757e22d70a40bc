"""What planning and emission ask of kernels."""

from __future__ import annotations

import pytest

from microtir.config.target import Target
from microtir.kernels.table import BY_OPERATOR, kernel_of, kernels_of
from microtir.operators.common.attributes import Padding2D
from microtir.operators.convolution.definition import Conv2D, DepthwiseConv2D
from microtir.plan.ir import CALLS, IN_ONE_CALL, Calls, Cost, LayoutKind, spread
from tests.kernels.test_row_costs import DENSE, DEPTHWISE, INSIDE, POINTWISE, layer

PADDED = layer(Conv2D(padding=Padding2D(1, 1, 1, 1)), (1, 9, 5, 16), (8, 3, 3, 16))
LAYERS = {
    "pointwise": POINTWISE, "inside": INSIDE, "padded": PADDED, "depthwise": DEPTHWISE,
    "dense": DENSE,
}  # fmt: skip
TARGETS = [Target(f"c -mcpu={cpu}") for cpu in ("cortex-m3", "cortex-m4", "cortex-m55", "x86-64")]


@pytest.mark.parametrize("name", LAYERS)
@pytest.mark.parametrize("target", TARGETS, ids=str)
def test_a_candidate_finds_its_kernel(name: str, target: Target) -> None:
    """Kernels that differ by layouts alone are told apart, and so are those of one name."""
    node = LAYERS[name]
    for kernel in kernels_of(node, target):
        assert kernel_of(node, kernel.candidate(node)) is kernel


@pytest.mark.parametrize("name", LAYERS)
def test_costs_and_memory_are_those_of_the_candidate(name: str) -> None:
    """One method for each, whatever the calls."""
    node = LAYERS[name]
    for kernel in kernels_of(node):
        candidate = kernel.candidate(node)
        for calls in CALLS:
            assert candidate.cost(calls) == kernel.cost(node, calls)
            memory = kernel.memory(node, calls)
            alone = candidate.running_alone(calls.rows) if calls.alone else candidate
            assert alone.scratch_bytes == memory.scratch_bytes
            assert (alone.accumulator_bytes, alone.code_bytes) == (
                memory.accumulator_bytes, memory.code_bytes,
            )  # fmt: skip


@pytest.mark.parametrize("name", LAYERS)
def test_calls_make_a_difference_where_a_kernel_says_so(name: str) -> None:
    """A kernel that is asked once has the same instructions and scratch for all calls."""
    node = LAYERS[name]
    for kernel in kernels_of(node):
        if not kernel.depends_on_calls:
            assert len({kernel.instructions(node, calls) for calls in CALLS}) == 1
            assert len({kernel.scratch_bytes(node, calls) for calls in CALLS}) == 1


def test_every_kernel_of_an_operator_lists_it() -> None:
    """The table follows from the kernels, and planes are for depthwise convolutions."""
    for operator, kernels in BY_OPERATOR.items():
        assert all(operator in kernel.operators for kernel in kernels)
    readers = {op for op, ks in BY_OPERATOR.items() for k in ks if k.reads is not LayoutKind.NHWC}
    assert readers == {DepthwiseConv2D}


def test_calls_cost_no_less_than_one_and_cycles_follow() -> None:
    """Cycles grow as instructions do; an estimate below that of one call is raised to it."""
    taken = {IN_ONE_CALL: 100, Calls(1): 150, Calls(2): 90, Calls(0, alone=True): 80}
    costs = spread(100, 300, lambda calls: taken.get(calls, 120))
    assert costs[:3] == (Cost(100, 300), Cost(150, 450), Cost(100, 300))
    assert costs[3:] == (Cost(80, 240), Cost(120, 360), Cost(120, 360))
