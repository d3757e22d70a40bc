"""Compiles generated C on this machine and runs it from numpy."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

from microtir.artifact import Artifact
from microtir.config import Feature
from microtir.host.backend import Harness, SharedLibrary
from microtir.host.build import Build, sanitized_executable
from microtir.host.functions import Function
from microtir.host.model import POISON, LayerResult, Model
from microtir.host.session import LayerStep, Session
from microtir.host.tensors import Array, TensorInfo
from microtir.host.toolchain import Compiler, find_compiler
from microtir.support.arguments import checked_arguments

__all__ = [
    "POISON", "Function", "LayerResult", "LayerStep", "Model", "Session", "TensorInfo", "load",
    "run_sanitized",
]  # fmt: skip


@checked_arguments
def load(
    artifact: Artifact,
    *,
    compiler: str | None = None,
    sanitize: bool = False,
    opt_level: int | None = None,
    debug: bool = False,
) -> Model:
    """Compile an artifact with the C compiler of this machine and load it.

    Args:
        artifact: what `build` returned.
        compiler: name or path of gcc or clang; by default that of CC, or the first one found.
        sanitize: run every call in a process under address and undefined-behaviour sanitizers.
        opt_level: 0 to 3; by default 2, or 3 with every instruction of this machine
            (``-march=native``) for a target with vectors, such as ``c -mcpu=native``.
        debug: let `Model.run_layers` see every layer.

    Returns:
        The program; a model has `run`, a user's functions are taken by name.

    Raises:
        ToolError: there is no compiler, or it failed.
    """
    tool = find_compiler(compiler)
    build = _build(artifact, tool, opt_level, debug)
    if sanitize:
        program_of = partial(sanitized_executable, artifact, tool, native=build.native)
        return Model(artifact, Harness(artifact, program_of))
    return Model(artifact, SharedLibrary.compiled(artifact, build))


def _build(artifact: Artifact, compiler: Compiler, opt_level: int | None, debug: bool) -> Build:
    config = artifact.module.config
    vectors = config is not None and config.primary_target().has(Feature.VECTOR)
    level = (3 if vectors else 2) if opt_level is None else opt_level
    return Build(compiler, level, debug, native=vectors)


@checked_arguments
def run_sanitized(
    artifact: Artifact, inputs: Mapping[str, Array], *, compiler: str | None = None
) -> dict[str, Array]:
    """Run a model once under the sanitizers and return its outputs.

    Raises:
        RunError: a sanitizer objected; its report is in the message.
        ToolError: there is no compiler, or it has no sanitizers.
    """
    return load(artifact, compiler=compiler, sanitize=True).run(inputs)
