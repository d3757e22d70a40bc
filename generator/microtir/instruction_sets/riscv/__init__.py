"""RISC-V: cores by their architecture strings, extensions that kernels use, machine code."""

from microtir.instruction_sets.riscv.machine_code import RiscV

__all__ = ["RiscV"]
