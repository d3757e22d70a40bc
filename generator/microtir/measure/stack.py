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
from functools import lru_cache
from itertools import accumulate

from microtir.config import CompilationConfig, Family, Feature, Target
from microtir.config.enums import CallingConvention
from microtir.dtype import DType
from microtir.measure.functions import Functions, has_intrinsics
from microtir.tir import ir
from microtir.tir.float_functions import OWN
from microtir.tir.visitor import Node, calls_of, children, invokes_of, statements_of, walk

# In registers.  A frame: those that a callee gives back (13 on RISC-V, 8 more for floats on Arm),
# its return address, and temporaries, as for a loop that is unrolled.
_FRAME = 24
# Where nothing is optimised, a variable and what expressions around it leave on the stack.
_UNOPTIMISED = 2
# What the deepest helper or routine of the compiler's library takes (64-bit products, memcpy),
# and what one of <math.h> does where floats are emulated.
_LIBRARY = 16
_IMAGES = 4  # of a loop over images: its variable, and pointers that are asked for again
_POSITION = 2  # of a run step by step: the number of the step, and where it is counted
_GUARD = 1  # of a run that counts elements of inputs: where the counts go
_COUNT = 1  # of a run that is told how many entries of a batch there are
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
    ir.Intrinsic.EXP, ir.Intrinsic.LOG, ir.Intrinsic.SQRT, ir.Intrinsic.TANH, ir.Intrinsic.SIN,
    ir.Intrinsic.COS, ir.Intrinsic.FLOOR, ir.Intrinsic.CEIL, ir.Intrinsic.ROUND,
    ir.Intrinsic.ROUND_HALF_TO_EVEN, ir.Intrinsic.POW, ir.Intrinsic.ATAN2, ir.Intrinsic.FMOD,
    ir.Intrinsic.FLOOR_DIVIDE, *OWN.values(),
})  # fmt: skip


@dataclass(frozen=True, slots=True)
class StackFrame:
    """The frame of one function in the deepest chain of calls, in bytes.

    `name` is its name in TIR; `function` is None for what is no function of TIR.
    """

    name: str
    bytes: int
    function: ir.PrimFunc | None = None


@dataclass(frozen=True, slots=True)
class WorstStack:
    """The deepest chain of calls, from the entry on; the last frame is that of libraries."""

    frames: tuple[StackFrame, ...]

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


def stacks_of(functions: Functions, config: CompilationConfig, passed_constants: int) -> Stacks:
    """Return the bounds of a program.

    Args:
        functions: of the program.
        config: what it is compiled for, and how it is called.
        passed_constants: constant pools that the application passes and that hold anything.
    """
    program = _Program(functions, config, passed_constants)
    in_c = program.worst(is_optimised=True, has_assembly=False)
    assembly = any(not has_intrinsics(kernel) for kernel in functions.assembly)
    best = program.worst(is_optimised=True, has_assembly=True) if assembly else in_c
    # Assembly is taken without optimisation, too, and may keep more on the stack than its twins.
    unoptimised = [
        program.worst(is_optimised=False, has_assembly=a)
        for a in ((False, True) if assembly else (False,))
    ]
    return Stacks(best, in_c, max(unoptimised, key=lambda stack: stack.bytes))


def layer_stacks(
    functions: Functions, config: CompilationConfig, passed_constants: int
) -> Mapping[str, int]:
    """Return the bytes of the deepest chain of calls through each layer of a model, by its name.

    They are those of `Stacks.best`; the arguments are those of `stacks_of`.
    """
    program = _Program(functions, config, passed_constants)
    if functions.main is None:
        return {}
    chains = _Chains(program, is_optimised=True, has_assembly=True)
    around = _depth((*program.around(), chains.frame(functions.main)))
    return {layer.name: around + _depth(chains.of(layer)) for layer in functions.layers}


