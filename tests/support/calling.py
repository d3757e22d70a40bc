"""Compiling artifacts of every interface with all warnings, and calling them through ctypes."""

from __future__ import annotations

import ctypes
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from microtir.artifact import Artifact
from microtir.config.enums import CallingConvention
from microtir.graph.ir import Array
from microtir.host.interface import interface_of
from microtir.host.tensors import aligned
from microtir.module.ir_module import Port, PortKind
from microtir.support.resources import runtime_crt
from tests.support.c_compilers import INCLUDES, STRICT, compiler_output

PROGRAM = "program.so"
# What make_runtime compiles; a program brings the other parts, those of other interfaces.
_IN_RUNTIME = tuple(
    f"runtime_crt/src/{path.name}" for path in sorted((runtime_crt() / "src").glob("*.c"))
)
_PLATFORM = Path(__file__).with_name("platform.c")
_MOVE = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int32, ctypes.c_void_p)
_TENSOR = 4  # MICROTIR_KIND_TENSOR
_ELEMENTS = {"i": 0, "u": 1, "f": 2, "b": 3}  # enum microtir_element, by numpy's kind


def make_runtime(folder: Path, compiler: str = "gcc", standard: str = "c99") -> Path:
    """Compile the C runtime into a library that many programs link."""
    root = runtime_crt()
    units = map(str, sorted((root / "src").glob("*.c")))
    flags = [f"-std={standard}", *STRICT, "-O0", "-fPIC", f"-I{root / 'include'}", "-c"]
    said = compiler_output([compiler, *flags, *units], folder)
    assert not said, said
    objects = [path.name for path in sorted(folder.glob("*.o"))]
    assert not compiler_output(["ar", "rcs", "libcrt.a", *objects], folder)
    return folder / "libcrt.a"


def compiled(
    artifact: Artifact,
    folder: Path,
    runtime: Path,
    *,
    compiler: str = "gcc",
    standard: str = "c99",
    flags: Sequence[str] = (),
) -> str:
    """Compile the sources of an artifact into a library; what the compiler says."""
    artifact.export(folder)
    sources = [
        file
        for file in artifact.sources
        if file.path.endswith(".c") and not file.path.startswith(_IN_RUNTIME)
    ]
    units = [file.path for file in sources]
    if any("TVMPlatform" in file.text for file in sources):
        units.append(str(_PLATFORM))
    options = [f"-std={standard}", *STRICT, *INCLUDES, *flags, "-O0", "-fPIC", "-shared"]
    command = [compiler, *options, *units, str(runtime), "-o", PROGRAM, "-lm"]
    return compiler_output(command, folder)


def run(folder: Path, artifact: Artifact, data: Array, result: Array) -> int:
    """Call the entry function with a workspace of exactly the promised size and alignment."""
    metadata = artifact.metadata
    memory = metadata.memory
    assert memory is not None
    pools = [pool for pool in memory.pools if not pool.is_internal]
    blocks = [aligned(pool.size, pool.alignment, 0xA5) for pool in pools]
    places = {pool.name: block for pool, block in zip(pools, blocks, strict=True)}
    blocks += interface_of(artifact).extra
    library = ctypes.CDLL(str(folder / PROGRAM))
    entry = library[f"{metadata.module_name}_run"]
    entry.restype = ctypes.c_int32
    config = artifact.module.require_config("test")
    if config.entry_calling_convention() is CallingConvention.PACKED:
        return run_packed(entry, [data, result, *blocks])
    return _run_structs(entry, artifact, data, result, blocks, places)


def _run_structs(
    entry: Any,
    artifact: Artifact,
    data: Array,
    result: Array,
    blocks: Sequence[Array],
    pools: Mapping[str, Array],
) -> int:
    model = artifact.module.model
    assert model is not None
    given, made = model.ports
    places = [data.ctypes.data, result.ctypes.data]
    if given.offset is not None and made.offset is not None:
        # Both lie in the workspace, where the output may take the place of the input.
        starts = [pools[model.memory.pools[port.pool].name] for port in model.ports]
        offsets = (given.offset, made.offset)
        places = [s.ctypes.data + at for s, at in zip(starts, offsets, strict=True)]
        ctypes.memmove(places[0], data.ctypes.data, data.nbytes)
    alive: list[object] = []
    inputs, outputs = (
        (ctypes.c_void_p * 2)(*_members(port, place, alive))
        for port, place in zip(model.ports, places, strict=True)
    )
    memory: list[int | None] = [block.ctypes.data for block in blocks]
    memory += [None] * interface_of(artifact).has_guard
    entry.argtypes = [ctypes.c_void_p] * (2 + len(memory))
    status = int(entry(ctypes.addressof(inputs), ctypes.addressof(outputs), *memory))
    if places[1] != result.ctypes.data:
        ctypes.memmove(result.ctypes.data, places[1], result.nbytes)
    return status


def _members(port: Port, place: int, alive: list[object]) -> tuple[int | None, None]:
    """Return what the struct holds for a tensor: a pointer, or a function and its context."""
    size = port.row_bytes
    if size is None:
        return place, None

    def move(_context: object, row: int, data: int) -> None:
        whole = place + row * size
        is_input = port.kind is PortKind.INPUT
        ctypes.memmove(data if is_input else whole, whole if is_input else data, size)

    alive.append(_MOVE(move))
    return ctypes.cast(alive[-1], ctypes.c_void_p).value, None  # type: ignore[arg-type]


class _PackedTensor(ctypes.Structure):
    """struct microtir_tensor."""

    _fields_ = (
        ("data", ctypes.c_void_p),
        ("rank", ctypes.c_int32),
        ("element", ctypes.c_uint8),
        ("bits", ctypes.c_uint8),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.c_void_p),
        ("byte_offset", ctypes.c_uint64),
    )


def run_packed(entry: Any, arrays: Sequence[Array]) -> int:
    """Call a packed function with tensors; memory is one of bytes."""
    shapes = [(ctypes.c_int64 * array.ndim)(*array.shape) for array in arrays]
    packed = [
        _PackedTensor(
            array.ctypes.data, array.ndim, _ELEMENTS[array.dtype.kind], 8 * array.itemsize,
            extents, None, 0,
        )
        for array, extents in zip(arrays, shapes, strict=True)
    ]  # fmt: skip
    args = (ctypes.c_void_p * len(packed))(*map(ctypes.addressof, packed))
    kinds = (ctypes.c_int32 * len(packed))(*[_TENSOR] * len(packed))
    entry.argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int32, *[ctypes.c_void_p] * 3]
    return int(entry(args, kinds, len(packed), None, None, None))
