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
        "Limits the pool to this many bytes; -1 is no limit.",
    ),
    Option(
        Section.WORKSPACE_POOL,
        "is_internal",
        Flag(),
        False,
        "Makes the pool a section of arrays in the generated code. False leaves the pool to the "
        "application, which passes a pointer to the bytes. The header and a file hold them.",
    ),
    Option(
        Section.WORKSPACE_POOL,
        "section",
        Word(
            "letters, digits, underscores and dots; empty for none",
            section_problem,
        ),
        "",
        "Names the section of the pool's array, which a linker script puts into a memory: of the "
        "internal array, or of the array that the header's macro declares.",
        derived="none",
    ),
    Option(
        Section.WORKSPACE_POOL,
        "byte_alignment",
        Integer(1, MAX_ALIGNMENT, power=True),
        1,
        "Sets the least alignment, in bytes, of the pool and of every buffer in it; the alignment "
        "of the workspace holds, too.",
    ),
)


_BURST = "States the bytes of one burst, which has a single latency; -1 is a word of 4 bytes."


def _speeds(section: Section) -> tuple[Option, ...]:
    """Return the options that say what a pool's memory costs."""
    latency = Integer(0, MAX_BYTES)
    return tuple(
        Option(section, *hint)
        for hint in (
            ("clock_frequency_hz", _UNLIMITED, -1, "States the clock of the memory in Hz."),
            ("read_bandwidth_bytes_per_cycle", _UNLIMITED, -1, "States bytes read per cycle."),
            ("write_bandwidth_bytes_per_cycle", _UNLIMITED, -1, "States bytes written per cycle."),
            ("read_latency_cycles", latency, 0, "States the cycles that a read waits first."),
            ("write_latency_cycles", latency, 0, "States the cycles that a write waits first."),
            ("target_burst_bytes", _UNLIMITED, -1, _BURST),
        )
    )


_CONSTANT = (
    Option(
        Section.CONSTANT_POOL,
        "size_hint_bytes",
        _UNLIMITED,
        -1,
        "Limits the arrays in the pool to this many bytes; -1 is no limit.",
    ),
    Option(
        Section.CONSTANT_POOL,
        "is_internal",
        Flag(),
        False,
        "Makes the pool a section of arrays in the generated code. False leaves the pool to the "
        "application, which passes a pointer to the bytes. The header and a file hold them.",
    ),
    replace(
        _WORKSPACE[2],
        section=Section.CONSTANT_POOL,
        help="Names the section of the pool, which a linker script puts into a memory: of the "
        "arrays of an internal pool, or of the array that the header's macro declares.",
    ),
    replace(
        _WORKSPACE[3],
        section=Section.CONSTANT_POOL,
        help="Sets the least alignment, in bytes, of every array in the pool; the alignment of "
        "constants holds, too.",
    ),
)

POOL_OPTIONS: tuple[Option, ...] = (
    *_WORKSPACE,
    *_speeds(Section.WORKSPACE_POOL),
    *_CONSTANT,
    *_speeds(Section.CONSTANT_POOL),
)
