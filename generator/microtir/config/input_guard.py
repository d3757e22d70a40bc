"""The guard that counts elements of inputs: what contradicts it."""

from __future__ import annotations

from microtir.config.enums import CallingConvention, Compatibility
from microtir.config.fields import ConfigFields
from microtir.errors import ConfigError


def check_input_guard(config: ConfigFields) -> None:
    """Check that a run has a place for the counts, and inputs that can be looked through.

    Raises:
        ConfigError: names what contradicts the option, and why.
    """
    if not config.executor.guard_inputs:
        return
    is_packed = config.entry_calling_convention() is CallingConvention.PACKED
    tensors = "a packed call takes the tensors of the model, and has no place for counts"
    against = [
        (text, reason)
        for text, reason, is_set in (
            ("interface-api 'packed'", tensors, is_packed),
            ("'system-lib' = True", tensors, config.needs_packed_wrapper()),
            (
                "'compatibility' = 'microtvm'",
                "applications for microTVM call functions that have no place for counts",
                config.compatibility is Compatibility.MICROTVM,
            ),
            (
                "'row-fed-inputs' = True",
                "no memory holds an input as a whole that could be looked through",
                config.executor.row_fed_inputs,
            ),
        )
        if is_set
    ]
    if against:
        text, reason = against[0]
        raise ConfigError(
            f"Executor('aot') option 'guard-inputs' got True, which contradicts {text}: {reason}",
            where="executor.guard-inputs",
            legal="True with interface-api 'c', without system-lib, compatibility and "
            "row-fed-inputs",
            fix="leave one of them out",
        )
