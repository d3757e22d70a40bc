"""The matrix of pools: every pair of their properties compiles, runs and is equal, or is refused.

There are two workspace pools and two constant pools, so that each property is of one among several.
"""

from __future__ import annotations

from pathlib import Path
from types import MappingProxyType

import numpy as np
import pytest

import microtir
from microtir import CompilationConfig, Executor, Runtime
from microtir.config import OPTIONS, ConstantPoolInfo, Section, WorkspacePoolInfo
from microtir.errors import ConfigError
from tests.support.calling import compiled, make_runtime, run
from tests.support.pairs import Axes, Row, covering_rows
from tests.support.program_text import program_text
from tests.support.small_models import (
    branching_graph,
    module_of,
    reference_outputs,
    sample_inputs,
)

# None is what is not said.
PROPERTIES: Axes = MappingProxyType({
    "size_hint_bytes": (None, 40),
    "clock_frequency_hz": (None, 80_000_000),
    "read_bandwidth_bytes_per_cycle": (None, 1),
    "write_bandwidth_bytes_per_cycle": (None, 1),
    "read_latency_cycles": (None, 7),
    "write_latency_cycles": (None, 7),
    "target_burst_bytes": (None, 32),
    "is_internal": (None, True),
    "section": (None, ".fast"),
    "byte_alignment": (None, 64),
})  # fmt: skip
OF_WORKSPACE, OF_CONSTANTS = "workspace_pools.", "constant_pools."
AXES: Axes = MappingProxyType({
    **{OF_WORKSPACE + name: values for name, values in PROPERTIES.items()},
    **{OF_CONSTANTS + name: values for name, values in PROPERTIES.items()},
    "executor": ("aot", "graph", "debug"),
    "interface-api": (None, "packed"),
    "unpacked-api": (None, False),
    "link-params": (None, True, False),
    "system-lib": (False, True),
    "constant_pools": (False, True),
    "memory.use_workspace_io": (False, True),
    "memory.placement": ("greedy", "exact", "guarded"),
    "optimize": ("balanced", "ram", "flash"),
    "compatibility": ("none", "microtvm"),
})  # fmt: skip


def needed(row: Row, given: frozenset[str]) -> dict[str, object]:
    """Return a row with what the values of its axes `given` ask for."""
    values = dict(row)
    if any(name.startswith(OF_CONSTANTS) and values[name] is not None for name in given):
        values["constant_pools"] = True
    if values["constant_pools"] and values["executor"] != "aot" and "link-params" not in given:
        values["link-params"] = True
    if values["unpacked-api"] is False and "interface-api" not in given:
        values["interface-api"] = "packed"
    return values


def config_of(row: Row) -> CompilationConfig:
    """Return the configuration of a row; ConfigError if it is refused."""

    def properties(prefix: str) -> dict[str, object]:
        names = {name: row[prefix + name] for name in PROPERTIES}
        return {name: value for name, value in names.items() if value is not None}

    options = ("interface-api", "unpacked-api", "link-params")
    constants: list[ConstantPoolInfo | str] = [
        ConstantPoolInfo("first", (), properties(OF_CONSTANTS)),
        "second",
    ]
    return CompilationConfig(
        targets="c",
        executor=Executor(
            str(row["executor"]), {name: row[name] for name in options if row[name] is not None}
        ),
        runtime=Runtime("crt", {"system-lib": row["system-lib"]}),
        workspace_pools=[WorkspacePoolInfo("dtcm", (), properties(OF_WORKSPACE)), "sram"],
        constant_pools=constants if row["constant_pools"] else None,
        optimize=str(row["optimize"]),
        compatibility=str(row["compatibility"]),
        pass_config={name: row[name] for name in ("memory.use_workspace_io", "memory.placement")},
    )


def refusal(row: Row) -> ConfigError | None:
    """Why the constructor does not take a row; None if it does."""
    try:
        config_of(row)
    except ConfigError as error:
        return error
    return None


def test_the_axes_are_all_properties_of_pools() -> None:
    """A new property of a pool has an axis here."""
    for section, prefix in (
        (Section.WORKSPACE_POOL, OF_WORKSPACE),
        (Section.CONSTANT_POOL, OF_CONSTANTS),
    ):
        named = {prefix + option.name for option in OPTIONS if option.section is section}
        assert named == {name for name in AXES if name.startswith(prefix)}


@pytest.mark.timeout(600)  # tens of programs
def test_every_pair_of_pool_properties(
    tmp_path: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """Each row is silent in the compiler and gives the reference's bytes, or is refused by name."""
    runtime = make_runtime(tmp_path_factory.mktemp("runtime"))
    model = branching_graph()
    inputs = sample_inputs(model)
    (expected,) = reference_outputs(model, inputs).values()
    programs: dict[str, Row] = {}
    refused = 0
    for row, pair in covering_rows(AXES, needed, refusal):
        error = refusal(row)
        if error is not None:
            refused += 1
            names = [name.rpartition(".")[2] for name, _ in pair]
            assert any(name in str(error) for name in names), f"{pair}: {error}"
            continue
        artifact = microtir.build(module_of(model), config_of(row))
        text = repr(sorted(program_text(artifact).items()))
        if programs.setdefault(text, row) is not row:
            continue
        folder = tmp_path / str(len(programs))
        assert compiled(artifact, folder, runtime) == "", row
        result = np.full_like(expected, 0x55)
        assert run(folder, artifact, next(iter(inputs.values())), result) == 0, row
        np.testing.assert_array_equal(result, expected, err_msg=repr(row))
    assert refused > 10 and len(programs) > 15, (refused, len(programs))
