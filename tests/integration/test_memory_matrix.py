"""The matrix of memory: poison and guard zones for every pair of what decides where bytes lie.

Each row is a random graph with corners that models rarely have.  It is built with a gap around
every buffer and runs under sanitizers, and as it is used, optimised; both on workspaces of 0xA5
and of 0x5A.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

import pytest

import microtir
from microtir import CompilationConfig, Executor
from microtir.artifact import Artifact
from microtir.config import ConstantPoolInfo, WorkspacePoolInfo
from microtir.errors import ConfigError
from microtir.graph.ir import Graph
from tests.support.odd_graphs import odd_graph
from tests.support.pairs import Axes, Row, covering_rows
from tests.support.seeds import seeds
from tests.support.small_models import module_of, sample_inputs
from tests.support.watched import check_repeated, check_sanitized

_INTERNAL = {"is_internal": True}
WORKSPACES: Mapping[object, tuple[WorkspacePoolInfo, ...]] = MappingProxyType({
    "one": (),
    "two": (WorkspacePoolInfo("dtcm-2", (), {"size_hint_bytes": 300}), WorkspacePoolInfo("sram")),
    "internal": (WorkspacePoolInfo("ram", (), _INTERNAL),),
    "mixed": (
        WorkspacePoolInfo("dtcm", (), {**_INTERNAL, "size_hint_bytes": 300}),
        WorkspacePoolInfo("sram"),
        WorkspacePoolInfo("psram", (), {"read_latency_cycles": 4}),
    ),
})  # fmt: skip
CONSTANTS: Mapping[object, tuple[ConstantPoolInfo, ...]] = MappingProxyType({
    "linked": (),
    "passed": (ConstantPoolInfo("flash"),),
    "both": (
        ConstantPoolInfo("itcm", (), {**_INTERNAL, "size_hint_bytes": 60}),
        ConstantPoolInfo("flash"),
    ),
})  # fmt: skip
ROWS = ("row-fed-inputs", "row-drained-outputs")
AXES: Axes = MappingProxyType({
    "executor": ("aot", "graph", "debug"),
    "interface-api": (None, "packed"),
    "unpacked-api": (None, False),
    "link-params": (None, False, True),
    "workspace_pools": tuple(WORKSPACES),
    "constant_pools": tuple(CONSTANTS),
    "memory.use_workspace_io": (False, True),
    "memory.recompute": (0, 60),
    "row-fed-inputs": (None, True),
    "row-drained-outputs": (None, True),
    "alignment": (None, 1, 4, 32),
    "targets": ("c", "c -mcpu=cortex-m4", "c -mcpu=cortex-m55", "c -mcpu=x86-64"),
    "optimize": ("ram", "speed", "balanced", "flash"),
})  # fmt: skip


def needed(row: Row, given: frozenset[str]) -> dict[str, object]:
    """Return a row with what the values of its axes `given` ask for."""
    values = dict(row)
    if values["unpacked-api"] is False and "interface-api" not in given:
        values["interface-api"] = "packed"
    if values["executor"] != "aot" and "link-params" not in given:
        values["link-params"] = values["constant_pools"] != "linked" or None
    return values


def config_of(row: Row, placement: str) -> CompilationConfig:
    """Return the configuration of a row; ConfigError if it is refused."""
    names = ("interface-api", "unpacked-api", "link-params", *ROWS)
    options = {name: row[name] for name in names if row[name] is not None}
    if row["alignment"] is not None:
        kinds = ("workspace-byte-alignment", "constant-byte-alignment")
        options |= dict.fromkeys(kinds, row["alignment"])
    return CompilationConfig(
        targets=str(row["targets"]),
        executor=Executor(str(row["executor"]), options),
        workspace_pools=WORKSPACES[row["workspace_pools"]] or None,
        constant_pools=CONSTANTS[row["constant_pools"]] or None,
        optimize=str(row["optimize"]),
        pass_config={
            "memory.placement": placement,
            "memory.use_workspace_io": row["memory.use_workspace_io"],
            "memory.recompute": row["memory.recompute"],
        },
    )


def refusal(row: Row) -> ConfigError | None:
    """Why the constructor does not take a row; None if it does."""
    try:
        config_of(row, "greedy")
    except ConfigError as error:
        return error
    return None


def built(row: Row, placement: str, graph: Graph) -> Artifact:
    """Return the program of a row."""
    return microtir.build(module_of(graph), config_of(row, placement))


def check_row(row: Row, seed: int) -> Artifact:
    """Run a random graph as a row says."""
    graph = odd_graph(seed)
    inputs = sample_inputs(graph, seed)
    check_sanitized(built(row, "guarded", graph), graph, inputs)
    artifact = built(row, "greedy", graph)
    check_repeated(artifact, graph, inputs)
    return artifact


ROWS_APART: Row = MappingProxyType({
    "executor": "aot", "interface-api": None, "unpacked-api": None, "link-params": None,
    "workspace_pools": "internal", "constant_pools": "passed",
    "memory.use_workspace_io": False, "memory.recompute": 60, "row-fed-inputs": True,
    "row-drained-outputs": True, "alignment": 4, "targets": "c -mcpu=cortex-m4",
    "optimize": "speed",
})  # fmt: skip


@pytest.mark.soak
@pytest.mark.timeout(600)  # tens of programs
def test_no_pair_of_options_relies_on_bytes_that_are_not_its_own() -> None:
    """No access beside a buffer, and no result that depends on what memory held before."""
    legal = [row for row, _ in covering_rows(AXES, needed, refusal) if refusal(row) is None]
    held = 0
    for seed, row in zip(seeds(0, len(legal)), legal, strict=True):
        memory = check_row(row, seed).metadata.memory
        assert memory is not None and memory.verified, row
        held += memory.workspace_size > 0
    assert len(legal) > 20 and held > len(legal) // 2, (len(legal), held)


def test_images_whose_windows_leave_rows_out_keep_their_rows() -> None:
    """Each image has two rows more than its windows step over: those of the next begin later."""
    assert built(ROWS_APART, "greedy", odd_graph(96175300023)).metadata.memory is not None
