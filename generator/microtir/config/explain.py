"""The text table of a configuration: option, value, and where the value comes from."""

from __future__ import annotations

from microtir.config.fields import ConfigFields
from microtir.config.option import Option, Section
from microtir.config.options import OPTIONS


def rows(config: ConfigFields, plain: ConfigFields) -> list[tuple[str, str, str]]:
    """Return (field, value, origin) of every option; origin is `set`, `default` or `derived`."""
    result = []
    for option in OPTIONS:
        entry = _path_and_value(option, config)
        if entry is None:
            continue
        path, value = entry
        default = _path_and_value(option, plain)
        same = default is not None and default[1] == value
        origin = "default" if same and option.name != "targets" else "set"
        if option.section is Section.EXECUTOR_AOT and value == "None":
            value = str(_alignment(option, config))
            origin = "derived"
        result.append((path, value, origin))
    return result


def explain(config: ConfigFields, plain: ConfigFields) -> str:
    """Return the table as text, columns aligned; `plain` has the same targets and no options."""
    table = [("field", "value", "origin"), *rows(config, plain)]
    widths = [max(len(row[column]) for row in table) for column in (0, 1)]
    lines = [f"{a:<{widths[0]}}  {b:<{widths[1]}}  {c}" for a, b, c in table]
    return "\n".join(lines) + "\n"


def _path_and_value(option: Option, config: ConfigFields) -> tuple[str, str] | None:
    """Return the option's path and value in `config`, or None where other options show it."""
    section, name = option.section, option.name
    if section is Section.CONFIG:
        return _field(name, config)
    if section is config.executor.section:
        return option.path, str(config.executor[name])
    if section is config.runtime.section:
        return option.path, str(config.runtime[name])
    if section is Section.BUDGET:
        return option.path, str(getattr(config.budget, name) or "no limit")
    if section is Section.PASS:
        return option.path, str(config.pass_config[name])
    return None


def _field(name: str, config: ConfigFields) -> tuple[str, str] | None:
    if name in ("budget", "pass_config"):
        return None
    if name in ("executor", "runtime"):
        return f"{name}.name", str(getattr(config, name).name)
    if name == "targets":
        return name, ", ".join(str(target) for target in config.targets)
    if name == "workspace_pools" or name == "constant_pools":
        pools = config.workspace_pools if name == "workspace_pools" else config.constant_pools
        texts = [
            f"{pool.pool_name} ({'no limit' if (n := pool.size_limit) is None else f'{n} bytes'})"
            for pool in pools
        ]
        return name, ", ".join(texts) or "none"
    if name == "external":
        return name, ", ".join(map(str, config.external)) or "none"
    return name, str(getattr(config, name))


def _alignment(option: Option, config: ConfigFields) -> int:
    if option.name == "workspace-byte-alignment":
        return config.workspace_alignment()
    return config.constant_alignment()
