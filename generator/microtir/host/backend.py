"""Calls compiled code in two ways: in this process through cffi, or in one under sanitizers."""

from __future__ import annotations

import tempfile
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import Any, Protocol

import cffi
import numpy as np

from microtir.artifact import Artifact, PortData, places_in
from microtir.errors import RunError
from microtir.host.build import Build, module_name, shared_library
from microtir.host.declarations import declarations
from microtir.host.interface import Interface, interface_of, packed_call
from microtir.host.tensors import Array, passed_pools
from microtir.support import processes

LayerHook = Callable[[int, int, int, int, int], None]
"""Function called with layer, output, address, first row and the one after the last."""

_HOOK = """
void microtir_host_set_hook(
    void (*hook)(int32_t, int32_t, const void *, int32_t, int32_t));
"""
_OBSERVER = """
const struct microtir_graph_observer *microtir_host_observer(
    void (*node)(int32_t, const char *, uint32_t),
    void (*tensor)(int32_t, const void *, uint32_t));
const struct microtir_platform *microtir_host_platform(void);
"""
# Whoever opens a library gets the same one, with the same memory of its own.
_TURNS: dict[Path, threading.Lock] = {}
_TIMEOUT = 600.0  # seconds that a sanitized program may run
_GRANULE = 8  # bytes that the address sanitizer knows together: guards end with one


class Backend(Protocol):
    """Calls the C functions of one artifact; arrays are passed as they lie in memory."""

    def run(
        self,
        inputs: Sequence[Array],
        outputs: Sequence[Array],
        *workspace: Array,
        state: Array | None = None,
    ) -> int:
        """Call the entry function of a model, with its state and its pools; return its status."""

    def call_state(self, operation: str, arguments: Sequence[Array | int]) -> int:
        """Call a function of a model's state, such as `init`, and return its status."""

    def call(self, function: str, arguments: Sequence[Array | int]) -> int:
        """Call a function of a user's program and return its status."""

    def status_text(self, status: int) -> str:
        """Return the C code's own sentence for a status."""


