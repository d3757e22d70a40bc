"""Estimates cycles: the cost of each executed block of machine code times its executions."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from microtir.instruction_sets.costs import CpuCosts, Issue, Kind
from microtir.instruction_sets.record import InstructionSet
from microtir.profiling.disassembly import Instruction
from microtir.profiling.measure import BlockCost

_MEMORY = (Kind.LOAD, Kind.STORE)
_ALL_MEMORY = (*_MEMORY, Kind.LOAD_MANY, Kind.STORE_MANY, Kind.VECTOR_MEMORY)
_MULTIPLIES = (Kind.MULTIPLY, Kind.MULTIPLY_ADD, Kind.MULTIPLY_LONG)
_JUMPS = (Kind.BRANCH, Kind.CALL, Kind.JUMP, Kind.LOOP)


@dataclass(frozen=True, slots=True)
class _Step:
    """An instruction as a pipeline sees it."""

    kind: Kind
    count: int  # registers of a load or store of several
    written: frozenset[str]
    read: frozenset[str]

    @staticmethod
    def of(instruction: Instruction, machine: InstructionSet) -> _Step:
        kind = machine.kind_of(instruction.mnemonic)
        registers = machine.registers_of(instruction.operands)
        # The first operand is what most instructions write; a store only reads.
        writes = kind not in (Kind.STORE, Kind.STORE_MANY, *_JUMPS)
        return _Step(
            kind,
            machine.words_moved(instruction.operands),
            frozenset(registers[:1] if writes else ()),
            frozenset(registers[1:] if writes and kind not in _MULTIPLIES else registers),
        )


def block_cycles(
    instructions: Sequence[Instruction], costs: CpuCosts, machine: InstructionSet
) -> int:
    """Return the cycles of instructions that run one after another, without the last jump."""
    total = 0
    previous: _Step | None = None
    is_second = False  # the previous one started together with the one before it
    for instruction in instructions:
        step = _Step.of(instruction, machine)
        cost = costs.cycles(step.kind, step.count)
        is_paired = False
        if previous is not None:
            if costs.pipelined_memory and step.kind in _MEMORY and previous.kind in _MEMORY:
                cost = 1
            if previous.kind is Kind.LOAD and previous.written & step.read:
                cost += costs.load_to_use
            is_paired = costs.issue is Issue.PAIRS and not is_second and _can_pair(previous, step)
            overlaps = costs.overlapping_vectors and {previous.kind, step.kind} == {
                Kind.VECTOR, Kind.VECTOR_MEMORY,
            }  # fmt: skip
            cost -= int(is_paired or overlaps)
        total += max(cost, 0)
        previous, is_second = step, is_paired
    return total


def _can_pair(first: _Step, second: _Step) -> bool:
    """Return whether two neighbours start in one cycle on a CPU with two issue slots."""
    if first.kind in _JUMPS or first.written & (second.read | second.written):
        return False
    memory = first.kind in _ALL_MEMORY and second.kind in _ALL_MEMORY
    product = first.kind in _MULTIPLIES and second.kind in _MULTIPLIES
    return not memory and not product


def estimate(
    blocks: Iterable[BlockCost],
    program: Mapping[int, Instruction],
    costs: CpuCosts,
    machine: InstructionSet,
) -> dict[str, int]:
    """Estimate the cycles of one inference by function.

    Args:
        blocks: executed machine code, with how often control left it by a jump.
        program: all instructions of the program.
        costs: of the CPU.
        machine: whose instructions these are.
    """
    known: dict[tuple[int, int], tuple[int, bool]] = {}
    cycles: dict[str, int] = {}
    for block in blocks:
        key = (block.start, block.end)
        if key not in known:
            addresses = range(block.start, block.end, 2)
            instructions = [program[address] for address in addresses if address in program]
            is_loop = bool(instructions) and machine.kind_of(instructions[-1].mnemonic) is Kind.LOOP
            known[key] = (block_cycles(instructions, costs, machine), is_loop)
        cost, is_loop = known[key]
        jumps = 0 if is_loop else block.taken * costs.taken
        cycles[block.function] = cycles.get(block.function, 0) + cost * block.executions + jumps
    return cycles
