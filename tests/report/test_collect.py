"""Facts about real plans, against what one counts by hand."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import combinations
from pathlib import Path

import pytest

import microtir
from microtir import CompilationConfig, IRModule, Target
from microtir.config.enums import Optimize
from microtir.dtype import DType
from microtir.errors import MicrotirError, UsageError
from microtir.report import summary
from microtir.report.buffers import kind_of
from microtir.report.collect import describe
from microtir.report.data import BufferKind, Excess, Report, ReportedBuffer, ReportedLimit
from microtir.report.excesses import with_excesses
from microtir.search.estimates import estimated_cost
from microtir.tir import ir
from tests.support.networks_over_time import named_network
from tests.support.report_facts import pool, report
from tests.support.small_models import branching_graph, module_of, quantised_graph, tiny_graph
from tests.support.streams import Garden

DIGITS = Path(__file__).parents[2] / "examples" / "digits" / "digits_int8.tflite"
PORTABLE = CompilationConfig.from_target(Target("c"))


def described(module: IRModule, **changes: object) -> Report:
    """Return the report of a module for the portable target."""
    return describe(module.with_configuration(PORTABLE.with_(**changes)))


@pytest.fixture(scope="module")
def quantised() -> Report:
    """CONV_2D to 1x3x4x3, a view of it, FULLY_CONNECTED to 5 values."""
    return described(module_of(quantised_graph()), optimize="ram-least")


def test_layers(quantised: Report) -> None:
    """Each operator with its shapes, work and bytes; a view has no code."""
    facts = [
        (x.number, x.operator, x.inputs, x.outputs, x.macs, x.bytes_in, x.bytes_out)
        for x in quantised.layers
    ]
    assert facts == [
        ("0", "CONV_2D", ("1x3x4x1",), ("1x3x4x3",), 36 * 9, 12, 36),
        ("1", "RESHAPE", ("1x3x4x3",), ("1x36",), 0, 0, 0),
        ("2", "FULLY_CONNECTED", ("1x36",), ("1x5",), 36 * 5, 36, 5),
    ]
    assert [x.kernel for x in quantised.layers] == ["direct", "view", "direct"]
    assert [x.has_code for x in quantised.layers] == [True, False, True]


def test_reasons(quantised: Report) -> None:
    """Why each layer has its kernel, and what was against every other one."""
    convolution, view, _ = quantised.layers
    assert convolution.choice and convolution.choice.reason.startswith("the best of")
    found = {other.name: other for other in convolution.alternatives}
    assert found["accumulate"].reason == "takes other windows"
    assert found["accumulate"].instructions is None
    assert found["conv_s8_4x2_c"].instructions and found["conv_s8_4x2_c"].cycles
    assert (view.choice, view.alternatives) == (None, ())


def test_the_only_buffer(quantised: Report) -> None:
    """The tensor between the layers: whose it is, where it lies, when it is in use."""
    (pool,) = quantised.pools
    (buffer,) = pool.buffers
    assert (buffer.kind, buffer.content) == (BufferKind.ACTIVATION, "features 1x3x4x3 int8")
    assert (buffer.offset, buffer.size, buffer.at_peak) == (0, 36, 36)
    assert (buffer.first_step, buffer.last_step, buffer.written, buffer.used) == (0, 1, 0, 1)
    assert [(s.first, s.last, s.low, s.high) for s in buffer.spans] == [(0, 1, 0, 36)]
    assert (pool.size, pool.lower_bound, pool.gap, pool.is_verified) == (36, 36, 0, True)


def test_ports_are_the_callers(quantised: Report) -> None:
    """Input and output with the steps that need them, in the caller's memory."""
    assert [(p.name, p.bytes, p.first_step, p.last_step) for p in quantised.ports] == [
        ("image", 12, 0, 0), ("scores", 5, 1, 1),
    ]  # fmt: skip
    assert not any(port.is_in_workspace for port in quantised.ports)


