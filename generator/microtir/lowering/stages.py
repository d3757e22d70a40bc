"""The stages of the road from a model to C, by name: what `explain pipeline` and observers say."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from microtir.config import CompilationConfig, host
from microtir.graph.rewriting import GraphPass
from microtir.lowering.function_lowering import tir_passes_of
from microtir.lowering.graph_lowering import offload_passes_of
from microtir.rewrite.imports import ONNX_PASSES, READ_OPERATORS, TFLITE_PASSES
from microtir.rewrite.optimise import graph_passes_of
from microtir.rewrite.requests.requested import request_passes_of
from microtir.rewrite.variants import VARIANT_PASSES
from microtir.tir import passes as tir_passes


@dataclass(frozen=True, slots=True)
class Stage:
    """A step that `lower` or `build` takes with a model.

    `name` is what observers are told; `passes` are name and summary of each pass it runs.
    """

    name: str
    summary: str
    passes: tuple[tuple[str, str], ...] = ()


def reading() -> Stage:
    """Return what is done to the graph of a file while it is read, before `lower`."""
    readers = (READ_OPERATORS, "Translates the operators of the file, one after the other.")
    passes = (readers, *_about((*TFLITE_PASSES, *ONNX_PASSES)))
    return Stage("import", "Converts conventions of the file's format.", passes)


def pipeline(config: CompilationConfig | None = None) -> tuple[Stage, ...]:
    """Return the steps of `lower` and `build` for a model, in order.

    Args:
        config: whose passes are meant; that of `host()` without it.
    """
    config = config or host()
    requests, offload = _about(request_passes_of(config)), _about(offload_passes_of(config))
    graph, tir = graph_passes_of(config), tir_passes_of(config, simple_mode=False)
    plan = "Chooses kernels, layouts of tensors, and tensors that share memory."
    if config.keeps_layouts():
        plan = "Chooses kernels, and what shares memory; tensors lie as in the model."
    return (
        Stage("request", "Makes the graph that the configuration asks for.", requests),
        Stage("graph", "Rewrites the graph; every output stays as it is.", _about(graph)),
        Stage("offload", "Gives work to libraries, NPUs, and callers that hold rows.", offload),
        Stage("plan", plan, _about(VARIANT_PASSES)),
        Stage("lowering", "Writes one PrimFunc for each operator that needs code."),
        Stage("tir", "Rewrites each PrimFunc, then proves every access in bounds.", _about(tir)),
        Stage("executor", "Writes main, the PrimFunc that calls the others one after another."),
        Stage("memory", "Places every buffer in the workspace; a checker proves it."),
        Stage("merge", "Gives layers with equal bodies one function, where flash is the goal."),
        Stage("measure", "Counts the flash and the stack of the program."),
        Stage("codegen", _printed(config)),
    )


def _printed(config: CompilationConfig) -> str:
    if not config.is_graph():
        return "Prints the PrimFuncs and weights as C."
    names = ", with names and hooks to watch a run" if config.runs_observed() else ""
    return f"Prints the PrimFuncs and weights as C, and main as a table of calls{names}."


def _about(passes: Sequence[GraphPass | tir_passes.Pass]) -> tuple[tuple[str, str], ...]:
    """Name and first line of the docstring of each pass."""
    return tuple((p.name, (type(p).__doc__ or "").partition("\n")[0]) for p in passes)
