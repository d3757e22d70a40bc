"""A long model is compiled with work that grows with its layers, and not with what they repeat."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable, Sequence
from types import FrameType, ModuleType
from typing import Any

import pytest

from microtir import driver
from microtir.config import CompilationConfig, Target
from microtir.dtype import DType
from microtir.graph.ir import Graph, Node, Quantization, SourceLocation, Tensor, TensorType
from microtir.graph.rewriting import substitute
from microtir.lowering.shared import Shared
from microtir.memory import moments
from microtir.module.ir_module import IRModule
from microtir.module.program import Program
from microtir.operators.arithmetic.definition import Add
from microtir.plan import grouping
from microtir.plan.grouping import LONGEST_GROUP
from microtir.plan.ir import PlanConstraints
from microtir.rewrite.facts import channel_ranges

CONFIG = CompilationConfig.from_target(Target("c -mcpu=cortex-m4"))
TYPE = TensorType((1, 16), DType.INT8, Quantization((0.5,), (3,)))
SHORT = LONGEST_GROUP + 10


def chain(layers: int) -> IRModule:
    """Additions in a row, of what the one before made and of an input: no function of one."""
    first, other = Tensor("x", TYPE), Tensor("z", TYPE)
    nodes: list[Node] = []
    last = first
    for number in range(layers):
        result = Tensor(f"t{number}", TYPE)
        source = SourceLocation("chain", number, "ADD")
        nodes.append(Node(Add(), (last, other), (result,), f"n{number}", source))
        last = result
    return IRModule(graph=Graph("chain", (first, other), (last,), tuple(nodes)))


def compiled(layers: int) -> None:
    """Compile a chain to C."""
    driver.build(chain(layers).with_configuration(CONFIG))


SHARED: Sequence[tuple[ModuleType, str]] = (
    (grouping, "_taken"),  # what nests of layers take
    (moments, "orders"),  # how a layer may write over its input
    (channel_ranges, "evaluate"),  # the values that a layer may have
    (driver, "candidates"),  # the kernels of a layer, and what they cost
    (driver, "refusals"),
)


def counted(layers: int, patch: pytest.MonkeyPatch) -> Counter[str]:
    """How often what layers share is worked out for a chain."""
    found: Counter[str] = Counter()

    def counting(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
        def call(*args: Any) -> Any:
            found[name] += 1
            return function(*args)

        return call

    channel_ranges._sums_of_ends.cache_clear()
    with patch.context() as inner:
        for module, name in SHARED:
            inner.setattr(module, name, counting(name, getattr(module, name)))
        compiled(layers)
    return found


def test_what_layers_share_is_worked_out_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Twice the layers of one kind ask for nothing new."""
    short = counted(SHORT, monkeypatch)
    assert set(short) == {name for _, name in SHARED}
    assert max(short.values()) < 3 * LONGEST_GROUP
    assert counted(2 * SHORT, monkeypatch) == short


def test_equal_plans_are_compiled_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """The fastest plan and that of any code are one for these layers."""
    asked = []
    compile_once = driver.compile_once

    def counting(config: CompilationConfig, limits: PlanConstraints, *, shared: Shared) -> Program:
        asked.append(limits)
        return compile_once(config, limits, shared=shared)

    monkeypatch.setattr(driver, "compile_once", counting)
    compiled(10)
    assert [limits.code_price for limits in asked] == [1, 0]


def calls(layers: int) -> int:
    """How many functions of Python are called while a chain is compiled."""
    found = 0

    def count(_frame: FrameType, event: str, _argument: object) -> None:
        nonlocal found
        found += event == "call"

    sys.setprofile(count)
    try:
        compiled(layers)
    finally:
        sys.setprofile(None)
    return found


@pytest.mark.slow
def test_each_layer_more_takes_the_same_work() -> None:
    """No stage looks at all layers for each of them."""
    compiled(SHORT)  # templates, and what else a process does once
    short, longer, longest = (calls(SHORT + more) for more in (0, 25, 50))
    assert longest - longer < 1.1 * (longer - short)


def test_a_node_without_another_tensor_is_the_same() -> None:
    """Passes over long graphs make nothing anew where nothing changes."""
    graph = chain(2).graph
    assert graph is not None
    first, second = graph.nodes
    other = Tensor("other", TYPE)
    assert substitute(first, {second.output: other}) is first
    assert substitute(second, {second.output: other}).output is other
