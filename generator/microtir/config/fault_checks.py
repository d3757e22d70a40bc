"""Checks what contradicts the options `fault_checks` and `canaries`."""

from __future__ import annotations

from microtir.config.enums import CallingConvention, Compatibility, FaultChecks
from microtir.config.fields import ConfigFields
from microtir.errors import ConfigError
from microtir.instruction_sets.features import Feature


def check_fault_checks(config: ConfigFields) -> None:
    """Check that a run is one C function, and for checksums that weights are arrays of the code.

    Raises:
        ConfigError: names what contradicts the option, and why.
    """
    legal = "only with executor 'aot', interface-api 'c'"
    if config.fault_checks is not FaultChecks.NONE:
        said = f"start, layers, tensors {legal} and linked weights"
        contradictions = [*_of_runs(config), *_of_weights(config)]
        _refuse("fault_checks", f"'{config.fault_checks}'", contradictions, said)
    if config.canaries:
        _refuse("canaries", "True", _of_runs(config), f"True {legal}")


def _refuse(name: str, value: str, contradictions: list[tuple[str, str, bool]], legal: str) -> None:
    for text, reason, is_set in contradictions:
        if is_set:
            raise ConfigError(
                f"option '{name}' is {value}, which excludes {text}, because {reason}",
                where=name,
                legal=legal,
                fix="leave out one of the two options",
            )


def _of_runs(config: ConfigFields) -> list[tuple[str, str, bool]]:
    """Return what may contradict a run that ends with a status, why, and whether it is set."""
    calls, statuses = "a model runs in several calls", "its callers expect other statuses"
    packed = config.entry_calling_convention() is CallingConvention.PACKED
    microtvm = config.compatibility is Compatibility.MICROTVM
    return [
        (f"executor '{config.executor.name}'", calls, config.is_graph()),
        ("'steps' = True", calls, config.executor.steps),
        ("interface-api 'packed'", statuses, packed),
        ("'system-lib' = True", statuses, config.needs_packed_wrapper()),
        ("'compatibility' = 'microtvm'", statuses, microtvm),
    ]


def _of_weights(config: ConfigFields) -> list[tuple[str, str, bool]]:
    """Return what may contradict checksums of weights, why, and whether it is set."""
    outside = "the weights are not arrays of the code"
    passed = any(not pool.pool_info_properties.is_internal for pool in config.constant_pools)
    avr = config.primary_target().has(Feature.AVR_PROGMEM)
    return [
        ("'link-params' = False", outside, not config.should_link_params()),
        ("'constant_pools' that are passed", outside, passed),
        ("an AVR", "its weights lie in a memory that pointers do not reach", avr),
    ]
