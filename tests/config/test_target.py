from __future__ import annotations

import json
from collections.abc import Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st

from microtir.config import Feature, Target
from microtir.errors import ConfigError, ExitCode
from microtir.instruction_sets import ARCHITECTURES, CPUS, instruction_set
from microtir.instruction_sets.features import FIXED, in_order

SAME = [
    ("c", "c"),
    ("  c  ", "c"),
    ("c -mcpu=cortex-m4", "c -mcpu=cortex-m4"),
    ("c -mcpu=cortex-m4 -march=armv7e-m", "c -mcpu=cortex-m4"),
    ("c -march=armv7e-m -mcpu=cortex-m4", "c -mcpu=cortex-m4"),
    ("c -mcpu=cortex-m4+nodsp", "c -mcpu=cortex-m4 -mattr=-dsp"),
    ("c -mcpu=cortex-m4 -mattr=-dsp,-fp", "c -mcpu=cortex-m4+nofp+nodsp"),
    ("c -mcpu=cortex-m4 -mattr=+dsp", "c -mcpu=cortex-m4"),
    ("c -mcpu=cortex-m0+", "c -mcpu=cortex-m0plus"),
    ("c -mcpu=cortex-m55+nomve", "c -mcpu=cortex-m55 -mattr=-mve,-mve.fp"),
    ("c -mcpu=cortex-m55+nodsp", "c -mcpu=cortex-m55 -mattr=-dsp,-mve"),
    ("c -march=armv7e-m+fp", "c -march=armv7e-m -mattr=+fp"),
    ("c -march=armv8.1-m.main+mve.fp", "c -march=armv8.1-m.main -mattr=+dsp,+mve,+fp,+mve.fp"),
    ("c -keys=arm_cpu,cpu -mcpu=cortex-m4", "c -mcpu=cortex-m4"),
    ("c -keys=cpu", "c"),
    ("c -march=rv32imac -mabi=ilp32", "c -march=rv32imac"),
    ("c -mcpu=esp32c3", "c -mcpu=esp32c3 -march=rv32imc"),
    ('{"kind": "c", "mcpu": "cortex-m4"}', "c -mcpu=cortex-m4"),
    ({"kind": "c", "mcpu": "cortex-m4"}, "c -mcpu=cortex-m4"),
    ({"kind": "c", "mcpu": "cortex-m4", "mattr": ["-dsp"]}, "c -mcpu=cortex-m4+nodsp"),
    ({"kind": "c", "keys": ["cpu"], "model": "host"}, "c -model=host"),
    ("cortex-m4", "c -mcpu=cortex-m4"),
    ("cortex-m0+", "c -mcpu=cortex-m0plus"),
    ("cortex-m33+nodsp -model=x", "c -mcpu=cortex-m33 -mattr=-dsp -model=x"),
    ("armv7e-m -mattr=+fp", "c -march=armv7e-m+fp"),
    ("rv32imac", "c -march=rv32imac"),
    ("native", "c -mcpu=native"),
    (Target("c -mcpu=cortex-m7"), "c -mcpu=cortex-m7"),
]


@pytest.mark.parametrize(("one", "other"), SAME, ids=[str(one) for one, _ in SAME])
def test_spellings_of_one_target_are_equal(
    one: Target | str | Mapping[str, object], other: str
) -> None:
    """Two spellings that mean the same give equal targets with one hash and one text."""
    assert Target(one) == Target(other)
    assert hash(Target(one)) == hash(Target(other))
    assert str(Target(one)) == str(Target(other))


DIFFERENT = ["c", "c -mcpu=cortex-m4", "c -mcpu=cortex-m4+nodsp", "c -mcpu=cortex-m4 -model=a"]


def test_different_targets_differ() -> None:
    """CPU, features, model and host each make a target another one."""
    targets = [Target(text) for text in DIFFERENT]
    targets.append(Target("c", host="c -mcpu=cortex-m4"))
    assert len(set(targets)) == len(DIFFERENT) + 1