class SharedLibrary:
    """A shared library in this process, which several threads may call.

    What is kept for a call is the thread's own. Calls of a program with memory of its own, which is
    not re-entrant, take turns.

    Args:
        path: the library; may hold other programs, too.
        declared: C text of what the program's header declares.
        name: what the program's identifiers begin with.
        has_hook: whether it is a debug build.
        row_bytes: size of a row of each tensor that is handed over row by row, by its member.
        interface: how its functions take their arguments.
        is_reentrant: whether several calls may go on at once.
    """

    def __init__(
        self,
        path: Path,
        declared: str,
        name: str,
        *,
        has_hook: bool = False,
        row_bytes: Mapping[str, int] = MappingProxyType({}),
        interface: Interface | None = None,
        is_reentrant: bool = True,
    ) -> None:
        self.has_hook = has_hook
        self._turn: AbstractContextManager[object] = (
            nullcontext() if is_reentrant else _TURNS.setdefault(path, threading.Lock())
        )
        self._row_bytes = row_bytes
        self._interface = interface or Interface()
        self._name = name
        self._ffi: Any = cffi.FFI()
        self._observed = threading.local()  # `observers` while `observed`
        hooks = _HOOK * has_hook + _OBSERVER * self._interface.has_nodes
        self._ffi.cdef(declared + hooks)
        self._library: Any = self._ffi.dlopen(str(path))

    @staticmethod
    def compiled(artifact: Artifact, build: Build) -> SharedLibrary:
        """Compile an artifact and load it; ToolError if the compiler fails."""
        path = shared_library(artifact, build)
        name = module_name(artifact)
        interface = interface_of(artifact)
        headers = [f"{name}.h", *(["packed.h"] if interface.is_packed else [])]
        headers += [f"{name}_graph.h"] if interface.has_nodes else []
        declared = declarations(build.compiler, path.parent, headers)
        sizes = {
            port.member: port.row_bytes
            for port in artifact.metadata.ports
            if port.row_bytes is not None
        }
        return SharedLibrary(
            path, declared, name,
            has_hook=build.debug, row_bytes=sizes, interface=interface,
            is_reentrant=_is_reentrant(artifact),
        )  # fmt: skip

    def run(
        self,
        inputs: Sequence[Array],
        outputs: Sequence[Array],
        *workspace: Array,
        state: Array | None = None,
    ) -> int:
        call = self.bound(inputs, outputs, *workspace, state=state)
        with self._turn:
            return call()

    def bound(
        self,
        inputs: Sequence[Array],
        outputs: Sequence[Array],
        *workspace: Array,
        state: Array | None = None,
    ) -> Callable[[], int]:
        """Return the entry function with its arguments, to call it often: keep library and arrays.

        What is returned takes no turns: one thread may call it.
        """
        alive: list[object] = []
        function = f"{self._name}_run"
        memory = (*workspace, *self._interface.extra)
        if self._interface.is_packed:
            states = [] if state is None else [state]
            return self._packed(function, [*inputs, *outputs, *states, *memory])
        structs = [
            self._struct(kind, arrays, alive)
            for kind, arrays in (("inputs", inputs), ("outputs", outputs))
        ]
        pointers = [self._ffi.cast("void *", array.ctypes.data) for array in memory]
        if state is not None:
            kind = f"struct {self._name}_state *"
            pointers.insert(0, self._ffi.cast(kind, state.ctypes.data))
        if self._interface.device_count:
            pointers.append(self._ffi.new(f"struct {self._name}_devices *"))
        counts = [self._interface.count] if self._interface.count else []
        pointers += [*counts, *[self._ffi.NULL] * self._interface.has_guard]
        return partial(self._run, alive, *structs, *pointers)

    def _run(self, _alive: Sequence[object], *arguments: object) -> int:
        """Call the entry function; C does not keep callbacks alive."""
        observers = getattr(self._observed, "observers", ())
        if observers:
            run = getattr(self._library, f"{self._name}_run_observed")
            return int(run(*arguments, *observers))
        return int(getattr(self._library, f"{self._name}_run")(*arguments))

    @property
    def has_nodes(self) -> bool:
        """Return whether the program is a graph whose nodes can be observed."""
        return self._interface.has_nodes

    @contextmanager
    def observed(
        self, node: Callable[[str, int], None], tensor: Callable[[int, bytes], None]
    ) -> Iterator[None]:
        """Have hooks called for each node of a graph, and then for each tensor that it wrote.

        Those of this thread's runs. `node` is told the name and the nanoseconds that it took,
        `tensor` the number of the node.
        """

        def see_node(_number: int, name: object, ticks: int) -> None:
            node(self._ffi.string(name).decode(), ticks)

        def see_tensor(number: int, data: object, size: int) -> None:
            tensor(number, bytes(self._ffi.buffer(data, size)))

        callbacks = (  # C does not keep them alive
            self._ffi.callback("void (int32_t, const char *, uint32_t)", see_node),
            self._ffi.callback("void (int32_t, const void *, uint32_t)", see_tensor),
        )
        platform = self._library.microtir_host_platform()
        observer = self._library.microtir_host_observer(*callbacks)
        self._observed.observers = (observer, platform)
        try:
            yield
        finally:
            self._observed.observers = ()

    def _packed(self, function: str, arguments: Sequence[Array | int]) -> Callable[[], int]:
        """Bind arguments to a packed function; what is returned keeps them alive."""
        call = packed_call(arguments)
        data = [0 if isinstance(a, int) else a.ctypes.data for a in arguments]
        return partial(
            self._library.microtir_host_call,
            self._ffi.new("char[]", function.encode()),
            len(arguments),
            self._ffi.new("void *[]", [self._ffi.cast("void *", address) for address in data]),
            self._ffi.new("int32_t[]", call.ranks),
            self._ffi.new("int64_t[]", call.numbers),
            self._ffi.new("uint8_t[]", call.types),
        )

    def call(self, function: str, arguments: Sequence[Array | int]) -> int:
        if self._interface.is_packed:
            call = self._packed(function, arguments)
            with self._turn:
                return int(call())
        return self._call(function, arguments)

    def call_state(self, operation: str, arguments: Sequence[Array | int]) -> int:
        return self._call(f"{self._name}_state_{operation}", arguments)

    def _call(self, function: str, arguments: Sequence[Array | int]) -> int:
        """Call a function that takes its arguments as they are."""
        callee = getattr(self._library, function)
        types = self._ffi.typeof(callee).args
        values = [
            value if isinstance(value, int) else self._ffi.cast(type_, value.ctypes.data)
            for type_, value in zip(types, arguments, strict=True)
        ]
        with self._turn:
            return int(callee(*values))

    def status_text(self, status: int) -> str:
        text = getattr(self._library, f"{self._name}_status_text")(status)
        return str(self._ffi.string(text).decode())

    @contextmanager
    def hooked(self, hook: LayerHook) -> Iterator[None]:
        """Have `hook` called after each layer of this thread's runs; only in a debug build."""
        address = partial(self._ffi.cast, "uintptr_t")

        def pass_on(layer: int, output: int, data: object, first: int, last: int) -> None:
            hook(layer, output, int(address(data)), first, last)

        signature = "void (int32_t, int32_t, const void *, int32_t, int32_t)"
        callback = self._ffi.callback(signature, pass_on)  # C does not keep it alive
        self._library.microtir_host_set_hook(callback)
        try:
            yield
        finally:
            self._library.microtir_host_set_hook(self._ffi.NULL)

    def _struct(self, kind: str, arrays: Sequence[Array], alive: list[object]) -> Any:
        struct = self._ffi.new(f"struct {self._name}_{kind} *")
        fields = self._ffi.typeof(f"struct {self._name}_{kind}").fields
        for (member, field), array in zip(fields, arrays, strict=False):
            if member in self._row_bytes:
                move = self._mover(array, self._row_bytes[member], kind == "inputs")
                getattr(struct, member).move = move
                alive.append(move)
            else:
                setattr(struct, member, self._ffi.cast(field.type, array.ctypes.data))
        return struct

    def _mover(self, array: Array, size: int, is_input: bool) -> object:
        """Return the function that hands over the rows of an array of `size` bytes each."""
        rows = array.reshape(-1).view(np.uint8)

        def move(_context: object, row: int, data: object) -> None:
            part = rows[row * size : (row + 1) * size]
            target, source = (data, part) if is_input else (part, data)
            self._ffi.memmove(target, source, size)

        return self._ffi.callback("void (void *, int32_t, void *)", move)