def test_ports_in_the_workspace() -> None:
    """With `use_workspace_io` ports are buffers of the map, of a kind of their own."""
    found = described(module_of(quantised_graph()), pass_config={"memory.use_workspace_io": True})
    kinds = {buffer.name: buffer.kind for buffer in found.pools[0].buffers}
    assert kinds["image"] is BufferKind.INPUT
    assert kinds["scores"] is BufferKind.OUTPUT
    assert all(port.is_in_workspace for port in found.ports)


def test_weights_are_those_of_the_c(quantised: Report) -> None:
    """The arrays add up to what the header says; each layer has its own."""
    assert quantised.weights_bytes == sum(constant.bytes for constant in quantised.constants)
    assert quantised.weights_bytes == sum(layer.weight_bytes for layer in quantised.layers)
    assert quantised.constants[0].bytes == 5 * 36
    assert quantised.constants[0].layers == "2"


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("goal", [Optimize.BALANCED, Optimize.RAM_LEAST])
def test_boxes_never_lie_over_each_other(seed: int, goal: Optimize) -> None:
    """Outside of nests no two buffers show the same byte at the same step; all lie in the pool.

    At the step that reads an input for the last time the output may be written over it.
    """
    found = described(module_of(Garden(seed).graph(7)), optimize=goal)
    (pool,) = found.pools
    assert all(0 <= s.low < s.high <= pool.size for b in pool.buffers for s in b.spans)
    inside = {step for s in found.streams for step in range(s.first, s.last + 1)}
    for step in set(range(len(found.steps))) - inside:
        _assert_apart(pool.buffers, step)
    assert sum(buffer.at_peak for buffer in pool.buffers) <= pool.lower_bound


def _assert_apart(buffers: Sequence[ReportedBuffer], step: int) -> None:
    spans = [s for b in buffers for s in b.spans if s.first <= step <= s.last]
    for a, b in combinations(spans, 2):
        is_taken_over = a.last == step == b.first or b.last == step == a.first
        assert is_taken_over or a.high <= b.low or b.high <= a.low, (step, a, b)


def test_streaming_groups_have_rings() -> None:
    """Layers that run row by row are one stream, and say so; a ring says how many rows it has."""
    found = described(module_of(Garden(3, height=12).graph(8)), optimize=Optimize.RAM_LEAST)
    assert found.streams
    rings = [b for b in found.pools[0].buffers if b.kind is BufferKind.RING]
    assert rings and all(b.content.endswith(" rows") for b in rings)
    streamed = [layer.number for layer in found.layers if layer.is_streamed]
    at = {step for s in found.streams for step in range(s.first, s.last + 1)}
    assert streamed == [found.steps[step].label for step in sorted(at)]
    assert found.least == found.workspace


def test_the_least_is_that_of_optimize_ram() -> None:
    """A report for another goal says what `--optimize ram` takes."""
    graph = Garden(3, height=12).graph(8)
    least = described(module_of(graph), optimize=Optimize.RAM_LEAST).workspace
    found = described(module_of(graph), optimize=Optimize.SPEED)
    assert found.least == least < found.workspace


def test_an_exceeded_budget_is_reported_by_the_nearest_plan() -> None:
    """What does not fit is described by the plan that exceeds limits least, with its layers."""
    module = module_of(branching_graph())
    least = described(module, optimize="ram-least")
    found = described(module, budget={"ram": 10, "flash": 20, "stack": 30})
    assert not found.fits
    ram, flash, stack = found.limits
    assert ram == ReportedLimit("budget.ram", "workspace", 10, least.workspace)
    assert flash.what == "weights and the estimated code"
    assert flash.used == found.weights_bytes + found.code_bytes
    assert stack.used > 30
    over = {e.option for layer in found.layers for e in layer.exceeds}
    assert over == {"budget.ram", "budget.stack"}
    most = max(e.bytes for x in found.layers for e in x.exceeds if e.option == "budget.ram")
    # Buffers that may lie over each other in part need not do so.
    assert least.pools[0].lower_bound <= most + 10 <= least.workspace
    table = summary.layer_table(found)
    assert table.columns[1] == "exceeds"
    assert any(f"budget.ram by {most}" in row[1] for row in table.rows)
    assert "exceeds" not in summary.layer_table(least).columns


