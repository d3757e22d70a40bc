"""Runs compiled models on emulated Arm cores and compares what they compute."""

from __future__ import annotations

import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from microtir.artifact import Artifact
from tests.support.batch import write_unit

Array = npt.NDArray[Any]

_HERE = Path(__file__).with_name("emulated")


@dataclass(frozen=True)
class Machine:
    """A machine as QEMU has it: a compiler with its flags, what else is linked, and who runs it."""

    compiler: tuple[str, ...]
    links: tuple[str, ...]
    run: tuple[str, ...]


def _board(name: str, script: str, *flags: str) -> Machine:
    """Describe a board without an operating system."""
    return Machine(
        ("arm-none-eabi-gcc", *flags, "-nostartfiles", f"-T{_HERE / script}", "--specs=nosys.specs",
         "-Wl,--no-warn-rwx-segments"),
        (str(_HERE / "start.c"), "-lm"),
        ("qemu-system-arm", "-display", "none", "-monitor", "none", "-serial", "null",
         "-semihosting-config", "enable=on,target=native", "-icount", "shift=0", "-M", name,
         "-kernel"),
    )  # fmt: skip


M4 = _board(
    "mps2-an386", "an386.ld",
    "-mcpu=cortex-m4", "-mthumb", "-mfloat-abi=hard", "-mfpu=fpv4-sp-d16",
)  # fmt: skip
M55 = _board("mps3-an547", "an547.ld", "-mcpu=cortex-m55", "-mthumb", "-mfloat-abi=hard")
AARCH64 = Machine(
    ("aarch64-linux-gnu-gcc", "-static"), (str(_HERE / "put.c"), "-lm"), ("qemu-aarch64",)
)
ALIGNMENTS = 8  # inputs and outputs are placed at every offset below this
_GUARD = 0x5A


def differing(
    machine: Machine,
    artifacts: Sequence[Artifact],
    inputs: Sequence[Sequence[Array]],
    outputs: Sequence[Array],
    folder: Path,
    flags: Sequence[str] = ("-O2",),
) -> list[str]:
    """Return the artifacts whose output differs, or that write beside it.

    Args:
        machine: that runs them.
        artifacts: models with one output and distinct module names.
        inputs: of each, in order.
        outputs: what each must compute.
        folder: an empty folder.
        flags: more flags for the compiler.
    """
    names = write_unit(artifacts, folder)
    largest = max(a.nbytes for arrays in (*inputs, outputs) for a in arrays) + 2 * ALIGNMENTS
    text = [_PROLOGUE.replace("LARGEST", str(largest))]
    calls = []
    for number, (artifact, name) in enumerate(zip(artifacts, names, strict=True)):
        arrays = [*inputs[number], outputs[number]]
        text += [f'#include "{name}.h"']
        text += [_array(f"{name}_data{i}", array) for i, array in enumerate(arrays)]
        # A pointer to wider elements is a multiple of their size, as in C.
        widest = max(array.itemsize for array in arrays)
        offset = number % ALIGNMENTS // widest * widest
        text.append(_case(artifact, name, [a.nbytes for a in arrays], offset))
        calls.append(f"    bad += {name}_case();")
    return _said(machine, [*text, *_main(calls)], folder, flags)


@dataclass(frozen=True)
class Call:
    """A function of a user's program, its input, and what it must write."""

    name: str
    x: Array
    y: Array


def calls_that_differ(
    machine: Machine, artifact: Artifact, calls: Sequence[Call], folder: Path
) -> list[str]:
    """Return the functions of a program that write something else.

    Args:
        machine: that runs it.
        artifact: the program; its functions have two parameters, an input and an output.
        calls: of its functions.
        folder: an empty folder.
    """
    (program,) = write_unit([artifact], folder)
    largest = max(array.nbytes for call in calls for array in (call.x, call.y)) + 8
    text = [_PROLOGUE.replace("LARGEST", str(largest)), f'#include "{program}.h"']
    for call in calls:
        text += [_array(f"{call.name}_x", call.x), _array(f"{call.name}_y", call.y)]
        text.append(_CALL.format(program=program, name=call.name, x=call.x.nbytes, y=call.y.nbytes))
    return _said(machine, [*text, *_main([f"    bad += {c.name}_case();" for c in calls])], folder)


