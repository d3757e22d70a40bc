"""Programs whose workspace is several pools: compiled, under sanitizers, equal to the reference."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pytest

import microtir
from microtir import CompilationConfig, Executor, host
from microtir.artifact import Artifact
from microtir.config import WorkspacePoolInfo
from microtir.dtype import DType
from microtir.operators.activations.definition import HardSwish
from microtir.operators.arithmetic.definition import Add
from microtir.operators.conversion.definition import Dequantize
from tests.support.graphs import graph, node, quant, tensor
from tests.support.legal import assert_legal
from tests.support.small_models import branching_graph, module_of, reference_outputs, sample_inputs

SMALL = WorkspacePoolInfo("dtcm-2", (), {"size_hint_bytes": 24, "byte_alignment": 16})
INSIDE = WorkspacePoolInfo("dtcm-2", (), {"size_hint_bytes": 24, "is_internal": True})
NOTHING = WorkspacePoolInfo("executor", (), {"size_hint_bytes": 1})
LARGE = WorkspacePoolInfo("inputs", (), {"section": ".psram"})  # a name of the interface, too
WORKSPACE_IO = {"memory.use_workspace_io": True, "memory.input_pool": "inputs"}
CONFIGS: Mapping[str, Mapping[str, object]] = {
    "passed": {"workspace_pools": [SMALL, LARGE]},
    "internal": {"workspace_pools": [INSIDE, LARGE]},
    "mapped": {"workspace_pools": [SMALL, LARGE], "pass_config": WORKSPACE_IO},
    "mapped_beside_internal": {"workspace_pools": [INSIDE, LARGE], "pass_config": WORKSPACE_IO},
    "nothing_passed": {"workspace_pools": WorkspacePoolInfo("ram", (), {"is_internal": True})},
    "guarded": {
        "workspace_pools": [
            WorkspacePoolInfo("small", (), {"size_hint_bytes": 200}), LARGE, "more"
        ],
        "pass_config": {"memory.placement": "guarded"},
    },
    # A pool that holds nothing comes before another one, which keeps its number.
    "graph": {"workspace_pools": [SMALL, NOTHING, LARGE], "executor": Executor("graph")},
    "debug_internal": {
        "workspace_pools": [INSIDE, LARGE], "executor": Executor("debug", {"link-params": True})
    },
    "graph_mapped": {
        "workspace_pools": [INSIDE, LARGE],
        "executor": Executor("graph"),
        "pass_config": WORKSPACE_IO,
    },
    "packed": {
        "workspace_pools": [SMALL, LARGE],
        "executor": Executor("aot", {"interface-api": "packed", "link-params": False}),
    },
}  # fmt: skip


def built(name: str) -> Artifact:
    """A model with enough buffers for two pools."""
    config = CompilationConfig(targets="c", **CONFIGS[name])  # type: ignore[arg-type]
    return microtir.build(module_of(branching_graph()), config)


@pytest.mark.parametrize("name", CONFIGS)
def test_pools_change_no_result(name: str) -> None:
    """Whatever memory the pools are, the outputs are the reference's."""
    artifact = built(name)
    model = branching_graph()
    inputs = sample_inputs(model)
    expected = reference_outputs(model, inputs)
    loaded = host.load(artifact, sanitize="pass_config" not in CONFIGS[name] or name == "guarded")
    for byte in (0x00, 0xA5):
        for key, values in loaded.run(inputs, fill_workspace=byte).items():
            np.testing.assert_array_equal(values, expected[key])


def test_compilers_do_not_draw_conclusions_from_one_array() -> None:
    """GCC before 12.4 and 13.3 drops stores where it sees that they go to the array that is read.

    It takes a layer whose output has elements of another size than its input: bug 110702.
    """
    x, a = (tensor(name, (1, 6, 6, 2), DType.INT8, quant(0.05, 99)) for name in "xa")
    b, y = (tensor(name, (1, 6, 6, 2)) for name in "by")
    nodes = [
        node(Add(), [x, x], a),
        node(Dequantize(), [a], b),
        node(HardSwish(), [b], y),
    ]
    model = graph(nodes, [x], [y])
    pool = WorkspacePoolInfo("ram", (), {"is_internal": True})
    config = CompilationConfig(targets="c", workspace_pools=[pool], optimize="speed")
    inputs = sample_inputs(model)
    result = host.load(microtir.build(module_of(model), config)).run(inputs)["y"]
    assert_legal(model, inputs, {"y": result})


def test_buffers_are_in_both_pools() -> None:
    """The tests above are about two pools that hold something, small ones within their limits."""
    for name in ("passed", "internal", "packed", "mapped"):
        memory = built(name).metadata.memory
        assert memory is not None
        small, large = memory.pools
        assert 0 < small.size <= 24 and large.size > 0, name
        assert memory.workspace_size == small.size + large.size


def test_the_interface_names_each_pool() -> None:
    """A parameter, two macros and a declaration for each pool that is passed."""
    artifact = built("passed")
    header, memory = artifact.source("default.h"), artifact.metadata.memory
    assert memory is not None
    assert "void *dtcm_2,\n        void *inputs_2);" in header
    size = memory.pools[0].size
    assert f"#define DEFAULT_DTCM_2_WORKSPACE_POOL_SIZE      {size}\n" in header
    section = '    DEFAULT_SECTION(".psram") uint8_t variable[DEFAULT_INPUTS_WORKSPACE_POOL_SIZE]'
    assert section in header
    inside = built("internal")
    assert "dtcm_2" not in inside.source("default.h").split("default_run(")[1]
    assert "uint8_t default_dtcm_2_memory[DEFAULT_DTCM_2_WORKSPACE_POOL_SIZE];" in inside.source(
        "default.c"
    )
    assert "Not re-entrant" in inside.source("default.h").replace("\n * ", " ")
