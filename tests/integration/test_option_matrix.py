"""Every pair of option values gives code that compiles without a warning and computes the same.

Pairs with a value that a configuration refuses are tests/config/test_options.py's: all of them
are refused in the constructor, by name.  Here is what follows for all others.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import combinations
from pathlib import Path

import numpy as np
import pytest

import microtir
from microtir.artifact import Artifact
from microtir.config import OPTIONS, CompilationConfig, Option, Section
from microtir.config.assemble import assemble
from microtir.errors import ConfigError, MemoryPlanError
from tests.support.calling import compiled, make_runtime, run
from tests.support.option_samples import Sample, all_values
from tests.support.program_text import program_text
from tests.support.small_models import (
    module_of,
    reference_outputs,
    sample_inputs,
    tiny_graph,
)

BASE = CompilationConfig(targets="c")
# Below the needs of any model: limits that every build exceeds.
TOO_SMALL = {
    "budget.ram=1": "budget.ram",
    "budget.flash=1": "budget.flash",
    "budget.stack=1": "budget.stack",
    "workspace_pools.size_hint_bytes=1": "workspace_pools.size_hint_bytes",
}
# What a memory costs, and which one it is, says nothing where there is one pool:
# test_pool_matrix.py has pairs of several.
OF_SEVERAL = (
    "clock_frequency_hz",
    "read_bandwidth_bytes_per_cycle",
    "write_bandwidth_bytes_per_cycle",
    "read_latency_cycles",
    "write_latency_cycles",
    "target_burst_bytes",
    "section",
    "byte_alignment",
)


def describe(sample: Sample) -> str:
    """An option and its value, as TOO_SMALL has them."""
    return f"{sample.option.path}={sample.value}"


def describe_all(sample: Sample) -> tuple[object, ...]:
    """The value, and what it needs."""
    return (sample.value, *(sample.companion or ()))


def legal_pairs() -> Iterator[tuple[CompilationConfig, frozenset[str]]]:
    """Each configuration that a pair of values gives, once, and the limits that it exceeds.

    A value that needs another one comes with it. The executor `debug` prints what `graph` does,
    and names: test_interface_matrix.py has its pairs.
    """
    samples = [
        sample
        for sample in all_values()
        if (sample.accepted or sample.companion)
        and "debug" not in describe_all(sample)
        and sample.option.name not in OF_SEVERAL
        and sample.option.section is not Section.CONSTANT_POOL
    ]
    seen: set[CompilationConfig] = set()
    for one, other in combinations(samples, 2):
        if one.option is other.option:
            continue
        values = _needed(one) | _needed(other) | {one.option: one.value, other.option: other.value}
        try:
            config = assemble(values, BASE)
        except ConfigError:
            continue  # values that contradict each other: tests/config has the list
        if config not in seen:
            seen.add(config)
            pair = (describe(one), describe(other))
            yield config, frozenset(TOO_SMALL[text] for text in pair if text in TOO_SMALL)


def _needed(sample: Sample) -> dict[Option, object]:
    """The value that another one needs."""
    if sample.companion is None:
        return {}
    name, value = sample.companion
    (option,) = (o for o in OPTIONS if o.name == name)
    return {option: value}


@pytest.fixture(scope="module")
def runtime_library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The C runtime, and what calls packed functions, compiled once for all programs."""
    return make_runtime(tmp_path_factory.mktemp("runtime"))


@pytest.mark.timeout(900)  # hundreds of builds
def test_s2_2_every_legal_pair_builds_compiles_and_computes_the_same(
    tmp_path: Path, runtime_library: Path
) -> None:
    """All pairs of accepted values: a limit is refused by name, the rest equals the reference."""
    model = tiny_graph()
    programs: dict[str, Artifact] = {}
    configurations = refused = 0
    for config, limits in legal_pairs():
        configurations += 1
        if limits:
            with pytest.raises(MemoryPlanError) as caught:
                microtir.build(module_of(model), config)
            assert caught.value.where in limits
            refused += 1
            continue
        artifact = microtir.build(module_of(model), config)
        assert artifact.metadata.config == config.to_dict()
        text = repr(sorted(program_text(artifact).items()))
        programs.setdefault(hashlib.sha256(text.encode()).hexdigest(), artifact)
    assert configurations > 300 and refused > 50 and len(programs) > 30, (
        configurations,
        refused,
        len(programs),
    )

    folders = {key: tmp_path / key for key in programs}
    with ThreadPoolExecutor(2) as pool:
        said = list(
            pool.map(lambda key: compiled(programs[key], folders[key], runtime_library), programs)
        )
    inputs = sample_inputs(model)
    (expected,) = reference_outputs(model, inputs).values()
    for (key, artifact), problems in zip(programs.items(), said, strict=True):
        assert not problems, f"{artifact.module.config!r}\n{problems}"
        result = np.full_like(expected, 0x55)
        assert run(folders[key], artifact, inputs["x"], result) == 0
        np.testing.assert_array_equal(result, expected, err_msg=repr(artifact.module.config))
