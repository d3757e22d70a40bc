"""Translates what tvmc spells differently: flags, targets, pass options, configuration files.

Everything here is turned into flags and fields of the option table, with the meaning that it has
for tvmc, or refused with what took its place. Nothing is read and ignored: an option that is
dropped asks for what microtir does in any case.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from microtir.config.flag import Flag, FlagValue
from microtir.config.option import Section
from microtir.config.options import find
from microtir.config.target_text import processor_option
from microtir.errors import ConfigError
from microtir.support.shown import shown

_ATTRIBUTES = ("mcpu", "march", "mattr", "mabi", "model", "keys")
_CMSIS_NN = "cmsis-nn"
_ETHOS_U = "ethos-u"
# Code generators that tvmc takes beside a target kind.
_OTHERS = (_ETHOS_U, "ethos-n", "compute-library", "bnns", "vitis-ai", "clml", "llvm", "cuda")
_NEXT_TARGET = re.compile(rf"\s*,\s*(?=(?:c|{_CMSIS_NN}|{'|'.join(_OTHERS)})(?:\s|,|$))")
_OPT_LEVEL = "3"
# Options that a target had until microTVM 0.9, and the flags that have them since.
_WORDS: Mapping[str, str] = MappingProxyType(
    {
        "executor": "executor",
        "runtime": "runtime",
        "system-lib": "runtime_crt_system_lib",
        "interface-api": "executor_aot_interface_api",
        "unpacked-api": "executor_aot_unpacked_api",
        "link-params": "executor_{executor}_link_params",
        "workspace-byte-alignment": "executor_aot_workspace_byte_alignment",
        "constants-byte-alignment": "executor_aot_constant_byte_alignment",
    }
)
_WORD = re.compile(rf"\s--?({'|'.join(_WORDS)})(?:=(\S+))?(?=\s|$)")

TVMC_FLAGS: tuple[Flag, ...] = (
    *(
        Flag(f"--target-c-{name}", name.upper(), f'The same as -{name} in --target "c …".')
        for name in _ATTRIBUTES
    ),
    Flag(f"--target-{_CMSIS_NN}-mcpu", "MCPU", f'The same as -mcpu in --target "{_CMSIS_NN} …".'),
    Flag(
        "--opt-level",
        _OPT_LEVEL,
        "All passes always run. To select other passes, use --optimize or --pass-config.",
        short="-O",
    ),
    Flag(
        "--workspace-pools-targets",
        "POOL:KIND",
        "Accepted for tvmc: every target can use every pool. KIND must be the kind of a target.",
        repeatable=True,
    ),
    Flag(
        "--workspace-pools-target-access",
        "POOL:KIND:ACCESS",
        "Workspace pools are read and written. Use a constant pool for read-only memory.",
        repeatable=True,
    ),
)

Texts = dict[str, tuple[object, ...]]


def with_tvmc_defaults(texts: Mapping[str, FlagValue]) -> dict[str, FlagValue]:
    """Return flags with what tvmc means where they say nothing, beside `tvmc_base`.

    The executor `aot` has packed arguments unless a flag says otherwise.
    """
    result = dict(texts)
    words = str(result.get("target"))
    is_aot = result.get("executor") == "aot" or "-executor=aot" in words
    names = ("executor_aot_interface_api", "executor_aot_unpacked_api", "config")
    is_said = any(result.get(name) for name in names) or "-interface-api" in words
    if is_aot and not is_said and "-unpacked-api" not in words:
        result["executor_aot_interface_api"] = "packed"
    return result


def from_tvmc(texts: Mapping[str, tuple[object, ...]]) -> Texts:
    """Return the flags that a command line of tvmc stands for.

    Args:
        texts: values by dest, of flags of both kinds.

    Raises:
        ConfigError: a value of tvmc that nothing here has the meaning of.
    """
    result = dict(texts)
    attributes = {
        name: str(result.pop(f"target_c_{name}")[0])
        for name in _ATTRIBUTES
        if f"target_c_{name}" in result
    }
    cmsis = result.pop("target_cmsis_nn_mcpu", ())
    if "target" in result or attributes or cmsis:
        names = [_without_words(str(t), result) for t in result.get("target", ("c",))]
        external = [str(text) for text in result.get("external", ())]
        result["target"] = _targets(names, attributes, [str(c) for c in cmsis], external)
    level = result.pop("opt_level", (_OPT_LEVEL,))[0]
    if str(level) != _OPT_LEVEL:
        raise ConfigError(
            f"flag '-O' is {shown(level)}, but microtir has no optimisation levels",
            where="-O",
            legal=_OPT_LEVEL,
            fix="choose a goal with --optimize, or single passes with --pass-config",
        )
    for value in _split(result.pop("workspace_pools_targets", ())):
        _check_pool_target(value)
    for value in _split(result.pop("workspace_pools_target_access", ())):
        _check_pool_access(value)
    result |= {
        dest: _split(values)
        for dest, values in result.items()
        if dest.startswith(("workspace_pools_", "constant_pools_"))
    }
    result |= {
        dest: tuple(map(_without_target, values))
        for dest, values in result.items()
        if dest.endswith("_pools_target_burst_bytes")
    }
    if "pass_config" in result:
        assignments = [_assignment(str(text)) for text in result["pass_config"]]
        result["pass_config"] = tuple(text for text in assignments if text)
    return result


def from_tvmc_file(data: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields that a configuration file in tvmc's form spells; others stay as they are.

    Raises:
        ConfigError: a pass option or target that nothing here has the meaning of.
    """
    result = {name.replace("-", "_"): value for name, value in data.items()}
    for field in ("executor", "runtime"):
        value = result.get(field)
        if isinstance(value, Mapping) and "kind" in value:
            options = {name: option for name, option in value.items() if name != "kind"}
            section = _section(field, value["kind"])
            result[field] = {
                "name": value["kind"],
                "options": {
                    n: find(section, n).domain.from_text(v) if isinstance(v, str) else v
                    for n, v in options.items()
                },
            }
    if "pass-config" in data and isinstance(data["pass-config"], Mapping):
        result["pass_config"] = _pass_options(data["pass-config"])
    targets = result.get("targets")
    if isinstance(targets, list):
        result["targets"] = [_file_target(target) for target in targets]
    return result


