from __future__ import annotations

import random
import re
from collections.abc import Iterator
from itertools import combinations

import pytest

from microtir.config import OPTIONS, CompilationConfig, Executor, Option, Section
from microtir.config.assemble import assemble
from microtir.config.enums import ExecutorKind
from microtir.config.executor import SECTIONS
from microtir.config.legacy_options import LEGACY
from microtir.errors import ConfigError
from tests.support.option_samples import Sample, all_values
from tests.support.seeds import is_soak, seeds

SAMPLES = list(all_values())
BASE = CompilationConfig(targets="c -mcpu=cortex-m4")
BESIDE = 12  # options beside which a wrong value stands; in the soak it is all


def outcome(*samples: Sample) -> ConfigError | CompilationConfig:
    """The configuration with these values, or the refusal."""
    try:
        return assemble({sample.option: sample.value for sample in samples}, BASE)
    except ConfigError as error:
        return error


# Values that are legal alone and refused together.
CONTRADICTIONS = [
    {"pass_config.tir.disable_unroll=True", "pass_config.tir.unroll_max_extent=256"},
    {"pass_config.memory.use_workspace_io=True", "executor.interface-api='packed'"},
    {"pass_config.memory.use_workspace_io=True", "runtime.system-lib=True"},
    {"compatibility='microtvm'", "executor.link-params=False"},
    {"pass_config.memory.use_workspace_io=True", "compatibility='microtvm'"},
    {"constant_pools='flash'", "executor='graph'"},
    {"constant_pools='flash'", "executor='debug'"},
    {"constant_pools='flash'", "executor.link-params=False"},
    {"workspace_pools.is_internal=True", "pass_config.memory.use_workspace_io=True"},
    *(
        {f"pass_config.ethos_u.{kind}_pool='workspace'", "workspace_pools='dtcm-2'"}
        for kind in ("scratch", "fast_scratch")
    ),
    *(
        {f"executor.{option}=True", other}
        for option in ("row-fed-inputs", "row-drained-outputs")
        for other in (
            "pass_config.memory.use_workspace_io=True",
            "runtime.system-lib=True",
            "compatibility='microtvm'",
            "executor.interface-api='packed'",
        )
    ),
    {"executor.steps=True", "executor.interface-api='packed'"},
    *(
        {"executor.batch-count=True", other}
        for other in (
            "executor.interface-api='packed'",
            "runtime.system-lib=True",
            "compatibility='microtvm'",
            "executor.steps=True",
            "executor.row-fed-inputs=True",
            "executor.row-drained-outputs=True",
            "pass_config.memory.use_workspace_io=True",
        )
    ),
    *(
        {"executor.guard-inputs=True", other}
        for other in (
            "executor.interface-api='packed'",
            "runtime.system-lib=True",
            "compatibility='microtvm'",
            "executor.row-fed-inputs=True",
        )
    ),
    *(
        {f"fault_checks={checks!r}", other}
        for checks in ("start", "layers", "tensors")
        for other in (
            "executor.interface-api='packed'",
            "runtime.system-lib=True",
            "compatibility='microtvm'",
            "executor.steps=True",
            "executor.link-params=False",
            "constant_pools='flash'",
            "executor='graph'",
            "executor='debug'",
        )
    ),
    *(
        {"canaries=True", other}
        for other in (
            "executor.interface-api='packed'",
            "runtime.system-lib=True",
            "compatibility='microtvm'",
            "executor.steps=True",
            "executor='graph'",
            "executor='debug'",
        )
    ),
]

# Nothing of these is accepted in a configuration yet; budget and pass_config are given in parts,
# and a library that is external needs a folder, which tests/external gives it.
WAITING_SECTIONS = (Section.EXECUTOR_GRAPH, Section.EXECUTOR_DEBUG, Section.CONSTANT_POOL)
WAITING_OPTIONS = ("external", "budget", "pass_config")


def describe(sample: Sample) -> str:
    """An identifier of a sample for pytest."""
    return f"{sample.option.path}={sample.value!r}"


@pytest.mark.parametrize("sample", SAMPLES, ids=describe)
def test_s2_2_each_value_alone(sample: Sample) -> None:
    """A legal value gives a configuration, any other a refusal that names the option."""
    result = outcome(sample)
    if sample.accepted:
        assert isinstance(result, CompilationConfig)
        assert CompilationConfig.from_json(result.to_json()) == result
    else:
        assert isinstance(result, ConfigError)
        assert _names(result, sample.option)


