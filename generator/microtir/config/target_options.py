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
        "Chooses the kind of code. It is the first word of a target string.",
        spelling="--target c",
    ),
    *(
        Option(Section.TARGET, name, Structure("str", legal), None, text, derived)
        for name, legal, text, derived in (
            (
                "mcpu",
                "a name from `microtir targets`, or 'native'; suffixes such as +nodsp may follow",
                "Names the CPU. It decides which instruction-set features kernels may use.",
                "no CPU (portable code)",
            ),
            (
                "march",
                "an Arm architecture or a RISC-V string such as rv32imac",
                "Names the architecture if no CPU is named. Otherwise it must fit the CPU.",
                "the CPU's",
            ),
            (
                "mabi",
                "aapcs for Arm; ilp32, ilp32e, ilp32f, ilp32d, lp64, lp64f, lp64d for RISC-V",
                "Names the calling convention of the C compiler.",
                "the one that uses most registers of the CPU",
            ),
            (
                "mattr",
                "features with + or -, separated by commas, such as -dsp,-fp",
                "Adds features of the architecture (+), or removes features of the CPU (-).",
                "the CPU's features",
            ),
            (
                "model",
                "letters, digits, and . _ + -",
                "Names the part or board. The name is only recorded in the metadata.",
                "none",
            ),
            (
                "keys",
                "arm_cpu,cpu for Arm, otherwise cpu",
                "Accepts target strings of TVM. The keys must be those of the CPU.",
                "arm_cpu,cpu for Arm, else cpu",
            ),
            (
                "host",
                "a target without a host, in a dict or as Target(…, host=…)",
                "Names the host that goes with this target.",
                "none",
            ),
        )
    ),
)