def _is_reentrant(artifact: Artifact) -> bool:
    """Return whether a program has neither memory of its own nor a device."""
    memory = artifact.metadata.memory
    pools = memory.pools if memory else []
    return not any(pool.is_internal for pool in pools) and not artifact.metadata.devices


class Harness:
    """A program under AddressSanitizer and UndefinedBehaviorSanitizer, run for every call.

    A sanitized library cannot be loaded into Python: its runtime must come first in the process.

    Args:
        artifact: the program.
        program_of: compiles the program of a call, an expression in C.
    """

    def __init__(self, artifact: Artifact, program_of: Callable[[str], Path]) -> None:
        self._artifact = artifact
        self._program_of = program_of
        self._name = module_name(artifact)
        self._texts: dict[int, str] = {}
        memory = artifact.metadata.memory
        self._pools = passed_pools(memory) if memory else []
        self._guards = [
            [f"+{start}:{size}" for start, size in gaps(artifact, pool.name)]
            for pool in self._pools
        ]
        self._interface = interface_of(artifact)
        state = artifact.metadata.state
        self._state_alignment = state.alignment if state else 1

    def run(
        self,
        inputs: Sequence[Array],
        outputs: Sequence[Array],
        *workspace: Array,
        state: Array | None = None,
    ) -> int:
        facts = self._artifact.metadata.ports
        ports = zip((*inputs, *outputs), facts, strict=True)
        # What lies in a pool is passed, and comes back, with it.
        separate = [array for array, port in ports if port.pool is None]
        states = [] if state is None else [state]
        arguments = [*separate, *states, *workspace, *self._interface.extra]
        first = len(separate) + len(states)
        strict = dict.fromkeys(range(len(separate), first), self._state_alignment)
        strict |= {n: pool.alignment for n, pool in enumerate(self._pools, first)}
        strict |= enumerate(self._interface.alignments, first + len(workspace))
        guards = dict(enumerate(self._guards, first))
        if self._interface.is_packed:
            packed = _packed_text(f"{self._name}_run", arguments)
            return self._execute(packed, arguments, strict, guards)
        numbers = iter(range(len(separate)))
        places = {pool.name: f"b[{n}]" for n, pool in enumerate(self._pools, first)}
        tensors = [
            _pointer(f"b[{next(numbers)}]", port)
            if port.pool is None
            else f"(void *)((uint8_t *){places[port.pool]} + {port.offset})"
            for port in facts
        ]
        split = len(inputs)
        structs = [
            f"&(const struct {self._name}_{kind}){{{', '.join(values) or '0'}}}"
            for kind, values in (("inputs", tensors[:split]), ("outputs", tensors[split:]))
        ]
        rest = range(len(separate), len(arguments))
        passed = [*structs, *(f"b[{number}]" for number in rest)]
        if self._interface.device_count:
            passed.append(f"&(const struct {self._name}_devices){{0}}")
        passed += [str(self._interface.count)] * (self._interface.count > 0)
        passed += ["NULL"] * self._interface.has_guard
        call = f"{self._name}_run({', '.join(passed)})"
        return self._execute(call, arguments, strict, guards)

    def call_state(self, operation: str, arguments: Sequence[Array | int]) -> int:
        call = _call_text(f"{self._name}_state_{operation}", arguments)
        return self._execute(call, arguments, {0: self._state_alignment})

    def call(self, function: str, arguments: Sequence[Array | int]) -> int:
        facts = next(f for f in self._artifact.metadata.functions if f.function == function)
        alignments = [p.alignment for p in facts.parameters if p.kind == "buffer"]
        alignments += self._interface.alignments * facts.takes_parameters
        call = _call_text(function, arguments)
        if self._interface.is_packed:
            call = _packed_text(function, arguments)
        return self._execute(call, arguments, dict(enumerate(alignments)))

    def status_text(self, status: int) -> str:
        return self._texts.get(status, "unknown status")

    def _execute(
        self,
        call: str,
        arguments: Sequence[Array | int],
        alignments: dict[int, int],
        guards: Mapping[int, Sequence[str]] | None = None,
    ) -> int:
        program = self._program_of(call)
        with tempfile.TemporaryDirectory(prefix="microtir-") as folder:
            texts: list[str] = []
            arrays: list[tuple[Path, Array]] = []
            for argument in arguments:
                if isinstance(argument, int):
                    texts.append(f"={argument}")
                    continue
                path = Path(folder) / f"{len(arrays)}"
                path.write_bytes(argument.tobytes())
                guarded = (guards or {}).get(len(arrays), ())
                alignment = max(alignments.get(len(arrays), 1), argument.dtype.itemsize)
                if guarded:
                    alignment = max(alignment, _GRANULE)
                texts.append(f"{path}:{argument.nbytes}:{alignment}")
                texts += guarded
                arrays.append((path, argument))
            status = self._status(program, texts)
            for path, array in arrays:
                if array.flags.writeable:
                    array[...] = np.fromfile(path, dtype=array.dtype).reshape(array.shape)
        return status

    def _status(self, program: Path, arguments: Sequence[str]) -> int:
        try:
            done = processes.run(
                [str(program), *arguments],
                timeout=_TIMEOUT,
                # Leak detection needs ptrace, which containers forbid; there is no heap anyway.
                env={"ASAN_OPTIONS": "detect_leaks=0", "UBSAN_OPTIONS": "print_stacktrace=1"},
            )  # fmt: skip
        except TimeoutError:
            raise RunError(
                f"the program did not end within {_TIMEOUT:.0f} seconds", where=self._name
            ) from None
        if done.returncode != 0:
            raise RunError(
                f"the program ended with status {done.returncode}; the sanitizers say:\n"
                + done.stderr.strip()
                + places_in(done.stderr, self._artifact.metadata),
                where=self._name,
                fix="report this: generated code must not have undefined behaviour",
            )
        status, text = done.stdout.rstrip("\n").split(" ", 1)
        self._texts[int(status)] = text
        return int(status)


