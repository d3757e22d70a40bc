"""What is said to help does: every flag that is named is tried again, and its figure is true."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

import microtir
from microtir.artifact import Artifact
from microtir.config import Budget, CompilationConfig, WorkspacePoolInfo, config_from_flags
from microtir.errors import LimitError, Resource
from microtir.graph.ir import Graph
from microtir.lowering.ports import io_bytes
from microtir.operators.pooling.definition import MaxPool2D
from microtir.search.suggestions import (
    Advice,
    BoardRam,
    Suggestion,
    SuggestionOutcome,
    _Trials,
    advice,
)
from tests.driver.test_bands import wide_graph
from tests.driver.test_orders import dense_branches
from tests.integration.test_limits import layered_graph
from tests.support.graphs import graph as make_graph
from tests.support.small_models import module_of
from tests.support.streams import Garden

M4 = CompilationConfig(targets="c -mcpu=cortex-m4")


def refusal(model: Graph, config: CompilationConfig) -> LimitError:
    """How a model is refused."""
    with pytest.raises(LimitError) as caught:
        microtir.build(module_of(model), config)
    return caught.value


def advised(model: Graph, config: CompilationConfig, memories: tuple[BoardRam, ...] = ()) -> Advice:
    """Return what helps a model that is refused, with time for everything."""
    error = refusal(model, config)
    module = module_of(model).with_configuration(config)
    return advice(module, error, memories=memories, seconds=600)


def with_flags(suggestion: Suggestion, config: CompilationConfig) -> CompilationConfig:
    """Return what somebody gets who types the flags."""
    return config_from_flags(dict(suggestion.flags), config)


def workspace(artifact: Artifact) -> int:
    """Bytes of the workspace."""
    facts = artifact.metadata.memory
    assert facts is not None
    return facts.workspace_size


def smallest(model: Graph, config: CompilationConfig) -> int:
    """Bytes of the workspace at --optimize ram-least."""
    free = config.without_limits().with_(optimize="ram-least")
    return workspace(microtir.build(module_of(model), free))


def fitting(found: Advice) -> dict[str, SuggestionOutcome]:
    """Return what is enough by itself, by its flags."""
    return {outcome.suggestion.text: outcome for outcome in found.outcomes if outcome.fits}


def test_an_order_that_helps_is_named() -> None:
    """Where operators keep the file's order, another one is tried, and it fits as promised."""
    model = dense_branches(4)
    config = M4.with_(pass_config={"memory.reorder": False})
    less = smallest(model, M4)
    assert less < smallest(model, config)
    tight = config.with_(budget=Budget(ram=less))
    found = fitting(advised(model, tight))
    outcome = found["--pass-config memory.reorder=1"]
    assert (outcome.taken, outcome.allowed) == (less, less)
    built = microtir.build(module_of(model), with_flags(outcome.suggestion, tight))
    assert workspace(built) <= less


def test_work_done_twice_is_named_with_its_price() -> None:
    """The first percentage that is enough ends it; what is not enough says what is missing."""
    model = wide_graph(1)
    bands = M4.with_(pass_config={"memory.recompute": 50})
    less = smallest(model, bands)
    tight = M4.with_(budget=Budget(ram=less))
    found = advised(model, tight)
    outcome = fitting(found)["--pass-config memory.recompute=50"]
    assert outcome.taken == less and "% more multiply-accumulates" in outcome.again
    assert (
        workspace(microtir.build(module_of(model), with_flags(outcome.suggestion, tight))) <= less
    )
    for other in found.outcomes:
        assert other.fits or "still " in other_line(found, other)
    tighter = advised(model, M4.with_(budget=Budget(ram=less - 1)))
    line = next(text for text in tighter.lines() if "recompute=50" in text)
    assert f"{less:,} bytes: still 1 too many" in line


def other_line(found: Advice, outcome: SuggestionOutcome) -> str:
    """Return the line of an outcome."""
    return found.lines()[found.outcomes.index(outcome)]


def test_inputs_may_leave_the_workspace() -> None:
    """A configuration that places them there is told what it takes without, and fed by rows."""
    garden = Garden(1)
    x = garden.tensor((1, 16, 16, 4))
    garden.add(MaxPool2D((4, 4), (4, 4)), [x], (1, 4, 4, 4))
    garden.add(MaxPool2D((2, 2), (2, 2)), [garden.made[-1]], (1, 2, 2, 4))
    model = make_graph(garden.nodes, [x], [garden.made[-1]])
    inside = M4.with_(pass_config={"memory.use_workspace_io": True})
    least = smallest(model, inside)
    tight = inside.with_(budget=Budget(ram=least - 1))
    found = fitting(advised(model, tight))
    flag = "--pass-config memory.use_workspace_io=0"
    assert {flag, f"--executor-aot-row-fed-inputs 1 {flag}"} <= set(found)
    for outcome in found.values():
        built = microtir.build(module_of(model), with_flags(outcome.suggestion, tight))
        assert workspace(built) <= least - 1


