"""What goals pay for memory in networks of exporters: no step that nobody would take.

Each had one: a GRU's step was 1.7 times slower for a kilobyte and a half of flash, layers over
frames 11 times for 300 bytes, two inputs with more code than at `speed`; with the least RAM others
took twice the instructions for 100 bytes.
"""

from __future__ import annotations

from pathlib import Path

import pytest

import microtir
from microtir import CompilationConfig, frontend
from microtir.config.enums import Optimize
from microtir.module.program import Program
from microtir.plan.work import bytes_apart, plan_work
from tests.support.model_gate import EXPORTED

TRADED = [
    ("gru_step_variable_int8", "cortex-m4"),
    ("lstm_step_state_io_int8", "cortex-m4"),
    ("streaming_variables_int8", "cortex-m4"),
    ("mobilenet_argmax_int8", "cortex-m4"),
    ("act_hard_int8", "cortex-m4"),
    ("lstm_fused_bidirectional_int8", "cortex-m4"),
    ("streaming_variables_int8", "cortex-m55"),
    ("two_inputs_two_outputs_int8", "cortex-m55"),
    ("tcn_causal_dilated_int8", "cortex-m55"),
    ("dense_sequence_keras2_batch_none_int8", "cortex-m55"),
]
EACH = [
    pytest.param(f"{EXPORTED}/{name}", cpu, marks=pytest.mark.model(f"{EXPORTED}/{name}"))
    for name, cpu in TRADED
]


def programs(path: Path, cpu: str) -> dict[Optimize, Program]:
    """The programs of all goals but that of flash."""
    module = frontend.from_tflite(path)
    config = CompilationConfig(targets=f"c -mcpu={cpu}")
    return {
        goal: microtir.lower(
            module.with_configuration(config.with_(optimize=goal))
        ).require_program("test")
        for goal in (Optimize.SPEED, Optimize.BALANCED, Optimize.RAM, Optimize.RAM_LEAST)
    }


def ram(program: Program) -> int:
    """Bytes of the workspace, of inputs, outputs and states."""
    return program.placement.workspace_size + bytes_apart(program.plan.graph, workspace_io=False)


def everything(program: Program) -> int:
    """Bytes of RAM and flash."""
    return ram(program) + program.figures.flash.bytes


def slower(program: Program, faster: Program) -> float:
    """Which part of its work a program takes more than another."""
    return plan_work(program.plan) / plan_work(faster.plan) - 1


@pytest.mark.parametrize(("name", "cpu"), EACH)
def test_no_step_that_nobody_would_take(models_dir: Path, name: str, cpu: str) -> None:
    """3 % of the instructions for 1 % of RAM and flash at most, and 20 % for 1 % of RAM."""
    made = programs(models_dir / f"{name}.tflite", cpu)
    fast, balanced, small, least = made.values()
    saved = everything(fast) / everything(balanced) - 1
    assert slower(balanced, fast) <= max(3 * saved, 0.01)
    assert slower(small, balanced) <= max(20 * (ram(balanced) / ram(small) - 1), 0.01)
    assert ram(least) <= ram(small)
    for program in (balanced, small):
        told = program.declined
        assert told is None or (told.times > 1.05 and max(told.ram, told.flash) > 0)


@pytest.mark.model("resnet8_int8")
def test_what_is_not_taken_is_told(models_dir: Path) -> None:
    """On Cortex-M55 128 bytes of resnet8 cost twice the instructions: `ram-least` has them."""
    made = programs(models_dir / "resnet8_int8.tflite", "cortex-m55")
    small, least = made[Optimize.RAM], made[Optimize.RAM_LEAST]
    told = small.declined
    assert told is not None and told.goal is Optimize.RAM_LEAST
    assert told.ram == ram(small) - ram(least) == 128
    assert told.times == pytest.approx(1 + slower(least, small))
    assert told.text.startswith("--optimize ram-least saves about 128 bytes of RAM")
    assert told.text.endswith("times the instructions")
