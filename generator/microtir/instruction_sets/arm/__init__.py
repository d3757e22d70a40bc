"""Arm: Cortex-M, R and A."""

from microtir.instruction_sets.arm.machine_code import Arm

__all__ = ["Arm"]
