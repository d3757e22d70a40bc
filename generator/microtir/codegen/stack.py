"""The stack of one call, in bytes, as an upper bound that is known before a C compiler runs.

What a compiler reserves follows from the C that it is given: slots for the variables of a function
(all of them, where nothing is optimised), a place for the registers that it must give back, and
temporaries.  A compiler is free to take more, so that this is no proof; the allowances below are
above what GCC and Clang take at -O0, -O1, -O2 and -Os, which a test compiles and compares.  At -O3
they unroll loops and may take more.  `project.stack_bound` reads the exact figure off a linked
program.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from microtir.codegen.program import Program, make_program
from microtir.config import Target
from microtir.config.enums import ExecutorKind
from microtir.config.features import Family, Feature
from microtir.ir_module import IRModule
from microtir.tir.ir import (
    Allocate,
    BufferView,
    Call,
    ExternCall,
    For,
    Intrinsic,
    Invoke,
    KernelCall,
    Let,
    PrimFunc,
)
from microtir.tir.visitor import Node, walk

# In registers.  A frame: those that a callee gives back (13 on RISC-V, 8 more for floats on Arm),
# its return address, and temporaries, as for a loop that is unrolled.
_FRAME = 24
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


def stack_of(module: IRModule) -> WorstStack:
    """`worst_stack` of the code that `emit` prints for a lowered module."""
    return worst_stack(make_program(module))


def worst_stack(program: Program) -> WorstStack:
    """Return the deepest chain of calls from any function that an application may call.

    There is no recursion: a function of TIR calls only functions that come before it.
    """
    roots = (program.entry,) if program.model else program.exported
    register = _widest_register(program)
    chains = _Chains(program, register)
    deepest = max((chains.of(root) for root in roots), key=_depth, default=())
    return WorstStack((*_around(program, register), *deepest, _library(program, register)))


def layer_stacks(module: IRModule) -> Mapping[str, int]:
    """Bytes of the deepest chain of calls through each layer function of a model, by its name."""
    program = make_program(module)
    register = _widest_register(program)
    chains = _Chains(program, register)
    around = (*_around(program, register), _library(program, register))
    fixed = _depth((*around, chains.frame(program.entry)))
    return {layer.name: fixed + _depth(chains.of(layer)) for layer in program.layers}


def _library(program: Program, register: int) -> Frame:
    uses_math = any(
        isinstance(node, Call) and node.intrinsic in _MATH_CALLS
        for function in program.functions
        for node in walk(function)
    )
    return Frame("library", register * (_MATH if uses_math else _LIBRARY))


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
        yield Frame(name, register * (_FRAME + arguments + _EXECUTOR))
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

    def __init__(self, program: Program, register: int) -> None:
        self._program = program
        self._register = register
        self._known: dict[PrimFunc, tuple[Frame, ...]] = {}
        self._assembly = {
            node.meaning: node.contract.stack_bytes
            for function in program.functions
            for node in walk(function)
            if isinstance(node, KernelCall)
        }

    def of(self, function: PrimFunc) -> tuple[Frame, ...]:
        if function not in self._known:
            below = [self.of(callee) for callee in self._callees(function)]
            deepest = max((*below, *self._externs(function)), key=_depth, default=())
            self._known[function] = (self.frame(function), *deepest)
        return self._known[function]

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
                yield (Frame(node.function.name, size),)

    def frame(self, function: PrimFunc) -> Frame:
        """What a function takes itself."""
        nodes = tuple(walk(function))
        variables = sum(_is_variable(node) for node in nodes) + len(function.params)
        # Main has a pointer for every place in the workspace.
        pointers = {
            (view.buffer, view.byte_offset, view.dtype)
            for node in nodes if isinstance(node, Invoke)
            for view in node.args if isinstance(view, BufferView)
        }  # fmt: skip
        arrays = sum(_array_bytes(node) for node in nodes if isinstance(node, Allocate))
        if self._program.config.has_packed_operators():
            arguments = sum(len(node.args) for node in nodes if isinstance(node, Invoke))
            arrays += arguments * (_VIEW * self._register + _VALUE)
        size = arrays + self._register * (variables + len(pointers) + _FRAME)
        size = max(size, self._assembly.get(function, 0))
        return Frame(_c_name(self._program, function), size)


def _c_name(program: Program, function: PrimFunc) -> str:
    is_main = program.model is not None and function is program.entry
    return f"{program.name}_run" if is_main else program.names[function]


def _is_variable(node: Node) -> bool:
    return isinstance(node, For | Let) or (isinstance(node, Allocate) and not node.buffer.shape)


def _array_bytes(node: Allocate) -> int:
    extents = [extent for extent in node.buffer.shape if isinstance(extent, int)]
    size = math.prod(extents) * node.buffer.dtype.bytes if extents else 0
    return size + (node.buffer.alignment if node.buffer.alignment > 8 else 0)
