"""Compilers: found, missing, failing; compiled programs are kept."""

from __future__ import annotations

import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from microtir import host
from microtir.artifact import Artifact
from microtir.codegen import SourceFile
from microtir.dtype import DType
from microtir.errors import RunError, ToolError
from microtir.host import build
from microtir.host.toolchain import find_compiler
from microtir.module.ir_module import IRModule
from microtir.tir.build import add
from microtir.tir.ir import Buffer, IntImm, Load, PrimFunc, Store
from tests.support.programs import artifact_of, config, image, loop, model_module


def test_compiler_is_identified() -> None:
    """A compiler is known by its path and version."""
    compiler = find_compiler("gcc")
    assert Path(compiler.path).is_absolute()
    assert "gcc" in compiler.version.lower()


def test_missing_compiler_names_a_package(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Without a compiler the error says what to install; generating C needs none."""
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("CC", raising=False)
    artifact = artifact_of(model_module())
    with pytest.raises(ToolError, match=r"(?s)no C compiler on this machine.*package 'gcc'"):
        host.load(artifact)


def test_named_compiler_is_not_replaced() -> None:
    """A compiler that was asked for and is missing is an error, not another compiler."""
    with pytest.raises(ToolError, match="no C compiler 'gcc-99'"):
        host.load(artifact_of(model_module()), compiler="gcc-99")


def test_variable_cc_is_honoured(monkeypatch: pytest.MonkeyPatch) -> None:
    """The variable CC names the compiler unless the caller does."""
    compiler = find_compiler("gcc")
    monkeypatch.setenv("CC", compiler.path)
    assert find_compiler().path == compiler.path


def _with_source(artifact: Artifact, path: str, text: str) -> Artifact:
    files = tuple(SourceFile(path, text) if f.path == path else f for f in artifact.sources)
    return replace(artifact, sources=files)


def test_compiler_errors_are_shown() -> None:
    """What the compiler says is part of the error."""
    broken = _with_source(artifact_of(model_module()), "small.c", "this is not C\n")
    with pytest.raises(ToolError, match=r"(?s)ended with status 1.*small\.c:1"):
        host.load(broken)


def test_missing_headers_name_a_package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A gcc without a C library was shown thirty lines of errors in generated headers."""
    with_headers = find_compiler("gcc").path
    gcc = tmp_path / "gcc"
    gcc.write_text(f'#!/bin/sh\nexec {with_headers} -nostdinc "$@"\n')
    gcc.chmod(0o755)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    with pytest.raises(ToolError, match=r"(?s)no <stdint.h>.*package 'libc6-dev'") as caught:
        host.load(artifact_of(model_module()), compiler=str(gcc))
    assert "unknown type" not in str(caught.value)


# --- the cache ----------------------------------------------------------------------------------


@pytest.fixture
def cache(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """Return a cache of its own, empty."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    return tmp_path / "microtir" / "host"


def test_second_load_compiles_nothing(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The same sources and options are compiled once; others are compiled anew."""
    host.load(artifact_of(model_module()))
    assert len(list(cache.iterdir())) == 1

    def refuse(*arguments: object) -> str:
        raise AssertionError("the compiler was called again")

    with monkeypatch.context() as patch:
        patch.setattr(build, "run_compiler", refuse)
        host.load(artifact_of(model_module()))
    host.load(artifact_of(model_module()), opt_level=0)
    host.load(artifact_of(model_module(rows_at_once=1)))
    assert len(list(cache.iterdir())) == 3


def test_failed_build_leaves_nothing(cache: Path) -> None:
    """A program that did not compile is not in the cache."""
    broken = _with_source(artifact_of(model_module()), "small.c", "this is not C\n")
    with pytest.raises(ToolError):
        host.load(broken)
    assert list(cache.iterdir()) == []


def test_concurrent_loads(cache: Path) -> None:
    """Several threads that build the same program at once all get it whole."""
    artifact = artifact_of(model_module())
    with ThreadPoolExecutor(4) as pool:
        models = list(pool.map(lambda _: host.load(artifact), range(4)))
    results = [model.run({"image": image()})["scores"] for model in models]
    assert all(np.array_equal(results[0], result) for result in results)
    assert len(list(cache.iterdir())) == 1


def test_unwritable_cache(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Where the user's cache cannot be written a temporary folder serves."""
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    assert host.load(artifact_of(model_module())).run({"image": image()})


def test_unwritable_cache_leaves_nothing(tmp_path: Path) -> None:
    """The temporary folder is one for a process, and gone with it."""
    code = (
        "from microtir.host.cache import _root; assert _root().is_dir(); print(_root() is _root())"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True,
        env={**os.environ, "XDG_CACHE_HOME": os.devnull, "TMPDIR": str(tmp_path)},
    )  # fmt: skip
    assert done.stdout == "True\n"
    assert list(tmp_path.iterdir()) == []


# --- sanitizers ---------------------------------------------------------------------------------


def test_sanitized_run_is_equal() -> None:
    """A model that does nothing undefined gives the same result under the sanitizers."""
    artifact = artifact_of(model_module())
    expected = host.load(artifact).run({"image": image()})["scores"]
    assert np.array_equal(host.run_sanitized(artifact, {"image": image()})["scores"], expected)


@pytest.mark.parametrize(("length", "offset"), [(9, 0), (8, 1)])
def test_sanitizers_see_one_byte_too_many(length: int, offset: int) -> None:
    """A read one byte behind a tensor is reported, with the line of the generated file."""
    x, y = Buffer("x", (8,), DType.INT8), Buffer("y", (16,), DType.INT8)
    body = loop("i", length, lambda i: Store(y, (i,), Load(x, (add(i, offset),))))
    function = PrimFunc("copy", (x, y), body, exported=True)
    module = IRModule(functions=(function,), config=config("bad"), is_lowered=True)
    program = host.load(artifact_of(module), sanitize=True)
    with pytest.raises(RunError, match=r"(?s)heap-buffer-overflow.*bad\.c:\d+"):
        program["copy"](np.zeros(8, np.int8), np.zeros(16, np.int8))


def test_sanitizers_see_undefined_arithmetic() -> None:
    """An overflow that TIR forbids, and that nobody proved away, is reported."""
    x, y = Buffer("x", (1,), DType.INT32), Buffer("y", (1,), DType.INT32)
    zero = (IntImm(0),)
    body = Store(y, zero, add(Load(x, zero), 1))
    module = IRModule(
        functions=(PrimFunc("increment", (x, y), body, exported=True),),
        config=config("bad"),
        is_lowered=True,
    )
    program = host.load(artifact_of(module), sanitize=True)
    largest = np.array([DType.INT32.max], np.int32)
    with pytest.raises(RunError, match="signed integer overflow"):
        program["increment"](largest, np.zeros(1, np.int32))
