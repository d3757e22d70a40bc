"""The stack of one call, in bytes, as an upper bound that is known before a C compiler runs.

What a compiler reserves follows from the C that it is given: registers that it must give back, and
what it spills of the variables of a function; where nothing is optimised, a slot for every variable
and for parts of expressions, too.  A compiler is free to take more, so that this is no proof; the
allowances below are above what GCC and Clang take at -O0, -O1, -O2 and -Os, which a test compiles
and compares.  At -O3 they unroll loops and may take more.  `project.stack_bound` reads the exact
figure off a linked program.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate

from microtir.codegen.printer.intrinsics import has_intrinsics
from microtir.codegen.program import Program, make_program
from microtir.config import Target
from microtir.config.enums import ExecutorKind
from microtir.config.features import Family, Feature
from microtir.ir_module import IRModule
from microtir.tir.dtype import DType
from microtir.tir.ir import (
    Allocate,
    Buffer,
    BufferView,
    Call,
    ExternCall,
    For,
    Intrinsic,
    Invoke,
    KernelCall,
    Let,
    PrimFunc,
    Seq,
    Stmt,
)
from microtir.tir.visitor import Node, children, walk

# In registers.  A frame: those that a callee gives back (13 on RISC-V, 8 more for floats on Arm),
# its return address, and temporaries, as for a loop that is unrolled.
_FRAME = 24
# Where nothing is optimised, a variable and what expressions around it leave on the stack.
_UNOPTIMISED = 2
# What the deepest helper or routine of the compiler's library takes (64-bit products, memcpy),
# and what one of <math.h> does where floats are emulated.
_LIBRARY = 16
_VALUE = 8  # bytes of a union microtir_value
_VIEW = 8  # struct microtir_tensor
_EXECUTOR = 8  # struct microtir_graph_executor
# Functions of the runtime between the entry of a graph and a node.
_EXECUTED = ("microtir_graph_run",)
_OBSERVED = (
    "run_observed", "microtir_graph_run_observed", "microtir_measure", "run_step",
    "microtir_graph_run_node",
)  # fmt: skip
_MATH = 64

_MATH_CALLS = frozenset({
    Intrinsic.EXP, Intrinsic.LOG, Intrinsic.SQRT, Intrinsic.TANH, Intrinsic.FLOOR, Intrinsic.ROUND,
})  # fmt: skip


@dataclass(frozen=True, slots=True)
class Frame:
    """What one function of the deepest chain of calls takes, in bytes."""

    function: str  # its name in C
    bytes: int


@dataclass(frozen=True, slots=True)
class WorstStack:
    """The deepest chain of calls, from the entry on; the last frame is that of libraries."""

    frames: tuple[Frame, ...]

    @property
    def bytes(self) -> int:
        return sum(frame.bytes for frame in self.frames)


@dataclass(frozen=True, slots=True)
class Stacks:
    """The bound for each way to compile a program.

    `best` is optimised, with micro-kernels in assembly where the program has some; `in_c` is
    optimised with their twins in C, `unoptimised` what -O0 makes of either.
    """

    best: WorstStack
    in_c: WorstStack
    unoptimised: WorstStack


def stacks_of(program: Program) -> Stacks:
    """The bounds of the code that is printed for a program."""
    in_c = _worst(program, is_optimised=True, has_assembly=False)
    assembly = any(not has_intrinsics(kernel) for kernel in program.assembly)
    best = _worst(program, is_optimised=True, has_assembly=True) if assembly else in_c
    # Assembly is taken without optimisation, too, and may keep more on the stack than its twins.
    unoptimised = [
        _worst(program, is_optimised=False, has_assembly=a)
        for a in ((False, True) if assembly else (False,))
    ]
    return Stacks(best, in_c, max(unoptimised, key=lambda stack: stack.bytes))


def stack_of(module: IRModule) -> WorstStack:
    """The bound for a lowered module, compiled as it is meant to be: optimised, with assembly."""
    return _worst(make_program(module), is_optimised=True, has_assembly=True)


def _worst(program: Program, *, is_optimised: bool, has_assembly: bool) -> WorstStack:
    """The deepest chain of calls from any function that an application may call.

    There is no recursion: a function of TIR calls only functions that come before it.
    """
    roots = (program.entry,) if program.model else program.exported
    register = _widest_register(program)
    chains = _Chains(program, register, is_optimised, has_assembly)
    deepest = max((chains.of(root) for root in roots), key=_depth, default=())
    return WorstStack((*_around(program, register), *deepest))


def layer_stacks(module: IRModule) -> Mapping[str, int]:
    """Bytes of the deepest chain of calls through each layer function of a model, by its name.

    They are those of `stack_of`.
    """
    program = make_program(module)
    register = _widest_register(program)
    chains = _Chains(program, register, is_optimised=True, has_assembly=True)
    around = _depth((*_around(program, register), chains.frame(program.entry)))
    return {layer.name: around + _depth(chains.of(layer)) for layer in program.layers}


def _around(program: Program, register: int) -> Iterator[Frame]:
    """What runs before main, or between main and a layer."""
    roots = (program.entry,) if program.model else program.exported
    arguments = max(len(root.params) for root in roots)
    name = f"{program.name}_run"
    if program.is_packed or program.config.needs_packed_wrapper():
        yield Frame(f"{name}_packed", register * (_FRAME + arguments))
    if program.config.has_packed_operators() and program.layers:
        most = max(len(layer.params) for layer in program.layers)
        yield Frame("operator_packed", register * (_FRAME + most))
    if program.is_graph:
        # The executor and its arrays of pointers; main is then a node.
        given = len(program.given_pools)
        yield Frame(name, register * (_FRAME + arguments + _EXECUTOR + given))
        debug = program.config.executor.kind is ExecutorKind.DEBUG
        for function in _OBSERVED if debug else _EXECUTED:
            yield Frame(function, register * _FRAME)


def _depth(chain: tuple[Frame, ...]) -> int:
    return sum(frame.bytes for frame in chain)


def _widest_register(program: Program) -> int:
    return max(_register_bytes(t) for t in (*program.config.targets, program.config.target_host))


def _register_bytes(target: Target) -> int:
    """Bytes of a register, or of an INT32 where registers are smaller.

    C for no CPU in particular may be compiled for one of 64 bits.
    """
    wide = target.has(Feature.BIT64) or target.family is Family.GENERIC
    return 8 if wide else 4


class _Chains:
    """The deepest chain of calls from each function; known ones are kept."""

    def __init__(
        self, program: Program, register: int, is_optimised: bool, has_assembly: bool
    ) -> None:
        self._program = program
        self._register = register
        self._is_optimised = is_optimised
        self._has_assembly = has_assembly
        self._known: dict[PrimFunc, tuple[Frame, ...]] = {}
        self._contracts = {
            node.meaning: node.contract.stack_bytes
            for function in program.functions
            for node in walk(function)
            if isinstance(node, KernelCall)
        }

    def of(self, function: PrimFunc) -> tuple[Frame, ...]:
        if function not in self._known:
            self._known[function] = (self.frame(function), *self._below(function))
        return self._known[function]

    def _is_assembly(self, function: PrimFunc) -> bool:
        """Whether a micro-kernel is a list of instructions, which call nothing."""
        is_listed = function in self._program.assembly and not has_intrinsics(function)
        return self._has_assembly and is_listed

    def _below(self, function: PrimFunc) -> tuple[Frame, ...]:
        if self._is_assembly(function):
            return ()
        library = self._library(function)
        below = [self.of(callee) for callee in self._callees(function)]
        return max((*below, *self._externs(function), (library,)), key=_depth)

    def _library(self, function: PrimFunc) -> Frame:
        """What a compiler or a function itself calls that is not printed with it."""
        uses_math = any(
            isinstance(node, Call) and node.intrinsic in _MATH_CALLS for node in walk(function)
        )
        return Frame("library", self._register * (_MATH if uses_math else _LIBRARY))

    def _callees(self, function: PrimFunc) -> Iterator[PrimFunc]:
        for node in walk(function):
            if isinstance(node, Invoke):
                yield self._program.callee(node.function)
            elif isinstance(node, KernelCall):
                yield node.meaning

    def _externs(self, function: PrimFunc) -> Iterator[tuple[Frame, ...]]:
        for node in walk(function):
            if isinstance(node, ExternCall):
                size = node.function.stack_bytes + self._register * _FRAME
                library = Frame("library", self._register * _LIBRARY)
                yield Frame(node.function.name, size), library

    def frame(self, function: PrimFunc) -> Frame:
        """What a function takes itself."""
        name = _c_name(self._program, function)
        contract = self._contracts.get(function, 0)
        if self._is_assembly(function):
            return Frame(name, contract)
        nodes = tuple(walk(function))
        arrays = sum(_array_bytes(node) for node in nodes if isinstance(node, Allocate))
        if self._program.config.has_packed_operators():
            arguments = sum(len(node.args) for node in nodes if isinstance(node, Invoke))
            arrays += arguments * (_VIEW * self._register + _VALUE)
        size = arrays + self._register * (self._kept(function) + _FRAME)
        is_body = function in self._program.assembly and has_intrinsics(function)
        return Frame(name, max(size, contract) if is_body else size)

    def _kept(self, function: PrimFunc) -> int:
        """Registers that a function's parameters and variables take."""
        is_main = self._program.model is not None and function is self._program.entry
        parts = tuple(_outermost(function.body)) if is_main else (function.body,)
        if not self._is_optimised:
            # Main has a pointer for each buffer at a place, which some function fills first.
            pointers = {place for part in parts for place in _places(part)}
            named = max(_UNOPTIMISED * len(pointers), sum(len(_uses(part)) for part in parts))
            variables = sum(_is_variable(node) for part in parts for node in walk(part))
            return _UNOPTIMISED * (len(function.params) + variables) + named
        living = _living([_places(part) for part in parts])
        most = max(map(sum, zip(map(_in_scope, parts), living, strict=True)), default=0)
        return len(function.params) + most