@dataclass(frozen=True, slots=True)
class _Program:
    """The program whose stack is measured, by the names of the arguments of `stacks_of`."""

    functions: Functions
    config: CompilationConfig
    passed_constants: int

    @property
    def register(self) -> int:
        """Return the bytes of the widest register of any CPU of the program."""
        targets = (*self.config.targets, self.config.target_host)
        return max(map(_register_bytes, targets))

    def name(self, function: ir.PrimFunc) -> str:
        """Return what a diagnostic calls a function.

        The entry of a model by the name that C has.
        """
        is_main = function is self.functions.main
        return f"{self.config.module_name}_run" if is_main else function.name

    def worst(self, *, is_optimised: bool, has_assembly: bool) -> WorstStack:
        """Return the deepest chain of calls from any function that an application may call.

        There is no recursion: a function of TIR calls only functions that come before it.
        """
        chains = _Chains(self, is_optimised, has_assembly)
        deepest = max(map(chains.of, self.functions.roots), key=_depth, default=())
        return WorstStack((*self.around(), *deepest))

    def around(self) -> Iterator[StackFrame]:
        """Yield what runs before main, or between main and a layer."""
        config, register = self.config, self.register
        arguments = max((len(root.params) for root in self.functions.roots), default=0)
        name = f"{config.module_name}_run"
        is_packed = config.entry_calling_convention() is CallingConvention.PACKED
        if is_packed or config.needs_packed_wrapper():
            yield StackFrame(f"{name}_packed", register * (_FRAME + arguments))
        if config.has_packed_operators() and self.functions.layers:
            most = max(len(layer.params) for layer in self.functions.layers)
            yield StackFrame("operator_packed", register * (_FRAME + most))
        if self.functions.main is not None and config.is_graph():
            # The executor and its arrays of pointers; main is then a node.
            size = _FRAME + arguments + _EXECUTOR + self.passed_constants
            yield StackFrame(name, register * size)
            for function in _OBSERVED if config.runs_observed() else _EXECUTED:
                yield StackFrame(function, register * _FRAME)


def _depth(chain: tuple[StackFrame, ...]) -> int:
    return sum(frame.bytes for frame in chain)


def _register_bytes(target: Target) -> int:
    """Return the bytes of a register, or of an INT32 where registers are smaller.

    C for no CPU in particular may be compiled for one of 64 bits.
    """
    wide = target.has(Feature.BIT64) or target.family is Family.GENERIC
    return 8 if wide else 4


class _Chains:
    """The deepest chain of calls from each function; known ones are kept."""

    def __init__(self, program: _Program, is_optimised: bool, has_assembly: bool) -> None:
        self._program = program
        self._functions = program.functions
        self._register = program.register
        self._is_optimised = is_optimised
        self._has_assembly = has_assembly
        self._known: dict[ir.PrimFunc, tuple[StackFrame, ...]] = {}
        self._contracts = {
            call.meaning: call.contract.stack_bytes
            for function in self._functions.distinct
            for call in calls_of(function)
            if isinstance(call, ir.KernelCall)
        }
        self._by_name = {f.name: f for f in self._functions.own}

    def of(self, function: ir.PrimFunc) -> tuple[StackFrame, ...]:
        if function not in self._known:
            self._known[function] = (self.frame(function), *self._below(function))
        return self._known[function]

    def _is_assembly(self, function: ir.PrimFunc) -> bool:
        """Return whether a micro-kernel is a list of instructions, which call nothing."""
        is_listed = function in self._functions.assembly and not has_intrinsics(function)
        return self._has_assembly and is_listed

    def _below(self, function: ir.PrimFunc) -> tuple[StackFrame, ...]:
        if self._is_assembly(function):
            return ()
        library = self._library(function)
        below = [self.of(callee) for callee in self._callees(function)]
        return max((*below, *self._externs(function), (library,)), key=_depth)

    def _library(self, function: ir.PrimFunc) -> StackFrame:
        """Return what a compiler or a function itself calls that is not printed with it."""
        size = _MATH if _body_of(function).uses_math else _LIBRARY
        return StackFrame("library", self._register * size)

    def _callees(self, function: ir.PrimFunc) -> Iterator[ir.PrimFunc]:
        for call in calls_of(function):
            if isinstance(call, ir.Invoke):
                yield self._by_name[call.function]
            elif isinstance(call, ir.KernelCall):
                yield call.meaning

    def _externs(self, function: ir.PrimFunc) -> Iterator[tuple[StackFrame, ...]]:
        for call in calls_of(function):
            if isinstance(call, ir.ExternCall):
                size = call.function.stack_bytes + self._register * _FRAME
                library = StackFrame("library", self._register * _LIBRARY)
                yield StackFrame(call.function.name, size), library

    def frame(self, function: ir.PrimFunc) -> StackFrame:
        """Return what a function takes itself."""
        name = self._program.name(function)
        contract = self._contracts.get(function, 0)
        if self._is_assembly(function):
            return StackFrame(name, contract, function)
        arrays = _body_of(function).arrays
        if self._program.config.has_packed_operators():
            calls = calls_of(function)
            arguments = sum(len(call.args) for call in calls if isinstance(call, ir.Invoke))
            arrays += arguments * (_VIEW * self._register + _VALUE)
        size = arrays + self._register * (self._registers(function) + _FRAME)
        is_body = function in self._functions.assembly and has_intrinsics(function)
        return StackFrame(name, max(size, contract) if is_body else size, function)

    def _registers(self, function: ir.PrimFunc) -> int:
        """Return the registers that a function's parameters and variables take."""
        is_main = function is self._functions.main
        has_steps = is_main and self._program.config.executor.steps
        use = _register_use_of(function, is_main=is_main, has_steps=has_steps)
        executor = self._program.config.executor
        more_words = _GUARD * executor.guard_inputs + _COUNT * executor.batch_count
        if is_main and more_words:
            more = _RegisterUse(more_words, _UNOPTIMISED * more_words)
            use = _RegisterUse(use.optimised + more.optimised, use.unoptimised + more.unoptimised)
        return use.optimised if self._is_optimised else use.unoptimised