def gaps(artifact: Artifact, pool: str) -> Iterator[tuple[int, int]]:
    """Yield bytes between buffers that none ever takes: the first of them, and how many.

    A run may use those before the first buffer for canaries.
    """
    memory = artifact.metadata.memory
    placed = [p for p in memory.placements if p.pool == pool] if memory else []
    end = min((p.offset for p in placed), default=0)
    for placement in sorted(placed, key=lambda p: p.offset):
        if placement.offset > end:
            yield end, placement.offset - end
        end = max(end, placement.offset + placement.size)


def _pointer(pointer: str, port: PortData) -> str:
    """Return what a member of a struct is set to in the harness."""
    if port.row_bytes is None:
        return pointer
    move = "harness_read" if port.kind == "input" else "harness_write"
    rows = f"&(struct harness_rows){{{pointer}, {port.row_bytes}}}"
    return f"{{{move}, {rows}}}"


def _call_text(function: str, arguments: Sequence[Array | int]) -> str:
    """Return a call with tensors b[0], b[1] ... and integers n[0], n[1] ... of the harness."""
    texts, counts = [], {"b": 0, "n": 0}
    for argument in arguments:
        kind = "n" if isinstance(argument, int) else "b"
        # C++ has no implicit conversion here, but C has: the prototype gives the type.
        texts.append(f"{kind}[{counts[kind]}]")
        counts[kind] += 1
    return f"{function}({', '.join(texts)})"


def _packed_text(function: str, arguments: Sequence[Array | int]) -> str:
    """Return a call of templates/host/packed.h with tensors b[0], b[1] ... of the harness."""
    call = packed_call(arguments)
    data, tensors = [], 0
    for argument in arguments:
        is_tensor = not isinstance(argument, int)
        data.append(f"b[{tensors}]" if is_tensor else "0")
        tensors += is_tensor

    def array(kind: str, values: Sequence[object]) -> str:
        return f"({kind}[]){{{', '.join(map(str, values)) or '0'}}}"

    described = [
        array("void *const", data),
        array("const int32_t", call.ranks),
        array("const int64_t", call.numbers),
        array("const uint8_t", call.types),
    ]
    return f'microtir_host_call("{function}", {len(arguments)}, {", ".join(described)})'
