"""Bytes that a compiled model takes: code, weights, workspace."""

from __future__ import annotations

import json
import subprocess
import tempfile
from dataclasses import asdict, dataclass
from pathlib import Path

import microtir

RECORDED = Path(__file__).parent / "recorded.json"
COMPILER = "arm-none-eabi-gcc"
FLAGS = ("-mcpu=cortex-m4", "-mthumb", "-O2", "-std=c99", "-ffp-contract=off")


@dataclass(frozen=True, slots=True)
class Footprint:
    """Sizes in bytes; `code` and `weights` are sections of the object files."""

    compiler: str
    code: int
    weights: int
    workspace: int
    lower_bound: int


def compiler_version() -> str:
    """Name and version of the cross compiler, the key under which figures are comparable."""
    command = [COMPILER, "-dumpfullversion"]
    version = subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()
    return f"{COMPILER} {version} {' '.join(FLAGS)}"


def footprint(model: Path) -> Footprint:
    """Compile a model to C and the C for a Cortex-M4, and add up the sections."""
    config = microtir.CompilationConfig.from_target(microtir.Target("c -mcpu=cortex-m4"))
    artifact = microtir.build(microtir.frontend.from_tflite(model), config)
    info = artifact.module.model
    assert info is not None
    with tempfile.TemporaryDirectory() as folder:
        artifact.export(Path(folder) / "c")
        code = weights = 0
        for source in sorted((Path(folder) / "c").glob("*.c")):
            text, rodata = _sections(source)
            code, weights = code + text, weights + rodata
    memory = info.memory
    return Footprint(compiler_version(), code, weights, memory.workspace_size, memory.lower_bound)


def _sections(source: Path) -> tuple[int, int]:
    """Return bytes of code and of constants in one translation unit."""
    target = source.with_suffix(".o")
    subprocess.run([COMPILER, *FLAGS, "-c", str(source), "-o", str(target)], check=True)
    size = subprocess.run(
        [COMPILER.replace("gcc", "size"), "-A", str(target)],
        check=True, capture_output=True, text=True,
    )  # fmt: skip
    text = rodata = 0
    for line in filter(str.strip, size.stdout.splitlines()):
        name, *numbers = line.split()
        if name.startswith(".text"):
            text += int(numbers[0])
        elif name.startswith(".rodata"):
            rodata += int(numbers[0])
    return text, rodata


def record(footprints: dict[str, Footprint]) -> None:
    """Write the figures, keyed by model, to be read in the difference of a commit."""
    rows = {name: asdict(footprint) for name, footprint in sorted(footprints.items())}
    RECORDED.write_text(json.dumps(rows, indent=2) + "\n")
