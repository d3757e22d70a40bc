"""Options of memory pools: rows of the table in `options`, the same for both kinds of pool."""

from __future__ import annotations

from microtir.config.domains import Flag, Integer
from microtir.config.option import Option, Section, pending

MAX_BYTES = 2**31 - 1


def _pool_options(section: Section, size: Option) -> tuple[Option, ...]:
    latency = Integer(0, MAX_BYTES)
    unlimited = Integer(1, MAX_BYTES, also=-1)
    instead = "leave it at its default: placement looks at sizes only"
    hints = (
        ("clock_frequency_hz", unlimited, -1, "States the clock of the memory in Hz."),
        ("read_bandwidth_bytes_per_cycle", unlimited, -1, "States bytes read per cycle."),
        ("write_bandwidth_bytes_per_cycle", unlimited, -1, "States bytes written per cycle."),
        ("read_latency_cycles", latency, 0, "States the cycles before a read."),
        ("write_latency_cycles", latency, 0, "States the cycles before a write."),
    )
    return (
        size,
        Option(
            section,
            "is_internal",
            Flag(),
            False,
            "Makes the pool an array of the generated code; False leaves it to the application.",
            pending=pending("leave it out: the application provides the memory", True),
            spelling="",
        ),
        *(
            # No flag while there is only one value to give.
            Option(section, name, domain, default, text, pending=pending(instead), spelling="")
            for name, domain, default, text in hints
        ),
    )


_WORKSPACE_SIZE = Option(
    Section.WORKSPACE_POOL,
    "size_hint_bytes",
    Integer(1, MAX_BYTES, also=-1),
    -1,
    "Limits the pool to so many bytes: a plan that needs more is refused; -1 is no limit.",
)
_CONSTANT_SIZE = Option(
    Section.CONSTANT_POOL,
    "size_hint_bytes",
    Integer(1, MAX_BYTES, also=-1),
    -1,
    "Limits the pool to so many bytes.",
    pending=pending("use the flash budget, which limits the bytes of all weights"),
    spelling="",
)

POOL_OPTIONS: tuple[Option, ...] = (
    *_pool_options(Section.WORKSPACE_POOL, _WORKSPACE_SIZE),
    *_pool_options(Section.CONSTANT_POOL, _CONSTANT_SIZE),
)