REFUSED = [
    ("c -mcu=cortex-m4", "target option 'mcu' is unknown: did you mean 'mcpu'?"),
    ("c -mcpu=cortex-m99", "'mcpu' is 'cortex-m99', which is unknown\n  expected: cortex-m0, "),
    ("c -mcpu=nonsense", "expected: cortex-m0, cortex-m0plus"),
    ("c -mcpu=cortexm55", "did you mean 'cortex-m55'?"),
    ("c -mcpu=cortex-m0p", "did you mean 'cortex-m0plus'?"),
    ("c -mcpu=esp32s", "did you mean one of 'esp32s2', 'esp32s3'?"),
    ("c -mcpu=Cortex-M4", "did you mean 'cortex-m4'?"),
    ("c -march=armv7", "'march' is 'armv7', which is unknown"),
    ("c -march=rv32xyz", "'march' is 'rv32xyz'"),
    ("c -mcpu=cortex-m4 -march=armv6-m", "cortex-m4 is armv7e-m"),
    ("c -mcpu=esp32 -march=rv32imc", "architecture of esp32 is not one that -march names"),
    ("c -mcpu=cortex-m4 -mattr=+mve", "adds 'mve', which cortex-m4 cannot have"),
    ("c -mattr=+dsp", "fix:      name the CPU with -mcpu"),
    ("c -mcpu=cortex-m4 -mattr=+dps", "'mattr' is 'dps', which is unknown: did you mean 'dsp'?"),
    ("c -mcpu=cortex-m4 -mattr=dsp", "expected: +name and -name"),
    ("c -mcpu=cortex-m4 -mattr=+dsp,-dsp", "both adds and removes 'dsp'"),
    ("c -mcpu=cortex-m55+nodsp -mattr=+mve", "adds 'mve', which needs a removed feature"),
    ("c -mcpu=atmega328p -mattr=-progmem", "removes 'progmem', which belongs to"),
    ("c -mcpu=cortex-m4+", "has an empty suffix"),
    ("c -mcpu=cortex-m4 -mabi=ilp32", "'mabi' is 'ilp32', which cortex-m4 does not have"),
    ("c -march=rv32imac -mabi=ilp32f", "expected: ilp32"),
    ("c -mcpu=x86-64 -mabi=sysv", "one calling convention"),
    ("c -keys=arm_cpu,cpu", "'keys' is 'arm_cpu,cpu', but generic has 'cpu'"),
    ("c -model=a*/b", "'model' is 'a*/b', which is not a name"),
    ("c -mcpu=", "'mcpu' has no value"),
    ("c -mcpu", "'mcpu' has no value"),
    ("c -mcpu=cortex-m4 -mcpu=cortex-m3", "'mcpu' is given twice"),
    ("c cortex-m4", "the word 'cortex-m4', which is not an option"),
    ("-mcpu=cortex-m4", "does not start with a target kind"),
    ("", "does not start with a target kind"),
    ("llvm", "'llvm' is not a known target"),
    (
        "cortex-m44",
        "'cortex-m44' is not a known target\n  expected: c, or the name of a processor",
    ),
    ("esp32h4", "'esp32h4' is not a known target\n  expected: c, or the name of a processor"),
    ("esp8266", "'esp8266' is not a known target\n  expected: c, or the name of a processor"),
    ("cortex-m55f", "'cortex-m55f' is not a known target: did you mean 'cortex-m55'?"),
    ("cortex-m4 -mcpu=cortex-m3", "'mcpu' is given twice"),
    ("cortex-m4+", "has an empty suffix"),
    ("{", "is not a target"),
    ('{"mcpu": "cortex-m4"}', "has no 'kind'"),
    ('{"kind": "c", "mcu": "cortex-m4"}', "did you mean 'mcpu'?"),
    ({"kind": "c", "mcpu": 4}, "'mcpu' is 4, which is not text"),
    ({"kind": "c", "mattr": 4}, "'mattr' is 4"),
    ({"kind": "c", "host": 4}, "'host' is 4, which is not a target"),
    (None, "None is not a target"),
    (["c"], "is not a target"),
]


