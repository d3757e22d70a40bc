"""Two ways to call compiled code: in this process through cffi, or in one under sanitizers."""

from __future__ import annotations

import subprocess
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import Any, Protocol

import cffi
import numpy as np

from microtir.artifact import Artifact, PortData
from microtir.errors import RunError, UsageError
from microtir.host.build import Build, module_name, sanitized_executable, shared_library
from microtir.host.declarations import declarations
from microtir.host.tensors import Array
from microtir.host.toolchain import Compiler

LayerHook = Callable[[int, int, int, int, int], None]
"""Called with layer, output, address, first row and the one after the last."""

_HOOK = "extern void (*microtir_host_hook)(int32_t, int32_t, const void *, int32_t, int32_t);"
_TIMEOUT = 600.0  # seconds that a sanitized program may run


class Backend(Protocol):
    """Calls the C functions of one artifact; arrays are passed as they lie in memory."""

    def run(self, inputs: Sequence[Array], outputs: Sequence[Array], workspace: Array) -> int:
        """Call the entry function of a model and return its status."""

    def call(self, function: str, arguments: Sequence[Array | int]) -> int:
        """Call a function of a user's program and return its status."""

    def status_text(self, status: int) -> str:
        """The C code's own sentence for a status."""


class Library:
    """A shared library in this process.

    Args:
        path: the library; may hold other programs, too.
        declared: C text of what the program's header declares.
        name: what the program's identifiers begin with.
        has_hook: whether it is a debug build.
        row_bytes: size of a row of each tensor that is handed over row by row, by its member.
    """

    def __init__(
        self,
        path: Path,
        declared: str,
        name: str,
        *,
        has_hook: bool = False,
        row_bytes: Mapping[str, int] = MappingProxyType({}),
    ) -> None:
        self.has_hook = has_hook
        self._row_bytes = row_bytes
        self._name = name
        self._ffi: Any = cffi.FFI()
        self._ffi.cdef(declared + (_HOOK if has_hook else ""))
        self._library: Any = self._ffi.dlopen(str(path))

    @staticmethod
    def compiled(artifact: Artifact, build: Build) -> Library:
        """Compile an artifact and load it; ToolError if the compiler fails."""
        path = shared_library(artifact, build)
        name = module_name(artifact)
        declared = declarations(build.compiler, path.parent, [f"{name}.h"])
        sizes = {
            port["member"]: port["row_bytes"]
            for port in artifact.metadata["ports"]
            if port["row_bytes"] is not None
        }
        return Library(path, declared, name, has_hook=build.debug, row_bytes=sizes)

    def run(self, inputs: Sequence[Array], outputs: Sequence[Array], workspace: Array) -> int:
        return self.bound(inputs, outputs, workspace)()

    def bound(
        self, inputs: Sequence[Array], outputs: Sequence[Array], workspace: Array
    ) -> Callable[[], int]:
        """The entry function with its arguments, to call it often: keep library and arrays."""
        alive: list[object] = []
        structs = [
            self._struct(kind, arrays, alive)
            for kind, arrays in (("inputs", inputs), ("outputs", outputs))
        ]
        memory = self._ffi.cast("void *", workspace.ctypes.data)
        return partial(self._run, alive, *structs, memory)

    def _run(self, _alive: Sequence[object], *arguments: object) -> int:
        """Call the entry function; C does not keep callbacks alive."""
        return int(getattr(self._library, f"{self._name}_run")(*arguments))

    def call(self, function: str, arguments: Sequence[Array | int]) -> int:
        callee = getattr(self._library, function)
        types = self._ffi.typeof(callee).args
        values = [
            value if isinstance(value, int) else self._ffi.cast(type_, value.ctypes.data)
            for type_, value in zip(types, arguments, strict=True)
        ]
        return int(callee(*values))

    def status_text(self, status: int) -> str:
        text = getattr(self._library, f"{self._name}_status_text")(status)
        return str(self._ffi.string(text).decode())

    @contextmanager
    def hooked(self, hook: LayerHook) -> Iterator[None]:
        """Have `hook` called after each layer; only in a debug build."""
        address = partial(self._ffi.cast, "uintptr_t")

        def pass_on(layer: int, output: int, data: object, first: int, last: int) -> None:
            hook(layer, output, int(address(data)), first, last)

        before = self._library.microtir_host_hook
        signature = "void (int32_t, int32_t, const void *, int32_t, int32_t)"
        callback = self._ffi.callback(signature, pass_on)  # C does not keep it alive
        self._library.microtir_host_hook = callback
        try:
            yield
        finally:
            self._library.microtir_host_hook = before

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
        """The function that hands over the rows of an array of `size` bytes each."""
        rows = array.reshape(-1).view(np.uint8)

        def move(_context: object, row: int, data: object) -> None:
            part = rows[row * size : (row + 1) * size]
            target, source = (data, part) if is_input else (part, data)
            self._ffi.memmove(target, source, size)

        return self._ffi.callback("void (void *, int32_t, void *)", move)


