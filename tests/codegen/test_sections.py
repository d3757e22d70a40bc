"""Macros of the command line put weights and code into sections of a linker script."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path
from typing import Any

import pytest

from microtir import CompilationConfig, frontend
from microtir.artifact import Artifact
from tests.support import shared_programs
from tests.support.stateful import running_sum

DIGITS = Path(__file__).parents[2] / "examples" / "digits" / "digits_int8.tflite"
MODELS: dict[str, Any] = {"digits": DIGITS, "sum": running_sum()}
IN_WORKSPACE = {"pass_config": {"memory.use_workspace_io": True}}
OPTIONS: tuple[dict[str, Any], ...] = ({}, {"executor": "graph"}, IN_WORKSPACE)


def built(model: str, options: dict[str, Any], target: str = "c -mcpu=cortex-m4") -> Artifact:
    """Return a program called `m`."""
    config = CompilationConfig(targets=target, module_name="m", **options)
    return shared_programs.build(frontend.from_tflite(MODELS[model]), config)


def sections(file: Path, folder: Path, *options: str) -> dict[str, int]:
    """Compile a file for a Cortex-M4; return the bytes of each section that has some."""
    flags = ["-mcpu=cortex-m4", "-std=c99", "-Wall", "-Wextra", "-Werror", f"-I{folder}"]
    compiled = file.with_suffix(".o")
    command = ["arm-none-eabi-gcc", *flags, *options, "-c", str(file), "-o", str(compiled)]
    subprocess.run(command, check=True)
    printed = subprocess.check_output(["arm-none-eabi-size", "-A", str(compiled)], text=True)
    rows = re.findall(r"^(\.\S+) +(\d+)", printed, re.MULTILINE)
    return {name: int(size) for name, size in rows if int(size)}


@pytest.mark.parametrize("level", ["-O0", "-O2"])
@pytest.mark.parametrize("options", OPTIONS, ids=str)
@pytest.mark.parametrize("model", MODELS)
def test_code_and_weights_are_where_macros_say(
    model: str, options: dict[str, Any], level: str, tmp_path: Path
) -> None:
    """No function is left in .text, and each array of weights is in the section that is named."""
    artifact = built(model, options)
    artifact.export(tmp_path)
    runtime = Path(__file__).parents[2] / "runtime_crt" / "include"
    attribute = '__attribute__((section("{}")))'
    placed = (
        f"-DM_CODE_SECTION={attribute.format('.itcm')}",
        f"-DM_WEIGHTS_SECTION={attribute.format('.qspi')}",
        f"-I{runtime}",
    )
    usual = sections(tmp_path / "m.c", tmp_path, level, f"-I{runtime}")
    code = sections(tmp_path / "m.c", tmp_path, level, *placed)
    assert code[".itcm"] >= usual[".text"] > 0
    assert ".text" not in code
    if (tmp_path / "m_weights.c").exists():
        weights = sections(tmp_path / "m_weights.c", tmp_path, level, *placed)
        assert weights.keys() & {".text", ".data", ".rodata", ".qspi"} == {".qspi"}
        assert weights[".qspi"] >= artifact.metadata.weights_bytes


def test_pools_keep_their_sections(tmp_path: Path) -> None:
    """An array of a constant pool with a section stays there; the macro names the others."""
    pools = [
        {
            "pool_name": "fast",
            "pool_info_properties": {
                "size_hint_bytes": 1024, "section": ".rodata.fast", "is_internal": True,
            },
        },
        {"pool_name": "rest", "pool_info_properties": {"is_internal": True}},
    ]  # fmt: skip
    built("digits", {"constant_pools": pools}).export(tmp_path)
    macro = '-DM_WEIGHTS_SECTION=__attribute__((section(".qspi")))'
    weights = sections(tmp_path / "m_weights.c", tmp_path, macro)
    assert weights.keys() & {".rodata", ".rodata.fast", ".qspi"} == {".rodata.fast", ".qspi"}


@pytest.mark.parametrize("options", OPTIONS, ids=str)
@pytest.mark.parametrize("model", MODELS)
def test_a_header_defines_what_functions_return(model: str, options: dict[str, Any]) -> None:
    """Each status of the header is one that a function returns, and none that is missing there."""
    artifact = built(model, options)
    defined = set(re.findall(r"^#define (M_ERROR_\w+)", artifact.source("m.h"), re.MULTILINE))
    code = "\n".join(each.text for each in artifact.sources if each.path.endswith(".c"))
    code = re.sub(r"/\*.*?\*/|\bcase M_\w+:", "", code, flags=re.DOTALL)
    assert set(re.findall(r"\bM_ERROR_\w+", code)) == defined
    assert "M_ERROR_NULL_POINTER" in defined