def _section(field: str, kind: object) -> Section:
    if field == "runtime":
        return Section.RUNTIME_CRT
    return Section.EXECUTOR_GRAPH if kind == "graph" else Section.EXECUTOR_AOT


def _file_target(target: object) -> object:
    if isinstance(target, Mapping) and target.get("kind") in (_CMSIS_NN, *_OTHERS):
        raise _other_generator(str(target["kind"]))
    return target


def _pass_options(options: Mapping[str, Any]) -> dict[str, object]:
    result: dict[str, object] = {}
    for key, value in options.items():
        text = _assignment(f"{key}={value}")
        if text is not None:
            name, _, rest = text.partition("=")
            result[name] = find(Section.PASS, name).domain.from_text(rest)
    return result


def _without_words(target: str, flags: Texts) -> str:
    """Return a target without the options of `_WORDS`, which are added to the flags."""
    words = dict(_WORD.findall(target))
    executor = words.get("executor", str(flags.get("executor", ("aot",))[0]))
    for word, value in words.items():
        dest = _WORDS[word].format(executor=executor)
        value = "crt" if (word, value) == ("runtime", "c") else value or "1"
        if flags.setdefault(dest, (value,)) != (value,):
            raise ConfigError(
                f"the target contains -{word}={value}, but another option gives a different value",
                where=f"target.{word}",
                fix="remove this option from the target",
            )
    return _WORD.sub("", target)


def _split(values: tuple[object, ...]) -> tuple[object, ...]:
    """Return values of several pools in one argument: tvmc separates them by commas."""
    return tuple(part for value in values for part in str(value).split(","))


def _check_pool_target(value: object) -> None:
    pool, colon, kind = str(value).partition(":")
    if not colon or kind != "c":
        raise ConfigError(
            f"flag '--workspace-pools-targets' is {shown(value)}",
            where="--workspace-pools-targets",
            legal=f"{pool or 'POOL'}:c",
        )


def _check_pool_access(value: object) -> None:
    """Refuse a `POOL:TARGET:ACCESS` other than reading and writing by the target `c`."""
    pool, _, rest = str(value).partition(":")
    if rest != "c:rw":
        raise ConfigError(
            f"flag '--workspace-pools-target-access' is {shown(value)}",
            where="--workspace-pools-target-access",
            legal=f"{pool or 'POOL'}:c:rw",
            fix="declare read-only memory with --constant-pools",
        )


