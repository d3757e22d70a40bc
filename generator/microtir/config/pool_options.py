"""Options of memory pools: rows of the table in `options`, much the same for both kinds of pool."""

from __future__ import annotations

from dataclasses import replace

from microtir.config.domains import Flag, Integer, Word
from microtir.config.option import Option, Section
from microtir.support.texts import section_problem

MAX_BYTES = 2**31 - 1
MAX_ALIGNMENT = 128
DEFAULT_WORKSPACE = "workspace"


_UNLIMITED = Integer(1, MAX_BYTES, also=-1)
_WORKSPACE = (
    Option(
        Section.WORKSPACE_POOL,
        "size_hint_bytes",
        _UNLIMITED,
        -1,
        "Limits the pool to this many bytes; -1 means no limit.",
    ),
    Option(
        Section.WORKSPACE_POOL,
        "is_internal",
        Flag(),
        False,
        "True makes the pool arrays in the generated code, in a section. False leaves the memory "
        "of the pool to the application, which passes a pointer to it.",
    ),
    Option(
        Section.WORKSPACE_POOL,
        "section",
        Word("letters, digits, underscores and dots; empty for no section", section_problem),
        "",
        "Names the linker section of the pool's array. The array is in the generated code if "
        "is_internal is True; otherwise a macro of the header declares it.",
        derived="none",
    ),
    Option(
        Section.WORKSPACE_POOL,
        "byte_alignment",
        Integer(1, MAX_ALIGNMENT, power=True),
        1,
        "Sets the minimum alignment, in bytes, of the pool and of every buffer in it. If the "
        "executor's workspace-byte-alignment is larger, it counts instead.",
    ),
)


_BURST = "Sets the bytes of one burst, which has one latency; -1 means a word of 4 bytes."


def _speeds(section: Section) -> tuple[Option, ...]:
    """Return the options that say what a pool's memory costs."""
    latency = Integer(0, MAX_BYTES)
    return tuple(
        Option(section, *hint)
        for hint in (
            ("clock_frequency_hz", _UNLIMITED, -1, "States the clock of the memory in Hz."),
            ("read_bandwidth_bytes_per_cycle", _UNLIMITED, -1, "Sets bytes read per cycle."),
            ("write_bandwidth_bytes_per_cycle", _UNLIMITED, -1, "Sets bytes written per cycle."),
            ("read_latency_cycles", latency, 0, "Sets the cycles before a read begins."),
            ("write_latency_cycles", latency, 0, "Sets the cycles before a write begins."),
            ("target_burst_bytes", _UNLIMITED, -1, _BURST),
        )
    )


_CONSTANT = (
    Option(
        Section.CONSTANT_POOL,
        "size_hint_bytes",
        _UNLIMITED,
        -1,
        "Limits the arrays in the pool to this many bytes; -1 means no limit.",
    ),
    Option(
        Section.CONSTANT_POOL,
        "is_internal",
        Flag(),
        False,
        "True makes the pool arrays in the generated code, in a section. False leaves the memory "
        "of the pool to the application, which passes a pointer to it.",
    ),
    replace(
        _WORKSPACE[2],
        section=Section.CONSTANT_POOL,
        help="Names the linker section of the pool's arrays. These are in the generated code if "
        "is_internal is True; otherwise a macro of the header declares one array.",
    ),
    replace(
        _WORKSPACE[3],
        section=Section.CONSTANT_POOL,
        help="Sets the minimum alignment, in bytes, of every array in the pool. If the "
        "executor's constants-byte-alignment is larger, it counts instead.",
    ),
)

POOL_OPTIONS: tuple[Option, ...] = (
    *_WORKSPACE,
    *_speeds(Section.WORKSPACE_POOL),
    *_CONSTANT,
    *_speeds(Section.CONSTANT_POOL),
)
