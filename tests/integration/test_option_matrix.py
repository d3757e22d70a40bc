"""Every pair of option values gives code that compiles without a warning and computes the same.

Pairs with a value that a configuration refuses are tests/config/test_options.py's: all of them
are refused in the constructor, by name.  Here is what follows for all others.
"""

from __future__ import annotations

import ctypes
import hashlib
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import combinations
from pathlib import Path

import numpy as np
import pytest

import microtir
from microtir.artifact import Artifact
from microtir.config import CompilationConfig
from microtir.config.assemble import assemble
from microtir.config.samples import Sample, all_values
from microtir.errors import ConfigError, MemoryPlanError
from microtir.graph.ir import Array
from microtir.ir_module import Port, PortKind
from tests.support.c_compilers import INCLUDES, STRICT, compiler_output
from tests.support.program_text import program_text
from tests.support.small_models import (
    module_of,
    reference_outputs,
    sample_inputs,
    tiny_graph,
)

BASE = CompilationConfig(targets="c")
# Below the needs of any model: limits that every build exceeds.
TOO_SMALL = {
    "budget.ram=1": "budget.ram",
    "budget.flash=1": "budget.flash",
    "budget.stack=1": "budget.stack",
    "workspace_pools.size_hint_bytes=1": "workspace_pools.size_hint_bytes",
}


def describe(sample: Sample) -> str:
    """An option and its value, as TOO_SMALL has them."""
    return f"{sample.option.path}={sample.value}"


def legal_pairs() -> Iterator[tuple[CompilationConfig, frozenset[str]]]:
    """Each configuration that a pair of values gives, once, and the limits that it exceeds."""
    samples = [sample for sample in all_values() if sample.accepted]
    seen: set[CompilationConfig] = set()
    for one, other in combinations(samples, 2):
        if one.option is other.option:
            continue
        try:
            config = assemble({one.option: one.value, other.option: other.value}, BASE)
        except ConfigError:
            continue  # values that contradict each other: tests/config has the list
        if config not in seen:
            seen.add(config)
            pair = (describe(one), describe(other))
            yield config, frozenset(TOO_SMALL[text] for text in pair if text in TOO_SMALL)


def compiled(artifact: Artifact, folder: Path) -> str:
    """Compile the sources of an artifact into a library; what the compiler says."""
    artifact.export(folder)
    units = [file.path for file in artifact.sources if file.path.endswith(".c")]
    flags = ["-std=c99", *STRICT, *INCLUDES, "-O0", "-fPIC", "-shared"]
    return compiler_output(["gcc", *flags, *units, "-o", "program.so", "-lm"], folder)


MOVE = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int32, ctypes.c_void_p)


def members(port: Port, place: int, alive: list[object]) -> tuple[int | None, None]:
    """What the struct holds for a tensor: a pointer, or a function and its context."""
    size = port.row_bytes
    if size is None:
        return place, None

    def move(_context: object, row: int, data: int) -> None:
        whole = place + row * size
        is_input = port.kind is PortKind.INPUT
        ctypes.memmove(data if is_input else whole, whole if is_input else data, size)

    alive.append(MOVE(move))
    return ctypes.cast(alive[-1], ctypes.c_void_p).value, None  # type: ignore[arg-type]


def run(folder: Path, artifact: Artifact, data: Array, result: Array) -> int:
    """Call the entry function with a workspace of exactly the promised size and alignment."""
    memory = artifact.metadata["memory"]
    assert memory is not None
    size, alignment = memory["workspace_size"], memory["alignment"]
    room = np.full(size + 2 * alignment, 0xA5, np.uint8)
    address = -(-room.ctypes.data // alignment) * alignment
    library = ctypes.CDLL(str(folder / "program.so"))
    entry = library[f"{artifact.metadata['module_name']}_run"]
    model = artifact.module.model
    assert model is not None
    given, made = model.ports
    places = [data.ctypes.data, result.ctypes.data]
    if given.offset is not None and made.offset is not None:
        # Both lie in the workspace, where the output may take the place of the input.
        places = [address + given.offset, address + made.offset]
        ctypes.memmove(places[0], data.ctypes.data, data.nbytes)
    alive: list[object] = []
    inputs, outputs = (
        (ctypes.c_void_p * 2)(*members(port, place, alive))
        for port, place in zip(model.ports, places, strict=True)
    )
    entry.argtypes = [ctypes.c_void_p] * 3
    entry.restype = ctypes.c_int32
    status = int(entry(ctypes.addressof(inputs), ctypes.addressof(outputs), address))
    if places[1] != result.ctypes.data:
        ctypes.memmove(result.ctypes.data, places[1], result.nbytes)
    return status


def test_s2_2_every_legal_pair_builds_compiles_and_computes_the_same(tmp_path: Path) -> None:
    """All pairs of accepted values: a limit is refused by name, the rest equals the reference."""
    model = tiny_graph()
    programs: dict[str, Artifact] = {}
    configurations = refused = 0
    for config, limits in legal_pairs():
        configurations += 1
        if limits:
            with pytest.raises(MemoryPlanError) as caught:
                microtir.build(module_of(model), config)
            assert caught.value.where in limits
            refused += 1
            continue
        artifact = microtir.build(module_of(model), config)
        assert artifact.metadata["config"] == config.to_dict()
        text = repr(sorted(program_text(artifact).items()))
        programs.setdefault(hashlib.sha256(text.encode()).hexdigest(), artifact)
    assert configurations > 300 and refused > 50 and len(programs) > 30, (
        configurations,
        refused,
        len(programs),
    )

    folders = {key: tmp_path / key for key in programs}
    with ThreadPoolExecutor(2) as pool:
        said = list(pool.map(lambda key: compiled(programs[key], folders[key]), programs))
    inputs = sample_inputs(model)
    (expected,) = reference_outputs(model, inputs).values()
    for (key, artifact), problems in zip(programs.items(), said, strict=True):
        assert not problems, f"{artifact.module.config!r}\n{problems}"
        result = np.full_like(expected, 0x55)
        assert run(folders[key], artifact, inputs["x"], result) == 0
        np.testing.assert_array_equal(result, expected, err_msg=repr(artifact.module.config))
