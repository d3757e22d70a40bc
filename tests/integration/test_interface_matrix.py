"""The matrix of interfaces: every pair of choices compiles, runs and is equal, or is refused.

Rows are chosen so that each pair of values that a configuration accepts is in one of them (a
covering array of strength two), out of all combinations that the constructor accepts.  Each row is
a program: compiled without a warning and run.
"""

from __future__ import annotations

import ctypes
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from itertools import combinations, product
from pathlib import Path
from types import MappingProxyType
from typing import TypeAlias

import numpy as np
import pytest

import microtir
from microtir import CompilationConfig, Executor, Runtime
from microtir.config import WorkspacePoolInfo
from microtir.errors import ConfigError
from tests.support.c_compilers import HOST_COMPILERS
from tests.support.calling import PROGRAM, compiled, make_runtime, run
from tests.support.small_models import (
    module_of,
    quantised_graph,
    reference_outputs,
    sample_inputs,
)

Row: TypeAlias = Mapping[str, object]
Pair: TypeAlias = tuple[tuple[str, object], tuple[str, object]]

# None is what the configuration derives, or leaves out.
AXES: Mapping[str, tuple[object, ...]] = MappingProxyType({
    "executor": ("aot", "graph", "debug"),
    "interface-api": (None, "c", "packed"),
    "unpacked-api": (None, True, False),
    "link-params": (None, True, False),
    "alignment": (None, 16, 64),
    "system-lib": (False, True),
    "pools": (None, "dtcm-2", "two", "internal"),
    "workspace_io": (False, True),
    "optimize": ("balanced", "ram"),
    "hook": (False, True),
    "compiler": HOST_COMPILERS,
    "standard": ("c99", "c11", "gnu17"),
})  # fmt: skip
# What a compiler is told, which no configuration knows.
OUTSIDE = ("hook", "compiler", "standard")
# The options of the configuration that an axis sets, by which a refusal names it.
NAMES: Mapping[str, tuple[str, ...]] = MappingProxyType({
    "alignment": ("workspace-byte-alignment", "constant-byte-alignment"),
    "workspace_io": ("memory.use_workspace_io",),
    "pools": ("workspace_pools",),
})  # fmt: skip
POOLS: Mapping[object, list[WorkspacePoolInfo] | None] = MappingProxyType({
    None: None,
    "dtcm-2": [WorkspacePoolInfo("dtcm-2")],
    "two": [WorkspacePoolInfo("dtcm-2", (), {"size_hint_bytes": 16}), WorkspacePoolInfo("sram")],
    "internal": [WorkspacePoolInfo("ram", (), {"is_internal": True})],
})  # fmt: skip


def config_of(row: Row) -> CompilationConfig:
    """Return the configuration of a row; ConfigError if it is refused."""
    options = {
        name: row[name]
        for name in ("interface-api", "unpacked-api", "link-params")
        if row[name] is not None
    }
    if row["alignment"] is not None:
        options |= dict.fromkeys(NAMES["alignment"], row["alignment"])
    return CompilationConfig(
        targets="c",
        executor=Executor(str(row["executor"]), options),
        runtime=Runtime("crt", {"system-lib": row["system-lib"]}),
        workspace_pools=POOLS[row["pools"]],
        optimize=str(row["optimize"]),
        pass_config={"memory.use_workspace_io": row["workspace_io"]},
    )


def all_rows() -> Iterator[Row]:
    """Every combination of values that are about the configuration."""
    names = [name for name in AXES if name not in OUTSIDE]
    for values in product(*(AXES[name] for name in names)):
        yield dict(zip(names, values, strict=True))


def pairs_of(row: Row) -> set[Pair]:
    """Return the pairs of values in a row."""
    return set(combinations(row.items(), 2))


