"""The results of `lower` and `build`: a module that carries its program, and its C."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from microtir import codegen
from microtir.artifact import Artifact
from microtir.lowering.ports import guarded, ports_of, states_of, stream_of
from microtir.module.ir_module import IRModule, ModelInfo
from microtir.module.program import Program

Compiler = Callable[[Artifact], int]
"""Gives the bytes of code and of constants beside the weights that a C compiler makes."""


def module_with(module: IRModule, program: Program) -> IRModule:
    """Return the lowered module of a program.

    Args:
        module: what was compiled, with its graph.
        program: what it has become.
    """
    original, config = module.graph, module.require_config("lower")
    assert original is not None, "a program comes from a graph"
    info = ModelInfo(
        name=program.graph.name,
        ports=guarded(
            ports_of(program.graph, config, program.placement), original, program.graph, config
        ),
        source_file=original.nodes[0].source.file if original.nodes else "",
        source_sha256=original.source_sha256,
        source_bytes=original.source_bytes,
        quantised_sha256=original.quantised_sha256,
        memory=program.placement,
        decisions=program.decisions,
        states=states_of(program.graph, program.main),
        stream=stream_of(original),
    )
    return replace(
        module, functions=(*program.functions, program.main), constants=program.constants,
        model=info, program=program, is_lowered=True,
    )  # fmt: skip


def artifact_of(lowered: IRModule) -> Artifact:
    """Return a lowered module as C, printed as it is."""
    printed = codegen.emit(lowered)
    return Artifact(lowered, printed.sources, printed.metadata, printed.data)


def code_of(module: IRModule, compiler: Compiler | None) -> Callable[[Program], int | None]:
    """Return what asks a compiler for the bytes of a program's code; None where there is none."""
    if compiler is None:
        return lambda _program: None
    return lambda program: compiler(artifact_of(module_with(module, program)))
