"""Options that give a run one parameter more: what contradicts them."""

from __future__ import annotations

from microtir.config.enums import CallingConvention, Compatibility
from microtir.config.fields import ConfigFields
from microtir.errors import ConfigError


def check_run_parameters(config: ConfigFields) -> None:
    """Check that a run has a place for counts and numbers, and tensors to go with them.

    Raises:
        ConfigError: names what contradicts an option, and why.
    """
    executor = config.executor
    if executor.guard_inputs:
        rows = "no buffer holds the whole input that would be checked"
        _refuse(
            "guard-inputs",
            [*_other_calls(config, "counts"), _by_rows(config, rows)[0]],
            "system-lib, compatibility and row-fed-inputs",
        )
    if executor.batch_count:
        one = "the entries are computed one by one, from whole tensors outside of the workspace"
        _refuse(
            "batch-count",
            [
                *_other_calls(config, "a number"),
                ("'steps' = True", "the number of steps in a run would be unknown", executor.steps),
                *_by_rows(config, one),
                ("'memory.use_workspace_io' = True", one, config.pass_config.use_workspace_io),
            ],
            "system-lib, compatibility, steps, row-fed inputs, row-drained outputs and "
            "use_workspace_io",
        )


def _other_calls(config: ConfigFields, what: str) -> list[tuple[str, str, bool]]:
    """Return the calls that have no place for another parameter, why, and whether they are made."""
    is_packed = config.entry_calling_convention() is CallingConvention.PACKED
    tensors = f"a packed call takes the tensors of the model, and cannot pass {what}"
    return [
        ("interface-api 'packed'", tensors, is_packed),
        ("'system-lib' = True", tensors, config.needs_packed_wrapper()),
        (
            "'compatibility' = 'microtvm'",
            f"applications for microTVM call functions that have no argument for {what}",
            config.compatibility is Compatibility.MICROTVM,
        ),
    ]


def _by_rows(config: ConfigFields, reason: str) -> list[tuple[str, str, bool]]:
    executor = config.executor
    return [
        ("'row-fed-inputs' = True", reason, executor.row_fed_inputs),
        ("'row-drained-outputs' = True", reason, executor.row_drained_outputs),
    ]


def _refuse(option: str, others: list[tuple[str, str, bool]], without: str) -> None:
    """Refuse an option beside the first of others that is set."""
    for text, reason, is_set in others:
        if is_set:
            raise ConfigError(
                f"aot executor option '{option}' is True, which excludes {text}, because {reason}",
                where=f"executor.{option}",
                legal=f"True only with interface-api 'c', and without {without}",
                fix="leave out one of the two options",
            )