def _names(error: ConfigError, option: Option) -> bool:
    text = str(error)
    # The refusal of a target names the attribute that is wrong inside it.
    return option.name in text or (option.section is Section.CONFIG and "target" in text)


def pairs_of_values() -> Iterator[tuple[Sample, Sample]]:
    """All pairs of values that are legal alone; a wrong one beside random ones of other options."""
    rng = random.Random(seeds(0, 1).start)
    of: dict[Option, list[Sample]] = {}
    for sample in SAMPLES:
        of.setdefault(sample.option, []).append(sample)
    legal = [sample for sample in SAMPLES if sample.accepted or sample.companion]
    yield from ((a, b) for a, b in combinations(legal, 2) if a.option is not b.option)
    for sample in SAMPLES:
        if not (sample.accepted or sample.companion):
            others = [values for option, values in of.items() if option is not sample.option]
            some = others if is_soak() else rng.sample(others, BESIDE)
            yield from ((sample, rng.choice(values)) for values in some)


@pytest.mark.soak
def test_s2_2_every_pair_is_built_or_refused_by_name() -> None:
    """Of two values, legal ones are legal together, else a wrong one is named."""
    pairs = 0
    for one, other in pairs_of_values():
        pairs += 1
        result = outcome(one, other)
        if _fit(one, other) or (one.accepted and other.accepted):
            contradict = {describe(one), describe(other)} in CONTRADICTIONS
            contradict = contradict or _of_another_executor(one, other)
            assert isinstance(result, CompilationConfig) is not contradict, str(result)
            if isinstance(result, ConfigError):
                assert _names(result, one.option) and _names(result, other.option)
            continue
        assert isinstance(result, ConfigError), (describe(one), describe(other))
        wrong = [sample.option for sample in (one, other) if not sample.accepted]
        assert any(_names(result, option) for option in wrong), str(result)
    assert pairs > 5000


def _fit(one: Sample, other: Sample) -> bool:
    """Whether one value is what the other, which is refused alone, needs."""
    pairs = ((one, other), (other, one))
    return any(a.companion == (b.option.name, b.value) and b.accepted for a, b in pairs)


def _of_another_executor(one: Sample, other: Sample) -> bool:
    """Whether one value chooses an executor, and the other is an option of another one."""
    return any(
        a.option.name == "executor"
        and b.option.section in SECTIONS.values()
        and b.option.section is not SECTIONS[ExecutorKind(a.value)]
        for a, b in ((one, other), (other, one))
    )


def test_samples_cover_every_option_both_ways() -> None:
    """Every option has refused values, and accepted ones unless it waits for its stage."""
    for option in OPTIONS:
        if option.section is Section.TARGET:
            continue
        mine = [sample for sample in SAMPLES if sample.option is option]
        assert any(not sample.accepted for sample in mine), option.path
        accepted = any(sample.accepted for sample in mine)
        waits = option.section in WAITING_SECTIONS or option.name in WAITING_OPTIONS
        assert accepted is not waits, option.path


def test_table_is_well_formed() -> None:
    """Names are unique in their section, defaults legal, help in sentences, pending explained."""
    seen = set()
    for option in OPTIONS:
        assert (option.section, option.name) not in seen
        seen.add((option.section, option.name))
        assert option.help[0].isupper() and option.help.endswith(".")
        assert all(len(part.split()) <= 30 for part in re.split(r"[.:] ", option.help))
        assert option.default_text
        if option.default is not None:
            assert option.domain.problem(option.default) == ""
        for instead in option.pending.values():
            assert instead.startswith(("use ", "leave "))


def test_legacy_names_are_no_options_of_their_own_section() -> None:
    """What is called gone is gone: no name of microTVM that is explained is also accepted."""
    for name in LEGACY:
        homes = {option.section for option in OPTIONS if option.name == name}
        assert Section.TARGET not in homes
        assert Section.PASS not in homes


def test_options_print_as_one_line() -> None:
    """The listing of registered options is readable as it is."""
    text = str(Executor.list_registered_options("aot")["workspace-byte-alignment"])
    assert text.startswith("workspace-byte-alignment: int, one of 1, 2, 4,")
    assert "1 for AVR" in text