@pytest.mark.parametrize(("spec", "text"), REFUSED, ids=[str(spec) for spec, _ in REFUSED])
def test_wrong_target_is_refused(spec: str | Mapping[str, object], text: str) -> None:
    """A wrong target is a ConfigError that names the option and says what to do."""
    with pytest.raises(ConfigError) as caught:
        Target(spec)
    assert text in str(caught.value)
    assert caught.value.exit_code is ExitCode.USAGE


@pytest.mark.parametrize(
    ("name", "holder"),
    [
        ("workspace-byte-alignment", "Executor('aot', {'workspace-byte-alignment'"),
        ("constants-byte-alignment", "Executor('aot', {'constant-byte-alignment'"),
        ("constant-byte-alignment", "Executor('aot', {'constant-byte-alignment'"),
        ("system-lib", "Runtime('crt', {'system-lib'"),
        ("libs", "the field external, as cmsis-nn=FOLDER"),
    ],
)
def test_d3_options_that_live_elsewhere_are_refused_with_their_place(
    name: str, holder: str
) -> None:
    """Alignment has one home, the executor; a target that states it is told so."""
    with pytest.raises(ConfigError) as caught:
        Target(f"c -{name}=16")
    assert f"target option '{name}' is unknown" in str(caught.value)
    assert caught.value.fix is not None and holder in caught.value.fix


def test_host_comes_with_the_target_or_beside_it() -> None:
    """A host may be given in a mapping or as an argument, and stays through str and repr."""
    beside = Target("c -mcpu=cortex-m4", host="c -mcpu=cortex-m0")
    inside = Target({"kind": "c", "mcpu": "cortex-m4", "host": "c -mcpu=cortex-m0"})
    assert beside == inside == Target(beside) == Target(str(beside))
    assert beside.host == Target("c -mcpu=cortex-m0")
    assert beside.without_host() == Target("c -mcpu=cortex-m4")
    assert Target(beside, host="c -mcpu=cortex-m0") == beside
    assert eval(repr(beside), {"Target": Target}) == beside


def test_host_is_named_once_and_has_no_host() -> None:
    """Two different hosts are a contradiction, and a host of a host has no meaning."""
    target = Target("c", host="c -mcpu=cortex-m0")
    with pytest.raises(ConfigError, match="the target names 'c -mcpu=cortex-m0'"):
        Target(target, host="c -mcpu=cortex-m3")
    with pytest.raises(ConfigError, match="names another host"):
        Target("c", host=target)


def test_target_is_frozen() -> None:
    """No stage can change a target that another one holds."""
    with pytest.raises(AttributeError):
        Target("c").mcpu = "cortex-m4"  # type: ignore[misc]


@pytest.mark.parametrize(
    ("text", "alignment", "keys"),
    [
        ("c", 4, ("cpu",)),
        ("c -mcpu=cortex-m0", 4, ("arm_cpu", "cpu")),
        ("c -mcpu=cortex-m4", 4, ("arm_cpu", "cpu")),
        ("c -mcpu=cortex-m55", 8, ("arm_cpu", "cpu")),
        ("c -mcpu=cortex-m55+nomve", 4, ("arm_cpu", "cpu")),
        ("c -mcpu=x86-64", 8, ("cpu",)),
        ("c -march=rv64gc", 8, ("cpu",)),
        ("c -march=rv32imac", 4, ("cpu",)),
        ("c -mcpu=atmega328p", 1, ("cpu",)),
        ("c -mcpu=esp32", 4, ("cpu",)),
    ],
)
def test_facts_of_the_machine_follow_from_the_target(
    text: str, alignment: int, keys: tuple[str, ...]
) -> None:
    """Natural alignment and keys are questions to the target."""
    target = Target(text)
    assert target.natural_alignment() == alignment
    assert target.keys == keys


