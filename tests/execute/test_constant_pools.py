"""Constant arrays in pools: sections, limits, and who gets the fast one."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import numpy as np
import pytest

import microtir
from microtir import CompilationConfig, host
from microtir.artifact import Artifact
from microtir.config import ConstantPoolInfo
from microtir.errors import MemoryPlanError
from microtir.memory import Constant, place_constants
from tests.support.c_compilers import strict_problems
from tests.support.small_models import module_of, quantised_graph, reference_outputs, sample_inputs

FAST = ConstantPoolInfo("itcm-rom", (), {"size_hint_bytes": 70, "section": ".rodata.fast"})
SLOW = ConstantPoolInfo("flash", (), {"section": ".rodata.slow", "byte_alignment": 16})


def built(*pools: ConstantPoolInfo) -> Artifact:
    """A convolution, whose weights are read for each pixel, and a layer that reads its own once."""
    config = CompilationConfig(targets="c", constant_pools=pools)
    return microtir.build(module_of(quantised_graph()), config)


def test_the_weights_that_are_read_most_get_the_fast_pool(tmp_path: Path) -> None:
    """Arrays lie in their sections, the hot ones in the first; nothing else changes."""
    artifact = built(FAST, SLOW)
    text = artifact.source("default_weights.c")
    declared = re.findall(r'CONSTANT_SECTION\("(.*?)"\)\n.*? const \w+ (\w+)\[', text)
    sections = {name: section for section, name in declared}
    assert sections["default_layer0_weights"] == ".rodata.fast"
    assert sections["default_layer1_weights"] == ".rodata.slow"
    fast, slow = artifact.metadata["constant_pools"]
    assert 0 < fast["size"] <= 70 and slow["size"] % 4 == 0
    assert "#define DEFAULT_ITCM_ROM_CONSTANT_POOL_SIZE" in artifact.source("default.h")
    folder = artifact.export(tmp_path / "out")
    assert strict_problems(folder, "gcc", "c99") == ""
    command = ["gcc", "-c", "default_weights.c", "-o", "w.o"]
    subprocess.run(command, cwd=folder, check=True)
    done = subprocess.run(
        ["objdump", "-h", "w.o"], cwd=folder, check=True, capture_output=True, text=True
    )
    assert ".rodata.fast" in done.stdout and ".rodata.slow" in done.stdout


def test_pools_change_no_result() -> None:
    """The outputs are the reference's."""
    model = quantised_graph()
    inputs = sample_inputs(model)
    (expected,) = reference_outputs(model, inputs).values()
    (result,) = host.load(built(SLOW, FAST)).run(inputs).values()
    np.testing.assert_array_equal(result, expected)


def test_costs_decide_before_the_order() -> None:
    """A pool that is slow to read is taken last, wherever it is declared."""
    slow = ConstantPoolInfo("slow", (), {"read_latency_cycles": 8})
    config = CompilationConfig(targets="c", constant_pools=[slow, FAST])
    arrays = [Constant("a", 60, 4, ("f",), 600), Constant("b", 30, 4, ("g",), 30)]
    assert place_constants(config, arrays) == {"a": 1, "b": 0}


def test_large_arrays_choose_first_where_hot_ones_leave_no_room() -> None:
    """Two pools that hold all only if the large array gets the large one."""
    pools = [
        ConstantPoolInfo(name, (), {"size_hint_bytes": size})
        for name, size in (("large", 64), ("small", 16))
    ]
    config = CompilationConfig(targets="c", constant_pools=pools)
    arrays = [Constant("hot", 16, 4, ("f",), 900), Constant("large", 64, 4, ("g",), 64)]
    assert place_constants(config, arrays) == {"hot": 1, "large": 0}


def test_exhaustion_names_arrays_layers_and_bytes() -> None:
    """What has room nowhere, who reads it, and what the pools hold."""
    with pytest.raises(MemoryPlanError) as caught:
        built(FAST)
    assert caught.value.where == "constant_pools.size_hint_bytes"
    text = str(caught.value)
    assert re.search(r"constants of \d+ bytes have room in no pool", text)
    assert re.search(r"'itcm-rom' holds \d+ of 70 bytes", text)
    assert "default_layer1_weights: 180 bytes for layer1_fully_connected" in text
