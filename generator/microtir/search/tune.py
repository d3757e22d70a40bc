"""Measures every kernel that could compute an operator of a model, on an emulated board.

A round is a build of the whole model in which each operator takes a kernel that was not tried yet;
one run of it measures them all, exactly, so that as many rounds as the richest operator has
kernels say everything.  The rounds are known before the first one is measured: what a plan takes
when all tried kernels are said to cost too much.  So they run side by side, on processes of this
machine or wherever an executor sends them, and each is recorded as soon as it is done.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Executor, as_completed
from dataclasses import dataclass

from microtir import driver
from microtir.boards import load_board
from microtir.config import Budget, CompilationConfig, Measure, Optimize
from microtir.graph.ir import Graph
from microtir.module.ir_module import IRModule
from microtir.plan.ir import Plan, PlannedOperator
from microtir.plan.measured import Cost, Key, Measured, signature
from microtir.profiling.profile import profile

_TRIED = Cost(1 << 40)  # more than any kernel takes, so that one not tried is preferred


@dataclass(frozen=True, slots=True)
class Round:
    """A program to measure, with everything that a worker on another machine needs.

    Attributes:
        graph: of the model.
        config: with what the rounds have in common.
        records: what makes the plan take the kernels of this round.
        keys: what it measures.
    """

    graph: Graph
    config: CompilationConfig
    records: Measured
    keys: frozenset[Key]


def rounds(module: IRModule, config: CompilationConfig, known: Measured) -> Iterator[Round]:
    """Yield the rounds that measure what records do not know yet.

    Args:
        module: a model as a frontend made it.
        config: of the user; its goal, measure and budget play no part.
        known: what was measured before.

    Raises:
        MicrotirError: the model cannot be compiled.
    """
    assert module.graph is not None, "a frontend read the graph"
    plain = config.with_(
        optimize=Optimize.SPEED, measure=Measure.INSTRUCTIONS, budget=Budget(), tuning_records=""
    )
    tried = dict.fromkeys(known.costs, _TRIED)
    while True:
        records = Measured(known.target, dict(tried))
        lowered = driver.lower(module.with_configuration(plain), records=records)
        keys = frozenset(_keys(lowered.require_program("tune").plan).values())
        fresh = keys - tried.keys()
        if not fresh:
            return
        yield Round(module.graph, plain, records, fresh)
        tried.update(dict.fromkeys(fresh, _TRIED))


def tune(
    todo: list[Round],
    board: str,
    timeout: float,
    known: Measured,
    executor: Executor,
    done: Callable[[Measured, int], None],
) -> Measured:
    """Measure rounds and return all records.

    Args:
        todo: the rounds.
        board: name of an emulated board.
        timeout: seconds of one run.
        known: what was measured before.
        executor: where rounds run; a pool of processes, or one of a cluster.
        done: called after each round with all records so far and the number of rounds measured.

    Raises:
        MicrotirError: a program cannot be built or run.
    """
    futures = [executor.submit(measure, one, board, timeout) for one in todo]
    try:
        for number, future in enumerate(as_completed(futures), 1):
            known = known.joined(future.result())
            done(known, number)
    finally:
        for future in futures:
            future.cancel()
    return known


def measure(one: Round, board: str, timeout: float) -> Mapping[Key, Cost]:
    """Build a round, run it, and return what its kernels took.

    Raises:
        MicrotirError: the program cannot be built or run.
    """
    module = IRModule(graph=one.graph, config=one.config)
    artifact = driver.build(module, records=one.records)
    keys = _keys(artifact.module.require_program("tune").plan)
    names = [layer.function for layer in artifact.metadata.layers]
    images = artifact.metadata.images  # records are of one
    measured = {
        layer.function: Cost(layer.instructions // images, layer.cycles // images)
        for layer in profile(artifact, load_board(board), timeout=timeout).layers
    }
    costs: dict[Key, Cost] = {}
    for function, key in zip(names, keys.values(), strict=True):
        if key in one.keys:
            candidates = (measured[function], costs.get(key, measured[function]))
            costs[key] = min(candidates, key=lambda cost: cost.instructions)
    return costs


def _keys(plan: Plan) -> dict[PlannedOperator, Key]:
    """Return what the functions of a plan measure, in their order."""
    return {
        operator: Key(signature(operator.node), operator.candidate.name)
        for operator in plan.operators
        if not operator.candidate.is_view
    }
