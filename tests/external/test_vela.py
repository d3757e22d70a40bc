"""Files of Vela itself, where `vela` is installed (the extra `vela`): read, compiled, linked."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

import microtir
from microtir import CompilationConfig
from microtir.frontend import from_tflite
from microtir.operators.npu.definition import EthosU
from microtir.support.resources import example
from tests.support.c_compilers import strict_problems

VELA = shutil.which("vela")
DRIVER = Path(__file__).with_name("ethos_u_driver")
NPUS = {
    "ethos-u55-128": (),
    "ethos-u65-256": ("Ethos_U65_High_End", "Dedicated_Sram"),
    "ethos-u85-256": ("Ethos_U85_SYS_DRAM_Mid", "Dedicated_Sram_384KB"),
}


@pytest.mark.skipif(VELA is None, reason="vela is not installed: pip install microtir[vela]")
@pytest.mark.parametrize("npu", NPUS)
def test_what_vela_writes_is_read(npu: str, tmp_path: Path) -> None:
    """All three generations of the NPU, with and without a fast scratch."""
    model = tmp_path / "digits_int8.tflite"
    shutil.copy(example("digits/digits_int8.tflite"), model)
    command = [str(VELA), str(model), "--accelerator-config", npu, "--output-dir", str(tmp_path)]
    if NPUS[npu]:
        system, memory = NPUS[npu]
        command += ["--config", "Arm/vela.ini", "--system-config", system, "--memory-mode", memory]
    subprocess.run(command, check=True, capture_output=True, timeout=120)
    module = from_tflite(tmp_path / "digits_int8_vela.tflite")
    assert module.graph is not None
    ops = [node.op for node in module.graph.nodes if isinstance(node.op, EthosU)]
    assert ops and all(bool(op.fast_scratch) is bool(NPUS[npu]) for op in ops)
    config = CompilationConfig(targets="c -mcpu=cortex-m55", module_name="npu")
    folder = microtir.build(module, config).export(tmp_path / "generated")
    said = strict_problems(folder, "gcc", "c99", "-fsyntax-only", f"-I{DRIVER}")
    assert not said, said
