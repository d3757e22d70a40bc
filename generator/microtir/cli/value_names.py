"""Say which outputs are places in a list of names, and where the names are."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from microtir.cli.output import write

if TYPE_CHECKING:
    from microtir.module.ir_module import IRModule


@dataclass(frozen=True, slots=True)
class NamedOutput:
    """An output whose values are places in a list of names, as `check` prints it.

    Args:
        output: by the model's name for it.
        names: of the values 0, 1, 2 and so on.
    """

    output: str
    names: tuple[str, ...]


def named_outputs(lowered: IRModule) -> tuple[NamedOutput, ...]:
    """Return the outputs of a lowered module that have names in the place of numbers."""
    ports = lowered.model.ports if lowered.model is not None else ()
    return tuple(NamedOutput(port.name, port.names) for port in ports if port.names)


def write_named_outputs(outputs: Sequence[NamedOutput]) -> None:
    """Print where their names are; nothing where there are none."""
    for one in outputs:
        first = ", ".join(repr(name) for name in one.names[:_SHOWN])
        more = f" and {len(one.names) - _SHOWN} more" if len(one.names) > _SHOWN else ""
        write(
            f"\noutput {one.output!r} holds strings; in C each is an index into its names: {first}"
            f"{more}.\nThe header has them as a macro that ends in _NAMES, and metadata.json as"
            " `names` of the port"
        )


_SHOWN = 3