def test_what_leaves_the_workspace_stays_in_the_memory() -> None:
    """Where the budget is a board's memory, inputs outside of the workspace take of it, too.

    They were said to fit as soon as they had left the workspace.
    """
    garden = Garden(1)
    x = garden.tensor((1, 16, 16, 4))
    garden.add(MaxPool2D((4, 4), (4, 4)), [x], (1, 4, 4, 4))
    model = make_graph(garden.nodes, [x], [garden.made[-1]])
    inside = M4.with_(pass_config={"memory.use_workspace_io": True})
    memory = smallest(model, inside) - 1
    module = module_of(model).with_configuration(inside.with_(budget=Budget(ram=memory)))

    def room_of(config: CompilationConfig) -> int:
        return memory - io_bytes(model, config)

    error = refusal(model, module.require_config("test"))
    outside = "--pass-config memory.use_workspace_io=0"
    for given, fits in ((None, True), (room_of, False)):
        found = advice(module, error, room_of=given)
        assert (outside in [o.suggestion.text for o in found.outcomes if o.fits]) is fits


def test_another_budget_may_be_what_is_in_the_way() -> None:
    """Two budgets that no program keeps to together: how large the other one has to be."""
    model = layered_graph()
    free = {
        goal: microtir.build(module_of(model), M4.with_(optimize=goal))
        for goal in ("ram-least", "flash")
    }
    ram, flash = workspace(free["ram-least"]), free["flash"].flash().bytes
    assert ram < workspace(free["flash"]) and flash < free["ram-least"].flash().bytes
    tight = M4.with_(budget=Budget(ram=ram, flash=flash))
    other = {Resource.WORKSPACE: "flash", Resource.FLASH: "ram"}[refusal(model, tight).resource]
    found = fitting(advised(model, tight))
    (outcome,) = (o for text, o in found.items() if f"--{other}-budget" in text)
    microtir.build(module_of(model), with_flags(outcome.suggestion, tight))


def test_another_memory_of_the_board_is_a_pool() -> None:
    """A pool that is too small is joined by the memory that the board has beside it."""
    model = layered_graph()
    size = smallest(model, M4) - 4
    tcm = WorkspacePoolInfo("dtcm", (), {"size_hint_bytes": size, "section": ".dtcm"})
    tight = M4.with_(workspace_pools=[tcm])
    memories = (BoardRam("dtcm", size), BoardRam("sram", 4000))
    found = fitting(advised(model, tight, memories))
    (outcome,) = (o for text, o in found.items() if "--workspace-pools sram" in text)
    config = with_flags(outcome.suggestion, tight)
    assert config.workspace_pools[0] == tcm
    assert config.workspace_pools[1].size_limit == 4000
    microtir.build(module_of(model), config)


def test_what_is_not_enough_alone_is_tried_together(monkeypatch: pytest.MonkeyPatch) -> None:
    """The best of each kind, with all their notes, and no kind twice."""

    def bytes_taken(_: object, config: CompilationConfig) -> tuple[int, str]:
        options = config.pass_config
        size = 900 - 2 * options.recompute - 300 * (not options.use_workspace_io)
        return size, "work" if options.recompute else ""

    monkeypatch.setattr(_Trials, "bytes_taken", bytes_taken)
    monkeypatch.setattr(_Trials, "promises", lambda *_: True)
    model = wide_graph(1)
    tight = M4.with_(pass_config={"memory.use_workspace_io": True}, budget=Budget(ram=510))
    error = LimitError(
        "", where="budget.ram", legal="", fix="", taken=900, allowed=510, least=900,
        resource=Resource.WORKSPACE,
    )  # fmt: skip
    found = advice(module_of(model).with_configuration(tight), error, seconds=600)
    assert [(o.taken, o.fits) for o in found.outcomes] == [
        (880, False), (800, False), (600, False), (600, False), (500, True),
    ]  # fmt: skip
    together = found.outcomes[-1].suggestion
    assert together.flags["--pass-config"] == ("memory.recompute=50", "memory.use_workspace_io=0")
    assert found.outcomes[-1].again == "work"
    assert together.note == (
        "the application passes rows; the application then has inputs and outputs"
    )


def test_time_is_bounded_and_what_is_left_out_is_said() -> None:
    """One suggestion is tried in any case; then the clock decides."""
    model = wide_graph(1)
    config = M4.with_(budget=Budget(ram=100), pass_config={"memory.use_workspace_io": True})
    error = refusal(model, config)
    module = module_of(model).with_configuration(config)

    def hours() -> Iterator[float]:
        now = 0.0
        while True:
            yield now
            now += 3600

    clock = hours()
    found = advice(module, error, clock=lambda: next(clock))
    assert found.tried == 1 and found.left_out
    left = [line for line in found.lines() if line.endswith(": not tried, for time")]
    assert len(left) == len(found.left_out)


def test_lines_are_columns() -> None:
    """Flags to the left, figures under each other."""
    short, long = Suggestion("a", {"-a": ("1",)}), Suggestion("b", {"--long": ("1",)}, "a note")
    found = Advice(
        (SuggestionOutcome(short, 900, 1000), SuggestionOutcome(long, 12_345, 1000)), 2, ()
    )
    assert found.lines() == (
        "-a 1         900 bytes: fits",
        "--long 1  12,345 bytes: still 11,345 too many; a note",
    )
    assert Advice((), 3, ()).lines() == ("3 other options, none of them helps",)


def test_a_refusal_with_lines_reads_as_one_message() -> None:
    """The lines follow under `tried`, each under the other."""
    error = refusal(layered_graph(), M4.with_(budget=Budget(ram=10)))
    text = str(error.with_tried(["first", "second"]))
    assert text == f"{error}\n  tried:    first\n            second"
