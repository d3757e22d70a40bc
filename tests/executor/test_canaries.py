"""Programs with canaries compute the same, on this machine, and wherever their memory lies."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import microtir
from microtir import CompilationConfig
from microtir.config import WorkspacePoolInfo
from microtir.graph.ir import Graph
from tests.support.small_models import mixed_graph, module_of, quantised_graph, sample_inputs

pytestmark = pytest.mark.tools

INTERNAL = WorkspacePoolInfo("fast", (), {"is_internal": True, "byte_alignment": 32})
CONFIGURATIONS: list[dict[str, Any]] = [
    {},
    {"targets": "c -mcpu=cortex-m4"},
    {"workspace_pools": [INTERNAL, WorkspacePoolInfo("slow", (), {})]},
    {"pass_config": {"memory.use_workspace_io": True}},
    {"pass_config": {"memory.placement": "guarded"}},
    {"executor": microtir.Executor("aot", {"link-params": False})},
]


@pytest.mark.parametrize("make", [quantised_graph, mixed_graph])
@pytest.mark.parametrize("changes", CONFIGURATIONS, ids=str)
def test_results_are_the_same(make: Callable[[], Graph], changes: dict[str, Any]) -> None:
    """A run with canaries gives what one without gives, and the sanitizers find nothing in it."""
    module, inputs = module_of(make()), sample_inputs(make())
    config = CompilationConfig(**{"targets": "c", "module_name": "net", **changes})
    artifact = microtir.build(module, config.with_(canaries=True))
    assert "net_canaries_changed(" in "".join(file.text for file in artifact.sources)
    plain = microtir.host.load(microtir.build(module, config)).run(inputs)
    outputs = microtir.host.load(artifact, sanitize=True).run(inputs)
    for name, values in plain.items():
        np.testing.assert_array_equal(outputs[name], values)


def test_sizes_include_canaries() -> None:
    """A pool grows by one alignment at each end, and a limit of RAM counts that."""
    module = module_of(quantised_graph())
    sizes = []
    for canaries in (False, True):
        pool = WorkspacePoolInfo("fast", (), {"byte_alignment": 64})
        config = CompilationConfig(targets="c", workspace_pools=[pool], canaries=canaries)
        memory = microtir.build(module, config).metadata.memory
        assert memory is not None
        sizes.append((memory.workspace_size, memory.lower_bound, memory.placements[0].offset))
    assert 128 <= sizes[1][0] - sizes[0][0] < 132
    assert [after - before for before, after in zip(*sizes, strict=True)][1:] == [128, 64]
    limit = sizes[0][0] + 127
    within = microtir.build(module, config.with_(budget={"ram": limit})).metadata.memory
    assert within is not None and within.workspace_size <= limit