def _without_target(value: object) -> object:
    """Return `POOL:c:BYTES` as `POOL:BYTES`, because every pool has one target."""
    parts = str(value).split(":")
    return f"{parts[0]}:{parts[2]}" if len(parts) == 3 and parts[1] == "c" else value


def _targets(
    names: list[str], attributes: Mapping[str, str], cmsis: list[str], external: list[str]
) -> tuple[object, ...]:
    """Return target strings of kinds of ours; what a code generator says of the CPU is kept."""
    plain: list[str] = []
    for text in names:
        for target in _NEXT_TARGET.split(text) if not text.lstrip().startswith("{") else [text]:
            kind, _, rest = target.strip().partition(" ")
            if kind == _CMSIS_NN and any(name.startswith(f"{_CMSIS_NN}=") for name in external):
                cmsis = [*cmsis, *re.findall(r"-mcpu=(\S+)", rest)]
            elif kind in (_CMSIS_NN, *_OTHERS):
                raise _other_generator(kind)
            else:
                plain.append(_with_kind(target.strip()))
    words = "".join(f" -{name}={value}" for name, value in attributes.items())
    if words and any(target.startswith("{") for target in plain):
        raise ConfigError(
            f"'--target-c-{next(iter(attributes))}' cannot change a target in JSON",
            where="target",
            fix="add it to the JSON, or write the target as a string",
        )
    result = [f"{t}{words}" if t.split()[:1] == ["c"] else t for t in plain or ["c"]]
    if cmsis and all("-mcpu=" not in target for target in result):
        result = [f"{t} -mcpu={cmsis[0]}" if t.split()[:1] == ["c"] else t for t in result]
    return tuple(result)


def _with_kind(target: str) -> str:
    """Return a target string with its kind, which the name of a processor may stand without."""
    option = processor_option(target.partition(" ")[0])
    return f"c -{option}={target}" if option else target


def _other_generator(kind: str) -> ConfigError:
    if kind == _CMSIS_NN:
        return ConfigError(
            f"the target names '{_CMSIS_NN}', whose sources are not part of microtir",
            where="target.kind",
            fix=f"add --external {_CMSIS_NN}=FOLDER,all with the folder of its sources. To use "
            f"microtir's own kernels, leave '{_CMSIS_NN}' out",
        )
    if kind == _ETHOS_U:
        return ConfigError(
            f"the target names '{_ETHOS_U}', but only Arm's compiler vela selects layers for it",
            where="target.kind",
            legal=f"c, {_CMSIS_NN}",
            fix="compile the model with vela (vela model.tflite --accelerator-config "
            f"ethos-u55-128). Then compile vela's output file with microtir, without '{_ETHOS_U}' "
            "(see docs/ethos-u.md)",
        )
    return ConfigError(
        f"there is no code generator '{kind}'",
        where="target.kind",
        legal=f"c, {_CMSIS_NN}",
        fix="leave out this kind",
    )


# What holds in any case: asking for it changes nothing, asking for the contrary is refused.
_ALWAYS = {
    "tir.disable_vectorize": "no vector types are ever generated for C",
    "tir.usmp.enable": "memory is always planned",
    "tir.disable_storage_rewrite": "memory is always planned, by one planner",
}
_ALGORITHMS = {"greedy_by_size": "greedy", "greedy_by_conflicts": "greedy", "hill_climb": "exact"}


def _assignment(text: str) -> str | None:
    """Return an assignment to a pass option of ours; None for what holds in any case."""
    key, equals, value = (part.strip() for part in text.partition("="))
    if not equals:
        return text
    if key in _ALWAYS:
        if value.lower() in ("1", "true", "on", "yes"):
            return None
        raise ConfigError(
            f"pass_config option '{key}' is {shown(value)}: {_ALWAYS[key]}",
            where=f"pass_config.{key}",
            legal="True",
            fix="leave out the option",
        )
    if key == "tir.usmp.use_workspace_io":
        return f"memory.use_workspace_io={value}"
    if key == "tir.usmp.algorithm":
        if value not in _ALGORITHMS:
            raise ConfigError(
                f"pass_config option '{key}' is {shown(value)}",
                where=f"pass_config.{key}",
                legal=", ".join(_ALGORITHMS),
                fix="choose one of these values, or set memory.placement instead",
            )
        return f"memory.placement={_ALGORITHMS[value]}"
    return text