def test_layers_that_only_gaps_make_too_large() -> None:
    """Bytes in use count, each once; where none are too many, what lies beyond the limit does."""
    limit, steps = ReportedLimit("budget.ram", "workspace", 95, 100), report().steps
    found = with_excesses(report().layers, steps, [(limit, [pool()])], None, ())
    # 90 bytes are in use in layer 1, up to byte 100.
    assert [x.exceeds for x in found] == [(), (Excess("budget.ram", 5),), (), ()]
    tight = replace(limit, allowed=45)
    found = with_excesses(report().layers, steps, [(tight, [pool()])], None, ())
    assert [[e.bytes for e in x.exceeds] for x in found] == [[], [45], [], [15]]


def test_a_compiler_and_a_board_may_say_more() -> None:
    """Code as compiled, and limits of whoever knows the board."""
    module = module_of(tiny_graph()).with_configuration(PORTABLE)
    extra = ReportedLimit("board ram", "everything", 5, 7)
    found = describe(module, compiler=lambda _: 321, limits_of=lambda *_: [extra])
    assert found.code_is_compiled and found.code_bytes == 321
    assert found.limits == (extra,) and not found.fits
    code = dict(summary.facts(found))["code"]
    assert code == "321 bytes of flash, by the board's compiler with -O2"


def test_a_pool_may_be_too_small() -> None:
    """The size of the pool is a limit, too; one that is met leaves bytes free."""
    pools = [{"pool_name": "sram", "pool_info_properties": {"size_hint_bytes": 100}}]
    found = described(module_of(quantised_graph()), workspace_pools=pools)
    (limit,) = found.limits
    assert (limit.option, limit.free, found.fits) == ("pool sram", 46, True)
    tight = PORTABLE.with_(workspace_pools=pools, budget={"ram": 3})
    assert tight.without_limits().budget.ram is None
    assert tight.without_limits().workspace_pools[0].size_limit is None


def test_constant_pools_are_facts() -> None:
    """Bytes, section and whose they are; one that is too small is described all the same."""
    passed = {"pool_name": "qspi", "pool_info_properties": {"size_hint_bytes": 100}}
    inside = {"is_internal": True, "section": ".itcm"}
    rest = {"pool_name": "rest", "pool_info_properties": inside}
    found = described(module_of(quantised_graph()), constant_pools=[passed, rest])
    first, second = found.constant_pools
    assert (first.name, second.section) == ("qspi", ".itcm") and 0 < first.size <= 100
    rows = summary.facts(found)
    size = first.size
    assert ("constants qspi", f"{size} bytes of the weights, passed by the application") in rows
    limit = f"{size} of 100 bytes for the weights in the pool, {100 - size} free"
    assert ("constants qspi", limit) in rows
    own = f"{second.size} bytes of the weights, arrays of the code, section .itcm"
    assert ("constants rest", own) in rows
    tight = described(module_of(quantised_graph()), constant_pools=[passed])
    (exceeded,) = tight.limits
    assert exceeded.option == "constants qspi" and exceeded.free < 0 and not tight.fits


def test_what_a_buffer_is_for() -> None:
    """Functions tell: scratch is nobody's tensor, a ring has fewer slots than the tensor rows."""
    x, y = (ir.Buffer(name, (2, 8), DType.INT8) for name in ("x", "y"))
    body = ir.Seq(())
    plain = ir.PrimFunc("f", (x, y), body)
    rows = ir.PrimFunc("g", (x, y), body, rows={y: ir.RowAccess(1, 0, 1, 9)})
    partial = replace(plain, origin=ir.Origin("MEAN", "mean", 0, is_partial=True))
    assert kind_of([(plain, x)]) is BufferKind.ACTIVATION
    assert kind_of([(replace(plain, scratch=y), y)]) is BufferKind.SCRATCH
    assert kind_of([(plain, y), (rows, y)]) is BufferKind.RING
    assert kind_of([(partial, y)]) is BufferKind.SUMS


