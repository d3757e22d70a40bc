"""Lists flags of tvmc that have no counterpart, each with what to do instead."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

_TYPES = "convert the model before: types are those of the file"
_LAYOUTS = "drop it: layouts are chosen for each edge of the graph"
_TRACKER = "use --board, with --port for a real one"
_IR = "use --dump-code tir, or pass a function that prints to build(…, passes=ExtraPasses(…))"
_VERBOSE = "drop it: what is being done is shown on a terminal; --debug adds a traceback"
_VM = "use --executor aot"

REFUSED: Mapping[str, str] = MappingProxyType(
    {
        "--cross-compiler": "compile writes C and calls no compiler: micro create-project makes a "
        "project that does",
        "--cross-compiler-options": "give them to the build of a project: micro build DIR CFLAGS=…",
        "--desired-layout": _LAYOUTS,
        "--desired-layout-ops": _LAYOUTS,
        "--dump-offloads": "use microtir profile --explain",
        "--disabled-pass": "use --pass-config; microtir options lists the keys",
        "--print-pass-times": "drop it: microtir explain pipeline lists the passes",
        "--print-ir-before": _IR,
        "--print-ir-after": _IR,
        "--mixed-precision": _TYPES,
        "--mixed-precision-ops": _TYPES,
        "--mixed-precision-calculation-type": _TYPES,
        "--mixed-precision-acc-type": _TYPES,
        "--end-to-end": "use microtir profile: instructions are counted exactly",
        "--rpc-key": _TRACKER,
        "--rpc-tracker": _TRACKER,
        "--runtime-cpp-system-lib": "use --runtime-crt-system-lib: the runtime is written in C",
        "--executor-vm": _VM,
        "--use-vm": _VM,
        "--verbose": _VERBOSE,
        "-v": _VERBOSE,
        "--target-cmsis-nn-debug_last_error": "drop it: the status of a kernel ends the run, and "
        "the run returns it",
        "--target-c-device": "drop it: the CPU is named by --target-c-mcpu",
        "--target-c-tag": "drop it: there are no target tags; --config NAME names a part",
        "--target-c-libs": "use --external LIBRARY=FOLDER",
        "--target-c-host": "use --target-host",
    }
)
# Flags of the other code generators of tvmc.
_OTHER_TARGETS = "leave it out: the generated code is C, for the CPU that --target names"


def instead_of(flag: str) -> str | None:
    """Return what to do instead of a flag of tvmc that microtir lacks; None for other flags."""
    if flag.startswith("--target-") and not flag.startswith(("--target-c-", "--target-cmsis-nn-")):
        return _OTHER_TARGETS if "-" in flag.removeprefix("--target-") else None
    return REFUSED.get(flag)
