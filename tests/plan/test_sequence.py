"""Orders of operators: as good as the best of all orders, and as given where none is better."""

from __future__ import annotations

import random
from collections.abc import Iterator

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from microtir.plan import sequence
from microtir.plan.sequence import Demand, State, Use, best_order, depth_first

SEEDS = st.integers(0, 2**32)


def demand(seed: int, operators: int) -> Demand:
    """A random graph: tensors with several readers, scratch, overlaps, outputs inside."""
    rng = random.Random(seed)
    has_input = rng.random() < 0.7
    sizes, uses = [rng.randint(1, 20) if has_input else 0], []
    for number in range(operators):
        near = max(0, len(sizes) - 4) if rng.random() < 0.7 else 0
        count = rng.choice([1, 1, 1, 2, 2, 3])
        reads = sorted({rng.randrange(near, len(sizes)) for _ in range(count)})
        sizes.append(rng.choice([1, 2, 5, 10, 20, rng.randint(1, 30)]))
        written = number + 1
        saved = tuple(
            (x, written, rng.randint(0, min(sizes[x], sizes[written])))
            for x in reads
            if rng.random() < 0.5
        )
        after = sum(1 << x - 1 for x in reads if x)
        uses.append(Use(after, tuple(reads), (written,), rng.choice([0, 0, 3, 8]), saved))
    read = {x for use in uses for x in use.reads}
    kept = [x for x in range(1, len(sizes)) if x not in read or rng.random() < 0.05]
    return Demand(uses, sizes, [0] if has_input else [], kept)


def ready(graph: Demand, done: int) -> Iterator[int]:
    """The operators that could run next."""
    for number, use in enumerate(graph.uses):
        if not done >> number & 1 and not use.after & ~done:
            yield number


def lowest_peak(graph: Demand) -> int:
    """Of all orders, one by one."""
    best = graph.peak(range(len(graph.uses)))

    def go(state: State) -> None:
        nonlocal best
        if state.peak < best:
            if state.done == (1 << len(graph.uses)) - 1:
                best = state.peak
            for number in ready(graph, state.done):
                go(graph.run(state, number))

    go(graph.start)
    return best


def assert_legal(graph: Demand, order: tuple[int, ...]) -> None:
    """Every operator once, behind those whose results it needs."""
    done = 0
    for number in order:
        assert number in ready(graph, done)
        done |= 1 << number
    assert done == (1 << len(graph.uses)) - 1


def cells(branches: int, depth: int, count: int) -> Demand:
    """Cells of chains that widen and narrow, level by level, each joined to one tensor."""
    rng = random.Random(branches)
    sizes, uses, heads = [100], [], [0] * branches

    def add(reads: tuple[int, ...], size: int) -> int:
        after = sum(1 << x - 1 for x in set(reads) if x)
        sizes.append(size)
        uses.append(Use(after, tuple(dict.fromkeys(reads)), (len(sizes) - 1,)))
        return len(sizes) - 1

    for _ in range(count):
        for _ in range(depth - 1):
            heads = [add((head,), rng.choice([20, 50, 100, 300])) for head in heads]
        heads = [add((head,), 10) for head in heads]
        heads = [add(tuple(heads), 100)] * branches
    return Demand(uses, sizes, [0], [len(sizes) - 1])


@settings(deadline=None, max_examples=200)
@given(SEEDS, st.integers(2, 8))
def test_no_order_has_a_lower_peak(seed: int, operators: int) -> None:
    """The order that is found is legal, and as low as the best of all."""
    graph = demand(seed, operators)
    order = best_order(graph)
    assert_legal(graph, order)
    assert graph.peak(order) == lowest_peak(graph)


@settings(deadline=None, max_examples=100)
@given(SEEDS, st.integers(4, 9))
def test_the_exact_search_needs_no_other(seed: int, operators: int) -> None:
    """Chains that are joined and operators that run at once leave a best order."""
    graph = demand(seed, operators)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sequence._Search, "beam", lambda _search, _below: None)
        assert graph.peak(best_order(graph)) == lowest_peak(graph)


def test_wide_segments_are_left_to_the_beam() -> None:
    """Beyond the limit the order is legal, better than the given one, and the same every time."""
    graph = cells(branches=14, depth=5, count=2)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sequence._Search, "exact", lambda _search, _below: None)
        beam = best_order(graph)
    order = best_order(graph)
    assert_legal(graph, order)
    assert order == best_order(graph)
    given_peak = graph.peak(range(len(graph.uses)))
    assert graph.peak(order) <= graph.peak(beam) < 0.5 * given_peak


def test_what_is_not_better_stays_as_given() -> None:
    """Orders change where a segment gains by it, and nowhere else."""
    changed = 0
    for seed in range(200):
        graph = demand(seed, 7)
        order, as_given = best_order(graph), tuple(range(7))
        gains = lowest_peak(graph) < graph.peak(as_given)
        changed += gains
        # A second search finds nothing that the first one has left.
        mapped = {old: new for new, old in enumerate(order)}
        again = Demand(
            [
                Use(
                    sum(1 << mapped[n] for n in range(7) if use.after >> n & 1),
                    use.reads,
                    use.writes,
                    use.scratch,
                    use.saved,
                )
                for use in (graph.uses[number] for number in order)
            ],
            graph.sizes,
            [0] if graph.start.alive else [],
            graph.lasting,
        )
        assert best_order(again) == as_given
        assert gains <= (order != as_given)
    assert changed >= 50


@settings(deadline=None, max_examples=50)
@given(SEEDS, st.integers(1, 9))
def test_depth_first_is_legal(seed: int, operators: int) -> None:
    """Every operator once, behind those whose results it needs."""
    graph = demand(seed, operators)
    assert_legal(graph, depth_first(graph))


def test_depth_first_keeps_chains_together() -> None:
    """Three chains that a file has level by level run one after another."""
    graph = cells(branches=3, depth=3, count=1)
    assert depth_first(graph) == (0, 3, 6, 1, 4, 7, 2, 5, 8, 9)