def covering(rows: list[Row]) -> list[Row]:
    """Few of the rows, extended by what is outside, that hold every pair that any of them holds.

    Each is the one with the most new pairs among those that hold the first pair that is left.
    """
    values = {name: {row[name] for row in rows} for name in rows[0]}
    values |= {name: set(AXES[name]) for name in OUTSIDE}
    left = set().union(*map(pairs_of, rows))
    for a, b in combinations(values, 2):
        if b in OUTSIDE:
            left |= set(product(product([a], values[a]), product([b], values[b])))
    chosen: list[Row] = []
    while left:
        wanted = dict(min(left, key=repr))
        fits = [row for row in rows if all(row.get(n, v) == v for n, v in wanted.items())]
        best = max(fits, key=lambda row: len(left & pairs_of(row)))
        for name in OUTSIDE:
            choices = [wanted[name]] if name in wanted else AXES[name]
            extended = [{**best, name: value} for value in choices]
            best = max(extended, key=lambda row: len(left & pairs_of(row)))
        chosen.append(best)
        left -= pairs_of(best)
    return chosen


def accepted(row: Row) -> bool:
    """Whether the constructor takes the configuration of a row."""
    try:
        config_of(row)
    except ConfigError:
        return False
    return True


@pytest.fixture(scope="module")
def legal() -> list[Row]:
    """All combinations that the constructor accepts."""
    return [row for row in all_rows() if accepted(row)]


def test_pairs_that_are_in_no_legal_row_are_refused_by_name(legal: list[Row]) -> None:
    """Two values that never go together are refused with nothing else said, and named."""
    possible = set().union(*map(pairs_of, legal))
    plain = {name: values[0] for name, values in AXES.items() if name not in OUTSIDE}
    refused = 0
    for a, b in combinations(plain, 2):
        for x, y in product(AXES[a], AXES[b]):
            if ((a, x), (b, y)) in possible:
                continue
            refused += 1
            with pytest.raises(ConfigError) as caught:
                config_of({**plain, a: x, b: y})
            names = [option for name in (a, b) for option in NAMES.get(name, (name,))]
            assert any(f"'{name}'" in str(caught.value) for name in names), str(caught.value)
    assert refused > 5


def test_every_pair_compiles_runs_and_is_equal(
    legal: list[Row], tmp_path: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """Each row of the covering array is silent in its compiler and gives the reference's bytes."""
    rows = covering(legal)
    assert set().union(*map(pairs_of, legal)) <= set().union(*map(pairs_of, rows))
    runtimes = {
        key: make_runtime(tmp_path_factory.mktemp("runtime"), *key)
        for key in dict.fromkeys((str(r["compiler"]), str(r["standard"])) for r in rows)
    }
    model = quantised_graph()
    artifacts = [microtir.build(module_of(model), config_of(row)) for row in rows]
    folders = [tmp_path / str(number) for number in range(len(rows))]

    def said(number: int) -> str:
        row, key = rows[number], (str(rows[number]["compiler"]), str(rows[number]["standard"]))
        flags = _hook(folders[number].parent / f"{number}.h") if row["hook"] else []
        return compiled(
            artifacts[number], folders[number], runtimes[key],
            compiler=key[0], standard=key[1], flags=flags,
        )  # fmt: skip

    with ThreadPoolExecutor(2) as pool:
        problems = list(pool.map(said, range(len(rows))))
    inputs = sample_inputs(model)
    (expected,) = reference_outputs(model, inputs).values()
    for row, artifact, folder, problem in zip(rows, artifacts, folders, problems, strict=True):
        assert not problem, f"{row}\n{problem}"
        result = np.full_like(expected, 0x55)
        assert run(folder, artifact, next(iter(inputs.values())), result) == 0, row
        np.testing.assert_array_equal(result, expected, err_msg=repr(row))
        if row["hook"]:
            assert _calls(folder) >= len(artifact.metadata.layers), row


def _hook(header: Path) -> list[str]:
    """Return flags of a build whose layers are counted."""
    header.write_text(
        "extern int layer_calls;\n"
        "__attribute__((weak)) int layer_calls = 0;\n"
        "void count_layer(const void *data, int rows);\n"
        "__attribute__((weak)) void count_layer(const void *data, int rows)\n"
        "{\n    layer_calls += data != 0 && rows > 0;\n}\n",
        encoding="utf-8",
    )
    macro = "DEFAULT_LAYER_HOOK(layer,output,data,first,last)"
    return ["-include", str(header), f"-D{macro}=count_layer((data),(int)((last)-(first)))"]


def _calls(folder: Path) -> int:
    return ctypes.c_int.in_dll(ctypes.CDLL(str(folder / PROGRAM)), "layer_calls").value
