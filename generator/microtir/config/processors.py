"""Names of the processors of a configuration for use in sentences, and where their code runs."""

from __future__ import annotations

import platform
from collections.abc import Iterable

from microtir.config.target import Target
from microtir.instruction_sets import CPUS, NATIVE, instruction_set
from microtir.instruction_sets.core import GENERIC


def for_processors(targets: Iterable[Target]) -> str:
    """Return the CPUs that code is for, as a result's first line says it: ``for cortex-m4``."""
    return f"for {processors(targets)}"


def processors(targets: Iterable[Target]) -> str:
    """Return the CPUs by name, with the features that each has more or less than usual."""
    return " and ".join(dict.fromkeys(map(_name, targets)))


def unused_extensions(targets: Iterable[Target]) -> str:
    """Return a note on what a target is said to have and no kernel uses; empty if all is used."""
    cores = {target.core.name: target.core for target in targets}
    unused = {
        name: instruction_set(core.family).unused_extensions(core) for name, core in cores.items()
    }
    return "\n".join(
        f"note: no kernel uses {', '.join(places)} of {name}; the C is as for a core without it"
        for name, places in unused.items()
        if places
    )


def run_here(targets: Iterable[Target]) -> str:
    """Return the CPUs that code is for, where it ran on this machine.

    Kernels for another processor have bodies in portable C, which are what ran.
    """
    order = tuple(targets)
    native = CPUS.get(NATIVE.get(platform.machine().lower(), ""))
    is_own = all(
        t.core is GENERIC or (native is not None and t.core.march == native.march) for t in order
    )
    return f"{for_processors(order)}, run here{'' if is_own else ' as portable C'}"


def _name(target: Target) -> str:
    """Return a CPU or an architecture, with the features that it has more or less than usual."""
    if target.core is GENERIC:
        return "any CPU"
    changes = str(target.export().get("mattr", "")).replace("-", "+no").replace(",", "")
    return f"{target.core.name}{changes}"
