"""Lays the C runtime out in an archive as microTVM did: build files of clients name its files.

Each C file of microTVM's runtime is there, in its folder, and includes the parts of this runtime
that do its work.  Parts are no C files there: a build that takes all C files takes each once.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from pathlib import PurePosixPath
from types import MappingProxyType

_FOLDER = "src/runtime/crt"
# Folders of microTVM's runtime that microtir has nothing for, and that its project servers delete.
_EMPTY = (
    "include/dmlc",
    "src/support",
    "src/runtime/minrpc",
    *(f"{_FOLDER}/{name}" for name in ("microtvm_rpc_common", "microtvm_rpc_server", "tab")),
)
_NOTHING = "microTVM's runtime had files here; this one needs none of them.\n"
_PARTS = f"{_FOLDER}/microtir"

# A part belongs to one file; what it calls is in the same file, or in one that microTVM's needs,
# too: clients compile some of the files only.
_UNITS: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "common/crt_runtime_api": (
            *("tvm_crt", "tvm_functions", "tvm_executor_module"),
            *("status", "platform", "device"),
        ),
        "common/crt_backend_api": ("tvm_backend", "tensor"),
        "common/func_registry": ("tvm_registry", "registry"),
        "common/ndarray": ("tvm_ndarray",),
        "common/packed_func": ("tvm_packed", "tvm_packed_func", "packed"),
        "memory/stack_allocator": ("tvm_stack", "stack"),
        "memory/page_allocator": ("tvm_pages", "pages"),
        "graph_executor/graph_executor": ("tvm_graph", "graph", "graph_steps", "observe"),
        "graph_executor/load_json": ("parameters", "checksum", "tvm_params"),
        "graph_executor_module/graph_executor_module": ("tvm_graph_module",),
        "aot_executor/aot_executor": ("tvm_aot",),
        "aot_executor_module/aot_executor_module": ("tvm_aot_module",),
    }
)


def has_microtvm(paths: Collection[str]) -> bool:
    """Return whether files of a runtime, as paths below its folder, have microTVM's interface."""
    return "src/tvm_crt.c" in paths


def place_of(path: str) -> str:
    """Return where a file of the runtime lies; paths are below its folder."""
    name = PurePosixPath(path)
    is_part = name.parts[0] == "src" and name.suffix == ".c"
    return f"{_PARTS}/{name.stem}.inc" if is_part else path


def units(paths: Collection[str]) -> dict[str, str]:
    """Return microTVM's files, with their text, for a runtime of these files.

    Args:
        paths: as for `place_of`.
    """
    there = {PurePosixPath(path).stem for path in paths if path.endswith(".c")}
    assert there <= {part for parts in _UNITS.values() for part in parts}, "each has its file"
    texts = {f"{_FOLDER}/{unit}.c": _text(unit, there) for unit in _UNITS}
    return texts | {f"{folder}/README": _NOTHING for folder in _EMPTY}


def _text(unit: str, there: Collection[str]) -> str:
    name = PurePosixPath(unit).name
    parts = [part for part in _UNITS[unit] if part in there]
    if not parts:
        return f"/* {name}.c: this program needs nothing of it. */\ntypedef int {name}_is_empty;\n"
    includes = "".join(f'#include "../microtir/{part}.inc"\n' for part in parts)
    return f"/* {name}.c: a file of microTVM's runtime, made of parts of microtir's. */\n{includes}"
