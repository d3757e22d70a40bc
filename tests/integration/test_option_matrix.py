"""Every pair of option values gives code that compiles without a warning and computes the same.

Pairs with a value that a configuration refuses are tests/config/test_options.py's: all of them
are refused in the constructor, by name.  Here is what follows for all others.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import combinations
from pathlib import Path

import numpy as np
import pytest

import microtir
from microtir.artifact import Artifact
from microtir.config import OPTIONS, CompilationConfig, Option, Section
from microtir.config.assemble import assemble
from microtir.errors import ConfigError, MemoryPlanError
from microtir.rewrite.requests.requested import completed
from tests.support.calling import compiled, make_runtime, run
from tests.support.option_samples import Sample, all_values
from tests.support.pairs import Axes, Row, covering_rows
from tests.support.program_text import program_text
from tests.support.small_models import module_of, reference_outputs, sample_inputs, tiny_graph

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
# What only a model with a recurrent layer, one of a batch, or one whose outputs are like its inputs
# can have: tests/rewrite/test_stepwise.py, tests/executor/test_batch_count.py and
# tests/frontend/onnx/test_bound_states.py, test_block_dense.py and test_attention.py try it.
# Constant time needs a CPU that chooses without branches: tests/boards/test_timing.py.
OF_OTHER_MODELS = (
    "stateful", "batch-count", "states", "graph.block_activations", "graph.attention_cache",
    "constant_time",
)  # fmt: skip
# What only models of other formats can have: tests/frontend/onnx/test_quantised.py and
# tests/frontend/torch/test_pt2e.py try it.
OF_OTHER_FORMATS = ("onnxruntime", "pt2e")


OPTION_OF = {option.path: option for option in OPTIONS}


def samples() -> list[Sample]:
    """Every accepted value, also one that needs another, which is then given with it.

    The executor `debug` prints what `graph` does, and names: test_interface_matrix.py has its
    pairs.
    """
    return [
        sample
        for sample in all_values()
        if (sample.accepted or sample.companion)
        and "debug" not in (sample.value, *(sample.companion or ()))
        and str(sample.value) not in OF_OTHER_FORMATS
        and sample.option.name not in (*OF_SEVERAL, *OF_OTHER_MODELS)
        and sample.option.section is not Section.CONSTANT_POOL
    ]


def axes_of(some: Sequence[Sample]) -> Axes:
    """Return the values of each option, by their numbers among its samples; None is not said."""
    counts = Counter(sample.option.path for sample in some)
    return {path: (None, *range(count)) for path, count in counts.items()}


def values_of(row: Row, some: Sequence[Sample]) -> dict[Option, object]:
    """Return what a row says: its values, and what they need where it says nothing of it."""
    of: dict[str, list[Sample]] = {}
    for sample in some:
        of.setdefault(sample.option.path, []).append(sample)
    chosen = [of[path][int(str(n))] for path, n in row.items() if n is not None]
    said = {sample.option: sample.value for sample in chosen}
    return {**{o: v for sample in chosen for o, v in _needed(sample).items()}, **said}


def configured(row: Row, some: Sequence[Sample]) -> CompilationConfig:
    """Return the configuration of a row; ConfigError if its values contradict each other."""
    return assemble(values_of(row, some), BASE)


def _needed(sample: Sample) -> dict[Option, object]:
    """Return the value that another one needs."""
    if sample.companion is None:
        return {}
    name, value = sample.companion
    (option,) = (o for o in OPTIONS if o.name == name)
    return {option: value}


def rows_of(some: Sequence[Sample]) -> list[Row]:
    """Few rows that hold every pair of values that the configuration accepts."""

    def refusal(row: Row) -> ConfigError | None:
        try:
            configured(row, some)
        except ConfigError as error:
            return error  # values that contradict each other: tests/config has the list
        return None

    def as_it_is(row: Row, given: frozenset[str]) -> Row:
        return row

    rows = [row for row, _ in covering_rows(axes_of(some), as_it_is, refusal)]
    return [row for row in rows if refusal(row) is None]


@pytest.fixture(scope="module")
def runtime_library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Compile the C runtime, and what calls packed functions, once for all programs."""
    return make_runtime(tmp_path_factory.mktemp("runtime"))


def _given(sample: Sample) -> dict[Option, object]:
    """Return a value and what it needs."""
    return {**_needed(sample), sample.option: sample.value}


def beside_limit(limit: Sample, others: Sequence[Sample]) -> list[dict[Option, object]]:
    """Few sets of values that have the limit, and each other value that goes with it in one."""
    alone = [
        s
        for s in others
        if s.option is not limit.option and _is_accepted({**_given(limit), **_given(s)})
    ]
    left = dict.fromkeys(alone)
    found = []
    while left:
        values = _given(limit)
        for sample in [*left, *alone]:
            more = {**values, **_given(sample)}
            if not values.keys() & _given(sample).keys() and _is_accepted(more):
                values = more
                left.pop(sample, None)
        found.append(values)
    return found


@pytest.mark.slow
def test_s2_2_a_limit_that_is_too_small_is_refused_beside_every_value() -> None:
    """Each limit with every value of the other options, and with the other limits, by name."""
    module = module_of(tiny_graph())
    by_text = {f"{s.option.path}={s.value}": s for s in samples()}
    others = [s for text, s in by_text.items() if text not in TOO_SMALL]
    rows = [
        (values, {name})
        for text, name in TOO_SMALL.items()
        for values in beside_limit(by_text[text], others)
    ]
    rows += [
        ({**_given(by_text[a]), **_given(by_text[b])}, {TOO_SMALL[a], TOO_SMALL[b]})
        for a, b in combinations(TOO_SMALL, 2)
    ]
    for values, names in rows:
        with pytest.raises(MemoryPlanError) as caught:
            microtir.build(module, assemble(values, BASE))
        assert caught.value.where in names, values
    assert len(rows) > 12


def _is_accepted(values: Mapping[Option, object]) -> bool:
    try:
        assemble(values, BASE)
    except ConfigError:
        return False
    return True


@pytest.mark.slow
def test_s2_2_every_legal_pair_builds_compiles_and_computes_the_same(
    tmp_path: Path, runtime_library: Path
) -> None:
    """A covering array of all accepted values: each program is silent and equals the reference."""
    model = tiny_graph()
    some = [s for s in samples() if f"{s.option.path}={s.value}" not in TOO_SMALL]
    rows = rows_of(some)
    programs: dict[str, Artifact] = {}
    for row in rows:
        config = configured(row, some)
        artifact = microtir.build(module_of(model), config)
        assert artifact.metadata.config == completed(config, model).to_dict()
        text = repr(sorted(program_text(artifact).items()))
        programs.setdefault(hashlib.sha256(text.encode()).hexdigest(), artifact)
    assert len(programs) > 20, (len(rows), len(programs))

    inputs = sample_inputs(model)
    (expected,) = reference_outputs(model, inputs).values()
    for key, artifact in programs.items():
        problems = compiled(artifact, tmp_path / key, runtime_library)
        assert not problems, f"{artifact.module.config!r}\n{problems}"
        result = np.full_like(expected, 0x55)
        assert run(tmp_path / key, artifact, inputs["x"], result) == 0
        np.testing.assert_array_equal(result, expected, err_msg=repr(artifact.module.config))
