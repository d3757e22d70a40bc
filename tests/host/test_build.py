"""What is compiled for the host, and how often."""

from __future__ import annotations

from pathlib import Path

import pytest

import microtir
from microtir import CompilationConfig, Executor
from microtir.host import build
from microtir.host.toolchain import Compiler, find_compiler, run_compiler
from tests.support.small_models import module_of, tiny_graph

PACKED = Executor("aot", {"interface-api": "packed", "unpacked-api": False})


def test_the_runtime_is_compiled_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Not with every program: it is several times the C of a small model."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    commands: list[str] = []

    def noted(compiler: Compiler, arguments: list[str], folder: Path) -> str:
        commands.append(" ".join(arguments))
        return run_compiler(compiler, arguments, folder)

    monkeypatch.setattr(build, "run_compiler", noted)
    for name in ("first", "second"):
        config = CompilationConfig(targets="c", executor=PACKED, module_name=name)
        artifact = microtir.build(module_of(tiny_graph()), config)
        made = build.shared_library(artifact, build.Build(find_compiler(), opt_level=0))
        assert made.is_file()
    runtime, *programs = commands
    assert "runtime_crt/src/registry.c" in runtime and " -c " in runtime
    assert len(programs) == 2
    assert not any("runtime_crt/src/registry.c" in command for command in programs)