@pytest.mark.parametrize(
    ("machine", "mcpu"),
    [("x86_64", "x86-64"), ("AMD64", "x86-64"), ("arm64", "aarch64"), ("vax", None)],
)
def test_native_is_resolved_at_once(
    monkeypatch: pytest.MonkeyPatch, machine: str, mcpu: str | None
) -> None:
    """`native` becomes the name of the machine's CPU, or portable code on an unknown one."""
    monkeypatch.setattr("platform.machine", lambda: machine)
    assert Target("c -mcpu=native").mcpu == mcpu


def _targets() -> st.SearchStrategy[Target]:
    removable = [f for f in Feature if f not in FIXED]

    @st.composite
    def draw_target(draw: st.DrawFn) -> Target:
        core = draw(st.sampled_from([*CPUS.values(), *ARCHITECTURES.values()]))
        attribute = "mcpu" if core.name in CPUS else "march"
        removed = draw(st.sets(st.sampled_from(removable), max_size=3))
        spec: dict[str, object] = {
            "kind": "c",
            attribute: core.name,
            "mattr": [f"-{feature}" for feature in in_order(frozenset(removed))],
        }
        abis = instruction_set(core.family).abis(core)
        if abis:
            spec["mabi"] = draw(st.sampled_from(abis))
        model = draw(st.none() | st.from_regex(r"[a-z0-9][a-z0-9._+-]{0,8}", fullmatch=True))
        if model is not None:
            spec["model"] = model
        host = draw(st.none() | st.sampled_from(["c", "c -mcpu=cortex-m0 -model=h"]))
        return Target(spec, host=host)

    return draw_target()


@given(_targets())
def test_round_trips_of_a_target(target: Target) -> None:
    """str, repr, export and JSON of a target each give the same target again."""
    assert Target(str(target)) == target
    assert eval(repr(target), {"Target": Target}) == target
    assert Target(target.export()) == target
    assert Target(json.dumps(target.export())) == target
    assert str(Target(str(target))) == str(target)


@given(st.text(max_size=40))
def test_any_text_is_a_target_or_a_config_error(text: str) -> None:
    """No text makes the parser fail in any way but with its diagnostic."""
    try:
        target = Target(f"c {text}")
    except ConfigError:
        return
    assert Target(str(target)) == target


@pytest.mark.parametrize(
    ("mcpu", "has_dsp", "has_mve"),
    [
        *((name, False, False) for name in ("cortex-m0", "cortex-m0plus", "cortex-m3")),
        *((name, True, False) for name in ("cortex-m4", "cortex-m7", "cortex-m33", "cortex-m35p")),
        *((name, True, True) for name in ("cortex-m55", "cortex-m85")),
        ("cortex-m4+nodsp", False, False),
        ("cortex-m55+nomve", True, False),
        ("cortex-m55+nodsp", False, False),
    ],
)
def test_features_are_asked_for_as_in_microtvm(mcpu: str, has_dsp: bool, has_mve: bool) -> None:
    """By attributes; they are a tuple as well."""
    features = Target(f"c -mcpu={mcpu}").features
    assert (features.has_dsp, features.has_mve) == (has_dsp, has_mve)
    assert (Feature.DSP in features, Feature.MVE in features) == (has_dsp, has_mve)


def test_a_target_gets_a_host() -> None:
    """As a new target, in the place of the host that it had; kinds are listed."""
    alone = Target("c -mcpu=cortex-m4")
    hosted = alone.with_host("c")
    assert hosted == Target("c -mcpu=cortex-m4", host="c") and alone.host is None
    assert hosted.with_host("c -mcpu=cortex-m55").host == Target("c -mcpu=cortex-m55")
    with pytest.raises(ConfigError, match="another host"):
        alone.with_host(hosted)
    assert Target.list_kinds() == ["c"]