def test_pushes_stand_beside_the_whole_window() -> None:
    """A stream says what it computes, which layers pad, what that fixes, and what it takes."""
    module = module_of(named_network("strided_same", DType.INT8))
    whole, streamed = described(module), described(module, stream_axis="1")
    pushes = streamed.pushes
    assert whole.pushes is None and pushes is not None
    assert (pushes.frames, pushes.window) == (1, 21)
    assert pushes.macs == sum(layer.macs for layer in whole.layers)
    assert pushes.macs_computed == sum(layer.macs for layer in streamed.layers)
    assert pushes.whole.ram == whole.ram.of_model
    # Four taps with a stride of two, three around each row, and one: the last does not pad.
    assert [(x.number, x.rows, x.computed, x.is_padded) for x in pushes.layers] == [
        ("0", 11, 3, True), ("1", 11, 5, True), ("2", 11, 5, False), ("4", 1, 1, False),
    ]  # fmt: skip
    said = dict(summary.facts(streamed))
    floor = f"{pushes.macs_computed / pushes.macs:.3f}"
    assert said["padded in time"].startswith("layers 0 CONV_2D (3 of 11 rows), 1 DEPTHWISE_CONV_2D")
    assert said["padded in time"].endswith(f"every push takes at least {floor} of the MACs")
    assert said["of the MACs"].endswith(f", {floor}")
    assert "a push" not in dict(summary.facts(whole))


def test_without_padding_in_time_there_is_no_floor() -> None:
    """Nor with causal padding, where the newest row alone is read."""
    streamed = described(module_of(named_network("valid", DType.INT8)), stream_axis="1")
    assert "a push" in dict(summary.facts(streamed))
    assert "padded in time" not in dict(summary.facts(streamed))


@pytest.mark.parametrize("goal", ["ram", "ram-least"])
def test_work_is_counted_once(goal: str) -> None:
    """Also of layers of two functions: plan, metadata, searches and report have one sum."""
    pooled = module_of(Garden(18).graph(6))
    artifact = microtir.build(pooled, CompilationConfig(targets="c", optimize=goal))
    model, layers = artifact.module.model, artifact.metadata.layers
    assert model is not None and len({layer.index for layer in layers}) < len(layers)
    found = described(pooled, optimize=goal)
    expected = sum(layer.choice.instructions or 0 for layer in found.layers if layer.choice)
    assert expected == sum(decision.instructions for decision in model.decisions.values())
    assert expected == sum(layer.choice.instructions for layer in layers if layer.choice)
    assert expected == estimated_cost(artifact).instructions
    macs = [(layer.macs, layer.macs_executed, layer.macs_recomputed) for layer in layers]
    assert [sum(column) for column in zip(*macs, strict=True)] == [
        sum(getattr(layer, name) for layer in found.layers)
        for name in ("macs", "macs_executed", "macs_recomputed")
    ]


def test_reports_are_equal() -> None:
    """The same model gives the same facts, which JSON can hold."""
    first, second = (described(module_of(tiny_graph())) for _ in range(2))
    assert first == second
    assert first.to_dict()["pools"][0]["buffers"][0]["kind"] == "activation"


def test_functions_are_no_model() -> None:
    """A module without a graph is refused with a diagnostic."""
    with pytest.raises(UsageError, match="no graph"):
        describe(IRModule(functions=(), config=PORTABLE))


def test_other_diagnostics_pass() -> None:
    """What has nothing to do with limits is raised as the driver raises it."""
    with pytest.raises(MicrotirError, match="CompilationConfig"):
        describe(module_of(tiny_graph()))
