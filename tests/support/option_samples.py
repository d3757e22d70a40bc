"""Sample values of every option, legal and not, for tests over all pairs of options."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from microtir.config.domains import Choice, Domain, Flag, Integer, Word
from microtir.config.option import Option, Section
from microtir.config.options import OPTIONS

# Options of what the default configuration does not have: another executor, a pool.
_EXECUTORS = {Section.EXECUTOR_GRAPH: "graph", Section.EXECUTOR_DEBUG: "debug"}
_OF_NOTHING = (*_EXECUTORS, Section.CONSTANT_POOL)
_A_CONSTANT_POOL = "flash"

Samples = tuple[tuple[object, ...], tuple[object, ...]]

# Values that are legal and values that are not, of options whose rule is not in their domain. A
# configuration may name any folder of a library, any file of records and any axis of an input: a
# build needs what is there, so that those have no legal sample.
_SAMPLES: dict[tuple[Section, str], Samples] = {
    (Section.CONFIG, "targets"): (
        ("c", "c -mcpu=cortex-m4", "c -mcpu=cortex-m55 -mattr=-mve", "c -march=rv32imac"),
        ("", "llvm", "c -mcpu=cortex-m99", "c -mcu=cortex-m4", 5, (), ("c", "c")),
    ),
    (Section.CONFIG, "target_host"): (
        ("c", "c -mcpu=cortex-m4"),
        ("llvm", "", 5, '{"kind": "c", "host": "c"}'),
    ),
    (Section.CONFIG, "workspace_pools"): (
        ("workspace", "dtcm-2"),
        ("9 lives", "int", "", 5),
    ),
    (Section.CONFIG, "constant_pools"): (
        ("flash",),
        ("9 lives", "int", "", 5),
    ),
    (Section.CONFIG, "module_name"): (
        ("default", "kws", "MyNet", "net_2", ""),
        ("my-model.v2", "2net", "int", "string", "_x", "a__b", "naïve", "con"),
    ),
    (Section.CONFIG, "external"): (
        (),
        ("cmsis-nn", "cmsis-nn=", "cmsisnn=x", 5, "cmsis-nn=x,all,3"),
    ),
    (Section.CONFIG, "tuning_records"): (
        ("",),
        ("a\nb",),
    ),
    (Section.CONFIG, "states"): (
        ("",),
        ("x", "x=", "=y", "x=y=z", "x=y,", "x=y,x=y", "x*=y", "x**=y**", 1),
    ),
    (Section.CONFIG, "stream_axis"): (
        ("",),
        ("x", "-1", "10", "=1", 1),
    ),
    (Section.CONFIG, "stream_hop"): (
        (1,),  # others need stream_axis
        (0, -1, "x"),
    ),
    **{
        (Section.CONFIG, name): (
            ("",),  # others need a model with such a port
            ("x", "x=", "=y", "x=y-z", "x=9", "x=y,", "x=y,x=z", "x=z,y=z", f"x={'y' * 64}", 1),
        )
        for name in ("rename_input", "rename_output")
    },
    (Section.CONFIG, "prepend"): (
        ("",),  # others need a model with such an input
        ("fft", "over:0", "over", "nhwc,over:2", "over:2,uint8", "=over:2", "resize:3", 1),
    ),
    (Section.CONFIG, "append"): (
        ("",),
        ("uint8", "topk:0", "softmax:1", "argmax;argmax", 1),
    ),
    (Section.CONFIG, "budget"): (
        (),
        (5, "64K", {"rom": 1}),
    ),
    (Section.CONFIG, "pass_config"): (
        (),
        (5, {"tir.usmp.enabled": True}),
    ),
    (Section.WORKSPACE_POOL, "section"): (
        ("", ".dtcm"),
        ("9dtcm", 'a"b', "a b"),
    ),
    (Section.CONSTANT_POOL, "section"): (
        ("", ".dtcm"),
        ("9dtcm", 'a"b', "a b"),
    ),
    (Section.PASS, "graph.input_ranges"): (
        ("", "-128..126", "x=-127..127"),
        ("0..128", "5..-5", "image", "0..1,2..3"),
    ),
    (Section.PASS, "graph.more_outputs"): (
        ("",),
        (",", "a,,b", "a, a"),
    ),
    (Section.PASS, "memory.input_pool"): (
        ("", "workspace"),
        ("9 lives", "int"),
    ),
    **{
        (Section.PASS, name): (("", "workspace"), ("9 lives", "int"))
        for name in ("memory.output_pool", "ethos_u.scratch_pool", "ethos_u.fast_scratch_pool")
    },
}


@dataclass(frozen=True, slots=True)
class Sample:
    """A value of an option, for `assemble`.

    `accepted` says whether alone it is accepted; `companion` is the name and the value of the
    option without which it is refused, if that is so.
    """

    option: Option
    value: object
    accepted: bool
    companion: tuple[str, object] | None = None


def all_values() -> Iterator[Sample]:
    """Yield legal, not yet built, and illegal values of every option, in the order of the table.

    Attributes of a target have no entries of their own: `targets` has whole target strings.
    """
    for option in OPTIONS:
        if option.section is Section.TARGET:
            continue
        good, bad = _samples(option)
        for value in good:
            companion = _companion(option, value)
            yield Sample(option, value, not companion and _is_built(option, value), companion)
        for value in bad:
            yield Sample(option, value, accepted=False)


def _samples(option: Option) -> Samples:
    """Values that are legal, and values that are not."""
    if (option.section, option.name) not in _SAMPLES:
        return _of_domain(option.domain)
    good, bad = _SAMPLES[option.section, option.name]
    return good, ((*bad, 7, True) if isinstance(option.domain, Word) else bad)


def _of_domain(domain: Domain) -> Samples:
    match domain:
        case Flag():
            return (False, True), (1, "True", 0.0)
        case Integer(low, high, power, also):
            bad: list[object] = [high + 1, str(low), 1.5, True]
            bad += [low - 1] * (low - 1 != also)
            bad += [3, -5] * power
            return (low, high, *([] if also is None else [also])), tuple(bad)
        case Choice():
            first = domain.choices()[0]
            return domain.choices(), (first.upper(), "banana", "", 1, True)
        case _:
            raise AssertionError(f"{domain} has samples in the table")


def _is_built(option: Option, value: object) -> bool:
    if option.section in _OF_NOTHING:
        return False
    if None in option.pending:
        return value == option.default
    return value not in option.pending


def _companion(option: Option, value: object) -> tuple[str, object] | None:
    if option.section in _EXECUTORS:
        return "executor", _EXECUTORS[option.section]
    if option.section is Section.CONSTANT_POOL:
        return "constant_pools", _A_CONSTANT_POOL
    if option.name == "unpacked-api" and value is False:
        return "interface-api", "packed"
    if option.name in ("memory.input_pool", "memory.output_pool") and value:
        return "memory.use_workspace_io", True
    return None
