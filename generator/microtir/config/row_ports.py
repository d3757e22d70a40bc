"""Inputs and outputs that are handed over row by row: what contradicts them."""

from __future__ import annotations

from microtir.config.enums import CallingConvention, Compatibility
from microtir.config.fields import ConfigFields
from microtir.errors import ConfigError


def check_row_ports(config: ConfigFields) -> None:
    """Check that rows are handed over through the C interface, whose structs hold the functions.

    Raises:
        ConfigError: names the option and what it contradicts.
    """
    asked = [
        name
        for name, is_set in (
            ("row-fed-inputs", config.executor.row_fed_inputs),
            ("row-drained-outputs", config.executor.row_drained_outputs),
        )
        if is_set
    ]
    is_packed = config.entry_calling_convention() is CallingConvention.PACKED
    against = [
        text
        for text, is_set in (
            ("interface-api 'packed'", is_packed),
            ("'system-lib' = True", config.needs_packed_wrapper()),
            ("'compatibility' = 'microtvm'", config.compatibility is Compatibility.MICROTVM),
            ("'memory.use_workspace_io' = True", config.pass_config.use_workspace_io),
        )
        if is_set
    ]
    if asked and against:
        raise ConfigError(
            f"aot executor option '{asked[0]}' is True, which excludes {against[0]}, because "
            "the whole tensor is then never in memory at one time",
            where=f"executor.{asked[0]}",
            legal="True only with interface-api 'c', and without system-lib and use_workspace_io",
            fix="leave out one of the two options",
        )
