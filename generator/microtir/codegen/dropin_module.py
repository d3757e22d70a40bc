"""What an application for microTVM finds by name: a module with its functions, or its graph."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence

from microtir.codegen.functions import FunctionText, joined
from microtir.codegen.layout import block_comment
from microtir.codegen.program import Program
from microtir.errors import UsageError
from microtir.ir_module import ModelInfo


def has_module(program: Program) -> bool:
    """Whether a program is found by name: its graph, or its function in a system library."""
    return program.is_graph or program.config.runtime.system_lib


def module_function(
    program: Program, model: ModelInfo, prefix: str, functions: Sequence[str]
) -> FunctionText:
    """`tvmgen_<mod>_module`: the constant description of the program.

    Args:
        program: what is described.
        model: its tensors.
        prefix: of microTVM's names.
        functions: packed functions that it lists, by their C names.

    Raises:
        UsageError: it is a graph that uses devices, for which microTVM's executor has no place.
    """
    if program.is_graph and program.devices:
        raise UsageError(
            f"the graph uses the device '{program.devices[0].name}', which microTVM's graph "
            "executor has no place for",
            where="compatibility",
            fix="use executor 'aot'",
        )
    comment = "What applications find by name: a handle of it comes from TVMModCreateFromCModule()."
    return FunctionText(
        "\n".join(block_comment([comment])),
        f"const TVMModule *{prefix}_module(void)",
        joined(list(_tables(program, model, functions))),
    )


def _tables(program: Program, model: ModelInfo, functions: Sequence[str]) -> Iterator[str]:
    count = len(functions)
    listed = "".join(f"{name}\\000" for name in functions)
    if functions:
        yield f"static const TVMBackendPackedCFunc functions[] = {{{', '.join(functions)}}};"
    table = "functions" if functions else "NULL"
    yield f'static const TVMFuncRegistry registry = {{"\\{count:03o}\\000{listed}", {table}}};'
    if program.is_graph:
        names = ", ".join(_c_string(port.name) for port in model.inputs) or "NULL"
        yield f"static const char *const inputs[] = {{{names}}};"
        yield f"static const struct tvm_graph_model graph = {{{program.name}_graph, inputs}};"
    yield f"static const TVMModule module = {{&registry, {'&graph' * program.is_graph or 'NULL'}}};"
    yield "return &module;"


def _c_string(name: str) -> str:
    """A name as a C string: JSON's escapes are C's, as long as there is no trigraph."""
    return json.dumps(name.encode("ascii", "replace").decode().replace("?", "_"))
