"""CompilationConfig ↔ JSON."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from microtir.config import enums
from microtir.config.executor import Executor
from microtir.config.fields import ConfigFields
from microtir.config.option import Section
from microtir.config.options import find
from microtir.config.runtime import Runtime
from microtir.errors import ConfigError, Fix, nearest
from microtir.support.shown import shown


def to_dict(config: ConfigFields) -> dict[str, object]:
    """Return the fields as JSON values in their order; newer ones only if set."""
    return {
        "target_host": str(config.target_host),
        "targets": [str(target) for target in config.targets],
        "executor": {"name": config.executor.name, "options": config.executor.known()},
        "runtime": {"name": config.runtime.name, "options": config.runtime.known()},
        "workspace_pools": [pool.to_dict() for pool in config.workspace_pools],
        "constant_pools": [pool.to_dict() for pool in config.constant_pools],
        "module_name": config.module_name,
        "numerics": str(config.numerics),
        "optimize": str(config.optimize),
        "measure": str(config.measure),
        "compatibility": str(config.compatibility),
        **_if_set(config),
        "external": [str(library) for library in config.external],
        "tuning_records": config.tuning_records,
        "stateful": config.stateful,
        "states": config.states,
        "stream_axis": config.stream_axis,
        "stream_hop": config.stream_hop,
        "rename_input": config.rename_input,
        "rename_output": config.rename_output,
        "prepend": config.prepend,
        "append": config.append,
        "budget": config.budget.known(),
        "pass_config": config.pass_config.known(),
    }


def _if_set(config: ConfigFields) -> dict[str, object]:
    """Return the newer options where they are set: files without them keep their text."""
    values: dict[str, object] = {}
    if config.annotations is not enums.Annotations.NONE:
        values["annotations"] = str(config.annotations)
    if config.constant_time:
        values["constant_time"] = True
    if config.fault_checks is not enums.FaultChecks.NONE:
        values["fault_checks"] = str(config.fault_checks)
    if config.canaries:
        values["canaries"] = True
    return values


def call_arguments(config: ConfigFields, plain: ConfigFields) -> str:
    """Return the arguments that make a configuration, without what it shares with a plain one.

    They name nothing but the classes that `microtir` exports: what else there is, text spells.
    """
    values = {
        **to_dict(config),
        "target_host": config.target_host,
        "targets": config.targets[0] if len(config.targets) == 1 else list(config.targets),
        "executor": config.executor,
        "runtime": config.runtime,
        "pass_config": config.pass_config.changed(),
    }
    return ", ".join(f"{name}={values[name]!r}" for name in _changed(config, plain))


def changes(config: ConfigFields, plain: ConfigFields) -> dict[str, object]:
    """Return the targets and what else differs from a plain configuration, as values of JSON."""
    executor, runtime = config.executor, config.runtime
    values = {
        **to_dict(config),
        "executor": {"name": executor.name, "options": executor.changed()},
        "runtime": {"name": runtime.name, "options": runtime.changed()},
        "pass_config": config.pass_config.changed(),
    }
    return {name: values[name] for name in _changed(config, plain)}


def _changed(config: ConfigFields, plain: ConfigFields) -> tuple[str, ...]:
    others = [n for n in to_dict(config) if getattr(config, n) != getattr(plain, n)]
    return ("targets", *(name for name in others if name != "targets"))


def to_text(data: Mapping[str, object]) -> str:
    """Return JSON text that ends in a newline; ASCII only, so that no locale can change it."""
    return json.dumps(data, indent=2) + "\n"


def from_text(text: str) -> dict[str, Any]:
    """Return the JSON object in `text`.

    Raises:
        ConfigError: no JSON, no object, or a field that is there twice.
    """
    try:
        data = json.loads(text, object_pairs_hook=_distinct)
    except ConfigError:
        raise
    except (ValueError, RecursionError) as error:
        raise ConfigError(
            f"the configuration is not JSON: {error}",
            where="CompilationConfig",
            fix=Fix("write it again with to_json()", "write it again with --dump-config"),
        ) from None
    if not isinstance(data, dict):
        raise ConfigError(
            f"the configuration is {shown(data)}, not a JSON object", where="CompilationConfig"
        )
    return data


def arguments(data: Mapping[str, Any]) -> dict[str, Any]:
    """Return the arguments of CompilationConfig that `data` spells.

    Raises:
        ConfigError: an unknown field, no targets, or an executor or runtime without a name.
    """
    for name in data:
        find(Section.CONFIG, name)
    if "targets" not in data:
        raise ConfigError("option 'targets' is missing", where="targets", legal='such as ["c"]')
    result = dict(data)
    if "executor" in data:
        result["executor"] = Executor(*_named("executor", data["executor"]))
    if "runtime" in data:
        result["runtime"] = Runtime(*_named("runtime", data["runtime"]))
    return result


def _named(field: str, value: object) -> tuple[Any, Any]:
    if isinstance(value, str):
        return value, None
    if not isinstance(value, Mapping) or "name" not in value:
        raise ConfigError(
            f"option '{field}' is {shown(value)}",
            where=field,
            legal='a name, or {"name": …, "options": {…}}',
        )
    for key in value:
        if key not in ("name", "options"):
            raise ConfigError(
                f"option '{field}' has the unknown entry '{key}': "
                f"{nearest(str(key), ('name', 'options'))}",
                where=field,
                legal="name, options",
            )
    return value["name"], value.get("options")


def _distinct(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    result: dict[str, Any] = {}
    for name, value in pairs:
        if name in result:
            raise ConfigError(
                f"the configuration has '{name}' twice in one object",
                where=name,
                fix="keep only one entry: JSON readers disagree about which one counts",
            )
        result[name] = value
    return result
