"""Checks what contradicts the option `fault_checks`."""

from __future__ import annotations

from microtir.config.enums import CallingConvention, Compatibility, FaultChecks
from microtir.config.fields import ConfigFields
from microtir.errors import ConfigError
from microtir.instruction_sets.features import Feature


def check_fault_checks(config: ConfigFields) -> None:
    """Check that weights are arrays of the code, and that a run is one C function.

    Raises:
        ConfigError: names what contradicts the option, and why.
    """
    if config.fault_checks is FaultChecks.NONE:
        return
    for text, reason, is_set in _contradictions(config):
        if is_set:
            raise ConfigError(
                f"option 'fault_checks' is '{config.fault_checks}', which contradicts {text}: "
                f"{reason}",
                where="fault_checks",
                legal="start, layers with executor 'aot', interface-api 'c' and linked weights",
                fix="leave one of them out",
            )


def _contradictions(config: ConfigFields) -> list[tuple[str, str, bool]]:
    """Return what may contradict the option, why, and whether it is set."""
    outside, calls = "the weights are not arrays of the code", "a model runs in several calls"
    statuses = "its callers expect other statuses"
    packed = config.entry_calling_convention() is CallingConvention.PACKED
    microtvm = config.compatibility is Compatibility.MICROTVM
    passed = any(not pool.pool_info_properties.is_internal for pool in config.constant_pools)
    avr = config.primary_target().has(Feature.AVR_PROGMEM)
    return [
        (f"executor '{config.executor.name}'", calls, config.is_graph()),
        ("'steps' = True", calls, config.executor.steps),
        ("'link-params' = False", outside, not config.should_link_params()),
        ("'constant_pools' that are passed", outside, passed),
        ("interface-api 'packed'", statuses, packed),
        ("'system-lib' = True", statuses, config.needs_packed_wrapper()),
        ("'compatibility' = 'microtvm'", statuses, microtvm),
        ("an AVR", "its weights lie in a memory that pointers do not reach", avr),
    ]
