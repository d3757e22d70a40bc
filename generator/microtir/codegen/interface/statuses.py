"""Lists the statuses that generated functions return; a header defines those of its own program."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from microtir.codegen.printer.layout import columns
from microtir.codegen.program import (
    CANARY_STATUS,
    EXTERN_STATUS,
    PARAMETERS_STATUS,
    STATE_STATUS,
    TENSOR_STATUS,
    WEIGHTS_STATUS,
    CProgram,
)


@dataclass(frozen=True, slots=True)
class Status:
    """A status of a generated function: its macro without the model's name, and its meaning."""

    name: str
    value: int
    text: str


_OK = "OK"
_STATUSES = (
    Status(_OK, 0, "done"),
    Status("ERROR_NULL_POINTER", -1, "a pointer is NULL"),
    Status("ERROR_WORKSPACE_ALIGNMENT", -2, "the workspace is not aligned"),
    Status("ERROR_ARGUMENT_RANGE", -3, "an integer argument is out of range"),
    Status("ERROR_TENSOR_ALIGNMENT", -4, "a tensor is not aligned"),
    Status("ERROR_TENSOR_PLACE", -5, "a tensor is not at its place in the workspace"),
    Status(EXTERN_STATUS, -6, "a C function outside the model reported a failure"),
    Status(PARAMETERS_STATUS, -7, "constants are misaligned, or not those of this code"),
    Status(STATE_STATUS, -8, "the state is misaligned, not initialised, or not of this model"),
    Status(WEIGHTS_STATUS, -9, "the weights in memory are not those of this code"),
    Status(CANARY_STATUS, -10, "something wrote beyond an end of the workspace"),
    Status(TENSOR_STATUS, -11, "a tensor in the workspace changed between two layers"),
)


def returned(program: CProgram, texts: Iterable[str]) -> tuple[Status, ...]:
    """Return the statuses that a program can return: those that the texts of its source name."""
    macro = re.compile(rf"\b{program.macro}_(\w+)\b")
    named = {_OK, *(name for text in texts for name in macro.findall(text))}
    return tuple(status for status in _STATUSES if status.name in named)


def status_lines(program: CProgram, statuses: Sequence[Status]) -> str:
    """Return one macro per status, aligned, each with its meaning."""
    rows = [
        (f"#define {program.macro}_{status.name}",
         f"({status.value})" if status.value < 0 else str(status.value),
         f"/* {status.text} */")
        for status in statuses
    ]  # fmt: skip
    return "\n".join(columns(rows))