class Harness:
    """A program under AddressSanitizer and UndefinedBehaviorSanitizer, run for every call.

    A sanitized library cannot be loaded into Python: its runtime must come first in the process.
    """

    def __init__(self, artifact: Artifact, compiler: Compiler) -> None:
        self._artifact = artifact
        self._compiler = compiler
        self._name = module_name(artifact)
        self._texts: dict[int, str] = {}
        self._guards = list(_gaps(artifact))
        placed = [port["name"] for port in artifact.metadata["ports"] if port["offset"] is not None]
        if placed:
            raise UsageError(
                f"'{placed[0]}' lies in the workspace, where sanitizers would not see its bounds",
                where="host.load(sanitize=True)",
                fix="build it without memory.use_workspace_io",
            )

    def run(self, inputs: Sequence[Array], outputs: Sequence[Array], workspace: Array) -> int:
        split = len(inputs)
        pointers = [
            _pointer(f"b[{i}]", port) for i, port in enumerate(self._artifact.metadata["ports"])
        ]
        structs = ", ".join(
            f"&(const struct {self._name}_{kind}){{{', '.join(values) or '0'}}}"
            for kind, values in (("inputs", pointers[:split]), ("outputs", pointers[split:]))
        )
        call = f"{self._name}_run({structs}, b[{len(pointers)}])"
        memory = self._artifact.metadata["memory"]
        strict = memory["alignment"] if memory else 1
        arguments = [*inputs, *outputs, workspace]
        return self._execute(call, arguments, {len(pointers): strict}, self._guards)

    def call(self, function: str, arguments: Sequence[Array | int]) -> int:
        texts, counts = [], {"b": 0, "n": 0}
        for argument in arguments:
            kind = "n" if isinstance(argument, int) else "b"
            # C++ has no implicit conversion here, but C has: the prototype gives the type.
            texts.append(f"{kind}[{counts[kind]}]")
            counts[kind] += 1
        facts = next(f for f in self._artifact.metadata["functions"] if f["function"] == function)
        alignments = [p["alignment"] for p in facts["parameters"] if p["kind"] == "buffer"]
        call = f"{function}({', '.join(texts)})"
        return self._execute(call, arguments, dict(enumerate(alignments)))

    def status_text(self, status: int) -> str:
        return self._texts.get(status, "unknown status")

    def _execute(
        self,
        call: str,
        arguments: Sequence[Array | int],
        alignments: dict[int, int],
        guards: Sequence[str] = (),
    ) -> int:
        program = sanitized_executable(self._artifact, self._compiler, call)
        with tempfile.TemporaryDirectory(prefix="microtir-") as folder:
            texts: list[str] = []
            arrays: list[tuple[Path, Array]] = []
            for argument in arguments:
                if isinstance(argument, int):
                    texts.append(f"={argument}")
                    continue
                path = Path(folder) / f"{len(arrays)}"
                path.write_bytes(argument.tobytes())
                alignment = max(alignments.get(len(arrays), 1), argument.dtype.itemsize)
                texts.append(f"{path}:{argument.nbytes}:{alignment}")
                arrays.append((path, argument))
            status = self._status(program, [*texts, *guards])
            for path, array in arrays:
                if array.flags.writeable:
                    array[...] = np.fromfile(path, dtype=array.dtype).reshape(array.shape)
        return status

    def _status(self, program: Path, arguments: Sequence[str]) -> int:
        try:
            done = subprocess.run(
                [str(program), *arguments],
                capture_output=True, text=True, timeout=_TIMEOUT, check=False,
                # Leak detection needs ptrace, which containers forbid; there is no heap anyway.
                env={"ASAN_OPTIONS": "detect_leaks=0", "UBSAN_OPTIONS": "print_stacktrace=1"},
            )  # fmt: skip
        except subprocess.TimeoutExpired:
            raise RunError(
                f"the program did not end within {_TIMEOUT:.0f} seconds", where=self._name
            ) from None
        if done.returncode != 0:
            raise RunError(
                f"the program ended with status {done.returncode}; the sanitizers say:\n"
                + done.stderr.strip(),
                where=self._name,
                fix="report this: generated code must not do what C leaves undefined",
            )
        status, text = done.stdout.rstrip("\n").split(" ", 1)
        self._texts[int(status)] = text
        return int(status)


def _gaps(artifact: Artifact) -> Iterator[str]:
    """Bytes of the workspace that no buffer ever takes, as arguments of the harness."""
    memory = artifact.metadata["memory"]
    end = 0
    for placement in sorted(memory["placements"], key=lambda p: p["offset"]) if memory else ():
        if placement["offset"] > end:
            yield f"+{end}:{placement['offset'] - end}"
        end = max(end, placement["offset"] + placement["size"])


def _pointer(pointer: str, port: PortData) -> str:
    """What a member of a struct is set to in the harness."""
    if port["row_bytes"] is None:
        return pointer
    move = "harness_read" if port["kind"] == "input" else "harness_write"
    rows = f"&(struct harness_rows){{{pointer}, {port['row_bytes']}}}"
    return f"{{{move}, {rows}}}"
