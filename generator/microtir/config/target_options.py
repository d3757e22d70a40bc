"""The options of a target, as rows of the option table."""

from __future__ import annotations

from microtir.config.domains import Choice, Structure
from microtir.config.enums import TargetKind
from microtir.config.option import Option, Section

TARGET_OPTIONS: tuple[Option, ...] = (
    Option(
        Section.TARGET,
        "kind",
        Choice(TargetKind),
        "c",
        "Chooses the kind of code; it is the first word of a target string.",
        spelling="--target c",
    ),
    *(
        Option(Section.TARGET, name, Structure("str", legal), None, text, derived)
        for name, legal, text, derived in (
            (
                "mcpu",
                "a name from `microtir targets`, 'native', with suffixes such as +nodsp",
                "Names the CPU, which decides the features that kernels may use.",
                "no CPU: portable code",
            ),
            (
                "march",
                "an Arm architecture or a RISC-V string such as rv32imac",
                "Names the architecture where no CPU is named, and must fit the CPU otherwise.",
                "the CPU's",
            ),
            (
                "mabi",
                "aapcs for Arm; ilp32, ilp32e, ilp32f, ilp32d, lp64, lp64f, lp64d for RISC-V",
                "Names the calling convention of the C compiler.",
                "the fullest that the CPU has registers for",
            ),
            (
                "mattr",
                "features with + or -, separated by commas, such as -dsp,-fp",
                "Adds an optional feature of the architecture, or removes one of the CPU.",
                "the CPU's features",
            ),
            (
                "model",
                "letters, digits, and . _ + -",
                "Names the part or board; recorded in metadata, and decides nothing.",
                "none",
            ),
            (
                "keys",
                "the keys that follow from the CPU: arm_cpu,cpu or cpu",
                "Accepts existing target strings; the value must agree with the CPU.",
                "arm_cpu,cpu for Arm, else cpu",
            ),
            (
                "host",
                "a target without a host; in a dict or in Target(…, host=…)",
                "Names the host that goes with this target.",
                "none",
            ),
        )
    ),
)