@dataclass(frozen=True, slots=True)
class _Body:
    """Facts about a function's frame that its body determines: bytes of arrays, use of <math.h>."""

    arrays: int
    uses_math: bool


# A program is measured in four ways, and micro-kernels are those of many layers.
@lru_cache(maxsize=4096)
def _body_of(function: ir.PrimFunc) -> _Body:
    nodes = tuple(walk(function))
    return _Body(
        sum(_array_bytes(node) for node in nodes if isinstance(node, ir.Allocate)),
        any(isinstance(node, ir.Call) and node.intrinsic in _MATH_CALLS for node in nodes),
    )


@dataclass(frozen=True, slots=True)
class _RegisterUse:
    """The registers that a function's parameters and variables take, or places on the stack."""

    optimised: int
    unoptimised: int


@lru_cache(maxsize=4096)
def _register_use_of(function: ir.PrimFunc, *, is_main: bool, has_steps: bool) -> _RegisterUse:
    parts = tuple(statements_of(function.body)) if is_main else (function.body,)
    uses = [_uses(part) for part in parts]
    places = [frozenset(place for _, place in some) for some in uses]
    # Main has a pointer for each buffer at a place, which some function fills first.
    pointers = frozenset[Place]().union(*places)
    named = max(_UNOPTIMISED * len(pointers), sum(map(len, uses)))
    if has_steps:  # each of which has pointers of its own
        named = _UNOPTIMISED * sum(map(len, uses))
    variables = sum(_is_variable(node) for part in parts for node in walk(part))
    most = max(map(sum, zip(map(_in_scope, parts), _living(places), strict=True)), default=0)
    parameters = len(function.params) + (_IMAGES if function.images > 1 else 0)
    parameters += _POSITION if has_steps else 0
    return _RegisterUse(parameters + most, _UNOPTIMISED * (parameters + variables) + named)


Place = tuple[ir.Buffer, int, DType]
"""Place that main has a pointer for: the block, the offset in it, and the type of the elements."""


def _uses(part: ir.Stmt) -> frozenset[tuple[str, Place]]:
    """Return which function is given which place."""
    return frozenset(
        (node.function, (view.buffer, view.byte_offset, view.dtype))
        for node in invokes_of(part)
        for view in node.args if isinstance(view, ir.BufferView)
    )  # fmt: skip


def _living(used: Sequence[frozenset[Place]]) -> list[int]:
    """Return how many pointers each of some statements has to keep: from first use to last."""
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


def _is_variable(node: Node) -> bool:
    return isinstance(node, ir.For | ir.Let) or (
        isinstance(node, ir.Allocate) and not node.buffer.shape
    )


def _in_scope(node: Node) -> int:
    """Count the variables that share the scope at most: others take the places of dead ones."""
    return _is_variable(node) + max(map(_in_scope, children(node)), default=0)


def _array_bytes(node: ir.Allocate) -> int:
    extents = [extent for extent in node.buffer.shape if isinstance(extent, int)]
    size = math.prod(extents) * node.buffer.dtype.bytes if extents else 0
    return size + (node.buffer.alignment if node.buffer.alignment > 8 else 0)