Place = tuple[Buffer, int, DType]
"""What main has a pointer for: where something begins in which block, and its elements."""


def _outermost(body: Stmt) -> Iterator[Stmt]:
    """The statements that run one after the other."""
    if isinstance(body, Seq):
        for statement in body.statements:
            yield from _outermost(statement)
    else:
        yield body


def _places(part: Stmt) -> frozenset[Place]:
    return frozenset(place for _, place in _uses(part))


def _uses(part: Stmt) -> frozenset[tuple[str, Place]]:
    """Which function is given which place."""
    return frozenset(
        (node.function, (view.buffer, view.byte_offset, view.dtype))
        for node in walk(part) if isinstance(node, Invoke)
        for view in node.args if isinstance(view, BufferView)
    )  # fmt: skip


def _living(used: Sequence[frozenset[Place]]) -> list[int]:
    """How many pointers each of some statements has to keep: from first use to last."""
    first: dict[Place, int] = {}
    last: dict[Place, int] = {}
    for number, places in enumerate(used):
        for place in places:
            first.setdefault(place, number)
            last[place] = number
    change = [0] * (len(used) + 1)
    for place, number in first.items():
        change[number] += 1
        change[last[place] + 1] -= 1
    return list(accumulate(change))[:-1]


def _c_name(program: Program, function: PrimFunc) -> str:
    is_main = program.model is not None and function is program.entry
    return f"{program.name}_run" if is_main else program.names[function]


def _is_variable(node: Node) -> bool:
    return isinstance(node, For | Let) or (isinstance(node, Allocate) and not node.buffer.shape)


def _in_scope(node: Node) -> int:
    """The most variables that are in scope at one time: others share their places with them."""
    return _is_variable(node) + max(map(_in_scope, children(node)), default=0)


def _array_bytes(node: Allocate) -> int:
    extents = [extent for extent in node.buffer.shape if isinstance(extent, int)]
    size = math.prod(extents) * node.buffer.dtype.bytes if extents else 0
    return size + (node.buffer.alignment if node.buffer.alignment > 8 else 0)