def _main(calls: Sequence[str]) -> list[str]:
    return ["int main(void)", "{", "    int bad = 0;", *calls, "    return bad > 0;", "}"]


def _said(
    machine: Machine, text: Sequence[str], folder: Path, flags: Sequence[str] = ("-O2",)
) -> list[str]:
    """Run a program of `text` and the folder's sources and return what it prints."""
    (folder / "main.c").write_text("\n".join(text) + "\n", encoding="utf-8")
    build = [
        *machine.compiler, "-std=c99", *flags, "-I.", "main.c", "batch.c", *machine.links, "-o",
        "test.elf",
    ]  # fmt: skip
    subprocess.run(build, cwd=folder, check=True, timeout=600)
    done = subprocess.run(
        [*machine.run, "test.elf"],
        cwd=folder, capture_output=True, text=True, timeout=600, stdin=subprocess.DEVNULL,
        check=False,
    )  # fmt: skip
    said = (done.stdout + done.stderr).split()
    assert done.returncode == bool(said), f"status {done.returncode}: {said}"
    return said


_PROLOGUE = """\
#include <stdint.h>
#include <string.h>
void put(const char *text);
static union { int8_t bytes[LARGEST]; uint64_t aligned; } input[3], output;
static union { uint8_t bytes[1 << 18]; uint64_t aligned; } memory;
"""

# The byte behind the output must stay as it is.
_CALL = """\
static int {name}_case(void)
{{
    memcpy(input[0].bytes, {name}_x, {x});
    memset(output.bytes, 0x5A, sizeof output.bytes);
    int bad = {program}_{name}((const void *)input[0].bytes, output.bytes) != 0;
    bad |= memcmp(output.bytes, {name}_y, {y}) != 0 || output.bytes[{y}] != 0x5A;
    if (bad) {{
        put("{name}\\n");
    }}
    return bad;
}}
"""


def _array(name: str, array: Array) -> str:
    values = ", ".join(map(str, array.reshape(-1).view(np.int8).tolist()))
    return f"static const int8_t {name}[] = {{{values}}};"


def _case(artifact: Artifact, name: str, sizes: Sequence[int], offset: int) -> str:
    """Return the C that runs a model at an offset; bytes around its output must stay."""
    model = artifact.module.model
    assert model is not None and len(model.outputs) == 1
    *given, size = sizes
    begin = "(output.bytes + 8)" if offset == 0 else f"(output.bytes + 8 + {offset - 8})"
    copies = [
        f"    memcpy(input[{i}].bytes + {offset}, {name}_data{i}, {n});"
        for i, n in enumerate(given)
    ]
    pointers = ", ".join(f"(void *)(input[{i}].bytes + {offset})" for i in range(len(given)))
    states = []
    if artifact.metadata.state is not None:
        states = [
            f"    static struct {name}_state state;",
            f"    bad |= {name}_state_init(&state);",
        ]
    return "\n".join([
        f"static int {name}_case(void)",
        "{",
        f"    int8_t *const y = {begin};",
        "    int bad = 0;",
        *copies,
        *states,
        f"    memset(output.bytes, {_GUARD}, sizeof output.bytes);",
        f"    const struct {name}_inputs in = {{{pointers}}};",
        f"    const struct {name}_outputs out = {{(void *)y}};",
        f"    bad |= {name}_run(&in, &out, {'&state, ' if states else ''}memory.bytes) != 0;",
        f"    bad |= memcmp(y, {name}_data{len(given)}, {size}) != 0;",
        f"    memset(y, {_GUARD}, {size});",
        "    for (unsigned i = 0; i < sizeof output.bytes; i++) {",
        f"        bad |= output.bytes[i] != {_GUARD};",
        "    }",
        "    if (bad) {",
        f'        put("{name}\\n");',
        "    }",
        "    return bad;",
        "}",
    ])  # fmt: skip
