"""Several pools: who gets the fast one, what fits where, and the proof that all keep apart."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from microtir.config import CompilationConfig, WorkspacePoolInfo
from microtir.config.enums import Placement
from microtir.dtype import DType
from microtir.errors import MemoryPlanError
from microtir.memory import check_workspace, pools_of
from microtir.memory.checker import check
from microtir.memory.place import Ports, place, relocate
from microtir.memory.pools import Pool
from microtir.memory.traffic import Traffic, traffic
from microtir.module.limits import Limit
from microtir.tir.ir import Buffer
from microtir.tir.memory_plan import MemoryPlan
from tests.memory.test_placement import Program, layer, programs

FAST, SLOW = Pool("fast", 1, 8, 1.0, 1.0), Pool("slow", 1, None, 3.0, 3.0)


def where(plan: MemoryPlan) -> dict[str, str]:
    """The pool of each buffer."""
    return {p.name: plan.pools[p.pool].name for p in plan.placements}


limits = st.one_of(st.none(), st.integers(1, 80))


@settings(deadline=None, max_examples=150)
@given(
    programs,
    st.lists(st.tuples(limits, st.sampled_from([1, 4, 16])), min_size=2, max_size=3),
    st.sampled_from(list(Placement)),
)
def test_random_programs_in_random_pools(
    program: Program, given: list[tuple[int | None, int]], placement: Placement
) -> None:
    """Each buffer lies in one pool, aligned, and with a pool without a limit all limits hold."""
    pools = [Pool(f"p{n}", need, limit) for n, (limit, need) in enumerate(given)]
    placed, plan = place(program.main, program.callees, pools, placement)
    assert plan.verified
    assert len(plan.placements) == len(program.buffers)
    used = [pool for pool in plan.pools if pool.size]
    assert len(placed.params) == len(program.main.params) + len(used)
    for number, (pool, taken) in enumerate(zip(pools, plan.pools, strict=True)):
        mine = [p for p in plan.placements if p.pool == number]
        assert all(p.offset % pool.alignment == 0 for p in mine)
        assert taken.size == max((p.offset + p.size for p in mine), default=0)
        assert taken.lower_bound <= taken.size
        if any(p.limit is None for p in pools):
            assert pool.limit is None or taken.size <= pool.limit
    assert place(program.main, program.callees, pools, placement)[1] == plan


def test_what_is_tried_is_what_is_placed() -> None:
    """Guards and alignments take what depends on the order, which is that of the program."""
    program = Program([17, 3], [0, 0])  # 0 to 17 and 96 to 99, or, in order of heat, 80 to 97
    for limit in (97, 99):
        pools = [Pool("small", 16, limit), Pool("large", 16, None)]
        _, plan = place(program.main, program.callees, pools, Placement.GUARDED)
        assert plan.pools[0].size <= limit
        assert set(where(plan).values()) == ({"small"} if limit == 99 else {"small", "large"})


def test_the_hottest_buffer_gets_the_fast_pool() -> None:
    """Of two buffers of one size the one that is used more goes first, and costs decide."""
    program = Program([8, 8, 8, 8], [0, 0, 1, 1])  # b1 is read twice, by two layers
    moved = traffic(program.main, program.callees, program.buffers)
    assert max(moved, key=lambda b: moved[b].bytes).name == "b1"
    for pools in ([FAST, SLOW], [SLOW, FAST]):
        _, plan = place(program.main, program.callees, pools, Placement.GREEDY)
        assert where(plan)["b1"] == "fast"


def test_what_is_said_of_no_pool_leaves_their_order() -> None:
    """Pools of equal cost are filled in the order of their declaration."""
    program = Program([8, 8], [0, 0])
    pools = [Pool("first", 1, 8), Pool("second", 1, None)]
    _, plan = place(program.main, program.callees, pools, Placement.GREEDY)
    assert sorted(where(plan).values()) == ["first", "second"]
    _, plan = place(program.main, program.callees, pools[::-1], Placement.GREEDY)
    assert set(where(plan).values()) == {"second"}


def test_reads_and_writes_cost_by_themselves() -> None:
    """A buffer that is mostly read avoids the pool that is slow to read."""
    program = Program([16, 1, 1, 1], [0, 0, 0, 0])
    moved = traffic(program.main, program.callees, program.buffers)
    assert moved[program.buffers[0]].read > 2 * moved[program.buffers[0]].written
    pools = [Pool("slow to read", 1, None, 4.0, 1.0), Pool("slow to write", 1, None, 1.0, 4.0)]
    _, plan = place(program.main, program.callees, pools, Placement.GREEDY)
    assert where(plan)["b0"] == "slow to write"


def test_traffic_counts_loops() -> None:
    """A layer of 5 elements in and 9 out reads and writes 18 times; calls in loops count again."""
    program = Program([5, 9], [0, 0], loop=True)
    moved = traffic(program.main, program.callees, program.buffers)
    first, second = program.buffers
    # The layer that fills b0 makes 2 passes over 7 elements, its reader 2 over 9; twice each.
    assert moved[first] == Traffic(read=2 * 18, written=2 * 14)
    assert moved[second] == Traffic(read=0, written=2 * 18)
    assert layer(5, 9).name in program.callees


def test_large_buffers_choose_first_where_hot_ones_leave_no_room() -> None:
    """A hot buffer that blocks the only pool for a large one makes room."""
    program = Program([4, 24, 4], [0, 0, 1])
    pools = [Pool("large", 1, 24, 1.0, 1.0), Pool("small", 1, 8, 2.0, 2.0)]
    _, plan = place(program.main, program.callees, pools, Placement.GREEDY)
    assert where(plan)["b1"] == "large"
    assert all(p.size <= (q.limit or 0) for p, q in zip(plan.pools, pools, strict=True))


def test_tensors_lie_where_they_are_pinned() -> None:
    """An input may be in one pool only, whatever it costs there."""
    program = Program([8, 8], [0, 0])
    ports = Ports([program.input], (), {program.input: (1,)})
    pools = [replace(FAST, limit=None), SLOW]
    _, plan = place(program.main, program.callees, pools, Placement.GREEDY, ports)
    assert where(plan) == {"input": "slow", "b0": "fast", "b1": "fast"}


def test_exhaustion_names_pool_buffers_layer_and_bytes() -> None:
    """What has room nowhere: which pool lacks how many bytes, for what, and where others stand."""
    program = Program([40, 20], [0, 0])
    pools = [Pool("dtcm", 1, 24), Pool("sram", 1, 30)]
    _, plan = place(program.main, program.callees, pools, Placement.GREEDY)
    limit = Limit("workspace_pools.size_hint_bytes", "the pool 'sram'", 30, 1)
    with pytest.raises(MemoryPlanError) as caught:
        check_workspace(limit, plan, program.main, program.callees)
    text = str(caught.value)
    expected = "arrays that fit in no other pool take 40 bytes, 10 more than the pool 'sram' has"
    assert expected in text
    assert "20 bytes of 'dtcm' are in use" in text
    assert "b0: 40 bytes from layer_7_40" in text


@settings(deadline=None, max_examples=60)
@given(programs, st.data())
def test_the_checker_refuses_what_leaves_its_pool(program: Program, data: st.DataObject) -> None:
    """Pools share no byte: the same offsets are right in two pools, and wrong behind an end."""
    blocks = [Buffer(f"pool{n}", (64,), DType.UINT8) for n in range(len(program.buffers))]
    spots = {b: (n, data.draw(st.integers(0, 64 - 40))) for n, b in enumerate(program.buffers)}
    sizes = [64] * len(blocks)
    check(program.main, relocate(program.main, blocks, spots), program.callees, sizes)
    moved = data.draw(st.sampled_from(program.buffers))
    (size,) = moved.shape
    assert isinstance(size, int)
    spots[moved] = (spots[moved][0], 64 - size + 1)
    with pytest.raises(MemoryPlanError, match="lie outside the pool"):
        check(program.main, relocate(program.main, blocks, spots), program.callees, sizes)


def test_costs_follow_from_what_is_stated() -> None:
    """A word for each cycle of the fastest clock where nothing is said; latency counts by burst."""
    pools = pools_of(
        CompilationConfig(
            targets="c -mcpu=cortex-m7",
            workspace_pools=[
                WorkspacePoolInfo("dtcm", (), {"clock_frequency_hz": 400}),
                WorkspacePoolInfo("plain", (), {"byte_alignment": 32, "size_hint_bytes": 5}),
                WorkspacePoolInfo("psram", (), {"clock_frequency_hz": 100}),
                WorkspacePoolInfo("late", (), {"read_latency_cycles": 2}),
                WorkspacePoolInfo("narrow", (), {"write_bandwidth_bytes_per_cycle": 1}),
                WorkspacePoolInfo(
                    "bursts", (), {"read_latency_cycles": 2, "target_burst_bytes": {"c": 16}}
                ),
            ],
        )
    )
    dtcm, plain, psram, late, narrow, bursts = pools
    assert (plain.alignment, plain.limit, dtcm.limit) == (32, 5, None)
    assert (dtcm.read_cost, dtcm.write_cost) == (plain.read_cost, plain.write_cost)
    assert psram.read_cost == 4 * dtcm.read_cost
    assert (late.read_cost, late.write_cost) == (3 * dtcm.read_cost, dtcm.write_cost)
    assert (narrow.read_cost, narrow.write_cost) == (dtcm.read_cost, 4 * dtcm.write_cost)
    assert bursts.read_cost == 1.5 * dtcm.read_cost


def test_canaries_count_where_pools_are_filled() -> None:
    """A buffer goes to another pool if there is no room for it between canaries."""
    program = Program([8, 8], [0, 0])
    for limit, first in ((40, ["first", "second"]), (39, ["second"])):
        pools = [Pool("first", 4, limit, canary=16), Pool("second", 4, None, canary=16)]
        _, plan = place(program.main, program.callees, pools, Placement.GREEDY)
        assert sorted(set(where(plan).values())) == first
        assert all(p.offset >= 16 for p in plan.placements)
        assert plan.pools[0].size == (40 if limit == 40 else 0)
