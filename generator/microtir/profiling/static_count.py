"""Counts the instructions of an inference from a program's machine code, without running it.

Code is followed with values that are known: constants, addresses, counters. Where a branch depends
on data, both sides are followed to where they meet, and the longer one counts.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Any

from microtir.boards.toolchain import capture, symbols
from microtir.config import Target
from microtir.errors import MicrotirError
from microtir.instruction_sets import instruction_set
from microtir.profiling import thumb
from microtir.profiling.disassembly import Instruction, disassemble
from microtir.profiling.known_values import MASK, STACK_TOP, UNKNOWN, KnownValues, Value
from microtir.profiling.measure import Region, regions_of
from microtir.profiling.riscv import RV32
from microtir.profiling.steps import Machine, Step, targets
from microtir.projects.program_size import constants_of
from microtir.projects.project import Project

_EXIT = -1  # behind the last block of a function
_TURNS = 80  # of a loop whose end depends on data: more than any integer has bits
_STEPS = 200_000_000  # blocks of code, after which the count is given up


@dataclass(frozen=True, slots=True)
class StaticCount:
    """Instructions of an inference, as machine code has them.

    Args:
        by_function: the most that each function of the model takes.
        least: of all instructions together.
        branches: that depend on data and make a difference, each as its function and line.
        problem: why there is no count; nothing if there is one.
    """

    by_function: Mapping[str, int]
    least: int = 0
    branches: tuple[str, ...] = ()
    problem: str = ""

    @property
    def instructions(self) -> int:
        """Return the most instructions that an inference takes."""
        return sum(self.by_function.values())


def static_count(project: Project) -> StaticCount:
    """Count the instructions of an inference of a built project with one model."""
    board, program = project.board, project.built_program()
    machine = _machine(board.target)
    if machine is None:
        return StaticCount({}, problem=f"machine code of {board.target.family} is not followed")
    names, model = symbols(board.toolchain, program), project.models[0]
    code = disassemble(board.toolchain, program, board.target, *machine.objdump)
    walk = Walk(machine, code, regions_of(model, names, str(program)))
    start = next(symbol.address & ~1 for symbol in names if symbol.name == f"run_{model.name}")
    try:
        path = walk.count(start, constants_of(program))
    except UncountableError as problem:
        line = _lines(project, code, [int(problem.where or "0", 16)])[0]
        return StaticCount({}, problem=f"{problem.what} {line}")
    lines = _lines(project, code, sorted(walk.branches)) if walk.branches else []
    return StaticCount(dict(path.counts), path.least, tuple(lines))


def _machine(target: Target) -> Machine | None:
    if instruction_set(target.family).is_thumb:
        return thumb.THUMB
    return RV32 if re.fullmatch("rv32[imac]+(_zb[abs])*", target.march or "") else None


def _lines(project: Project, code: Mapping[int, Instruction], at: Sequence[int]) -> list[str]:
    """Return the functions and the lines of instructions, each once."""
    command = [f"{project.board.toolchain.prefix}addr2line", "-s", "-e"]
    text = capture([*command, str(project.built_program()), *(f"{address:x}" for address in at)])
    names = [code[address].function.split(".")[0] if address in code else "?" for address in at]
    places = (line.split()[0] for line in text.splitlines())
    lines = (f"in {name}, {place}" for name, place in zip(names, places, strict=True))
    return list(dict.fromkeys(lines))


class UncountableError(MicrotirError):
    """Code cannot be followed; `where` is the address of an instruction, in hexadecimal."""


@dataclass(frozen=True, slots=True)
class _Block:
    """Instructions that run together, up to one that jumps or to which others jump.

    `run` changes values. It returns where to go on, UNKNOWN where that depends on data. `jump` is
    its last part, where its condition holds. `following` are addresses in the same function.
    """

    count: int
    run: Callable[[KnownValues], Value]
    jump: Callable[[KnownValues], Value]
    last: int
    end: int
    following: tuple[int, ...]
    is_call: bool


@dataclass(slots=True)
class Path:
    """A way through the code; `frames` are addresses that active functions return to."""

    values: KnownValues
    address: int
    active: str  # function of the model that instructions count for
    frames: list[int] = field(default_factory=list)
    counts: Counter[str] = field(default_factory=Counter)
    least: int = 0


class Walk:
    """A walk through a program's code, which counts what an inference executes.

    No function calls itself, so that an address says which call of its function is meant.
    """

    def __init__(
        self, machine: Machine, program: Mapping[int, Instruction], regions: Sequence[Region]
    ) -> None:
        self._machine, self._program = machine, program
        self._ends = dict(pairwise(program))
        self._targets = targets(program.values())
        self._blocks: dict[int, _Block] = {}
        self._meetings: dict[int, tuple[int, ...]] = {}
        self._run = regions[0]
        self._functions = {at: r.function for r in regions for at in range(r.start, r.end, 2)}
        self._open = Counter[int]()  # branches whose sides are followed
        self._steps = 0
        self.branches: set[int] = set()  # that depend on data and make a difference

    def count(self, start: int, constants: Sequence[tuple[int, bytes]]) -> Path:
        """Follow a function to the model's run function, and that to its end.

        Raises:
            UncountableError: something cannot be followed.
        """
        machine = self._machine
        values = KnownValues(machine.registers, constants)
        values.registers[machine.stack], values.registers[machine.link] = STACK_TOP, MASK
        for register, value in machine.fixed(self._program.values()).items():
            values.registers[register] = value
        path = Path(values, start, self._run.function)
        self._follow(path, {self._run.start})
        path.counts.clear()
        path.least, path.frames = 0, [values.registers[machine.link] & ~1]
        self._follow(path, set(path.frames))
        return path

    def _follow(self, path: Path, stops: set[int]) -> None:
        """Go on until one of some addresses is reached."""
        while path.address not in stops:
            block = self._blocks.get(path.address) or self._made(path.address)
            path.active = self._functions.get(path.address, path.active)
            path.counts[path.active] += block.count
            path.least += block.count
            self._steps += 1
            if self._steps > _STEPS:
                raise UncountableError("the program does not end soon", where=f"{block.last:x}")
            following = block.run(path.values)
            if following is UNKNOWN and len(block.following) > 1:
                following = self._fork(path, block)
            if following is UNKNOWN:
                raise UncountableError("a jump depends on data", where=f"{block.last:x}")
            path.address = following
            if block.is_call and path.address != block.end:
                path.frames.append(block.end)
            elif path.address in path.frames:
                del path.frames[path.frames.index(path.address) :]

    def _fork(self, path: Path, block: _Block) -> Value:
        """Follow both sides of a branch on data, and return where they meet."""
        if self._open[block.last] > _TURNS:
            raise UncountableError("the turns of a loop depend on data", where=f"{block.last:x}")
        meeting, *again = self._meet(block)
        last = path.frames[-1] if meeting == _EXIT else meeting
        sides = [
            replace(path, values=values, frames=path.frames.copy(), counts=Counter(), least=0)
            for values in (path.values, path.values.copy())
        ]
        target = block.jump(sides[0].values)
        if target is UNKNOWN:
            return UNKNOWN
        sides[0].address, sides[1].address = target, block.end
        self._open[block.last] += 1
        for stops in ({last, *again}, {last}):
            if sides[0].address != sides[1].address:
                for side in sides:
                    self._follow(side, stops)
        self._open[block.last] -= 1
        path.values.join(sides[1].values)
        totals = [side.counts.total() for side in sides]
        if totals[0] != totals[1]:
            self.branches.add(block.last)
        path.counts.update(sides[totals[1] > totals[0]].counts)
        path.least += min(side.least for side in sides)
        return sides[0].address

    def _made(self, start: int) -> _Block:
        lines: list[str] = []
        waiting: list[str] = []  # conditions of an IT instruction
        count, address, last, step = 0, start, start, Step()
        while not step.leaves and (address == start or address not in self._targets):
            if address not in self._ends:
                raise UncountableError("there is no code where a jump leads", where=f"{last:x}")
            last, address = address, self._ends[address]
            instruction = self._program[last]
            step = self._machine.translate(instruction, address, waiting.pop(0) if waiting else "")
            if re.fullmatch("it[te]*", instruction.mnemonic):
                waiting = thumb.conditions(instruction.mnemonic, instruction.operands)
            count += 1
            lines += step.first
        if not step.leaves:
            step = Step(leaves=str(address), target=address)
        onward = _EXIT if step.target is None else step.target
        jump = [*step.does, f"return {step.leaves}"]
        test = [f"c = {step.condition}", "if c is U: return U", f"if not c: return {address}"]
        is_branch = bool(step.condition)
        self._blocks[start] = _Block(
            count,
            _function([*lines, *test * is_branch, *jump]),
            _function(jump),
            last,
            address,
            (address if step.is_call else onward, *[address] * is_branch),
            step.is_call,
        )
        return self._blocks[start]

    def _meet(self, block: _Block) -> tuple[int, ...]:
        """Return where all paths behind a branch meet, and those that come to it again."""
        if block.last in self._meetings:
            return self._meetings[block.last]
        nodes: dict[int, tuple[int, ...]] = {_EXIT: ()}
        again: set[int] = set()
        waiting = list(block.following)
        while waiting:
            address = waiting.pop()
            if address not in nodes:
                reached = self._blocks.get(address) or self._made(address)
                nodes[address] = reached.following
                waiting += reached.following
                again |= {address} if reached.last == block.last else set()
        places = [_meeting(nodes, block.following)]
        ends, size = dict.fromkeys(again, ()), -1
        while size != len(again):  # add all nodes that lead to the branch
            size = len(again)
            again |= {node for node, onward in nodes.items() if not again.isdisjoint(onward)}
        if again.issuperset(block.following):
            inner = {node: tuple(n for n in nodes[node] if n in again) for node in again}
            places.append(_meeting(inner | ends, block.following))
        self._meetings[block.last] = tuple(places)
        return self._meetings[block.last]


def _meeting(nodes: Mapping[int, tuple[int, ...]], starts: Iterable[int]) -> int:
    """Return the first node of a graph that all paths from some nodes go through."""
    behind = {node: set(nodes) if onward else {node} for node, onward in nodes.items()}
    before: dict[int, set[int]] = {}
    while before != behind:
        before = dict(behind)
        for node, onward in nodes.items():
            shared = set.intersection(*(behind[n] for n in onward)) if onward else set()
            behind[node] = {node} | shared
    shared = set.intersection(*(behind[start] for start in starts))
    return max(shared, key=lambda node: len(behind[node]))


def _function(lines: Sequence[str]) -> Callable[[KnownValues], Value]:
    """Return statements over values as a function."""
    scope: dict[str, Any] = {"M": MASK, "U": UNKNOWN}
    # Whatever the program is, its instructions become statements of `thumb` and numbers.
    exec("\n    ".join(("def run(v):", "r = v.registers", *lines)), scope)
    function: Callable[[KnownValues], Value] = scope["run"]
    return function
