"""Prints what an application for microTVM finds by name: a module with functions, or a graph."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from microtir.codegen.microtvm.abi_graph import graph_tables
from microtir.codegen.microtvm.dlpack import dlpack_dtype
from microtir.codegen.printer.functions import FunctionText, c_function
from microtir.codegen.program import CProgram
from microtir.errors import UsageError
from microtir.module.ir_module import ModelInfo
from microtir.support.encoding import c_string

PACKED_PARAMETERS = (
    "TVMValue *args",
    "int *type_codes",
    "int num_args",
    "TVMValue *out_value",
    "int *out_type_code",
    "void *resource_handle",
)
"""Parameters of a packed function of microTVM."""
_METADATA_VERSION = 1


def has_module(program: CProgram) -> bool:
    """Return whether a program is found by name: its graph, or its function in a system library."""
    return program.is_graph or program.config.runtime.system_lib


def listed_functions(prefix: str, packed: str) -> dict[str, str]:
    """Return what the module of a model with a packed function lists: names and C names.

    Besides its own, those by which microTVM's executor calls it, and that of its description.
    """
    return {
        f"{prefix}_run": packed,
        packed: packed,
        f"{prefix}___tvm_main__": packed,
        "get_c_metadata": _metadata_name(prefix),
        _metadata_name(prefix): _metadata_name(prefix),
    }


def metadata_function(model: ModelInfo, prefix: str) -> FunctionText:
    """Return `get_c_metadata`: the packed function that gives the description of the tensors."""
    comment = "The description of the model, for TVMAotExecutor_Create(): a struct TVMMetadata."
    table, inputs = tensor_table_name(model, prefix), len(model.inputs)
    outputs = f"&{table}[{inputs}]" if model.outputs else "NULL"
    tables = f"{table if inputs else 'NULL'}, {inputs}, {outputs}, {len(model.outputs)}"
    pools = "NULL, 0, NULL, 0"
    body = [
        "static const struct TVMMetadata metadata = {",
        f"    {_METADATA_VERSION}, {tables}, {pools}, {c_string(prefix)},",
        "};",
        "(void)args;",
        "(void)type_codes;",
        "(void)resource_handle;",
        "if (num_args != 0 || out_value == NULL || out_type_code == NULL) {",
        "    return (int)kTvmErrorFunctionCallNumArguments;",
        "}",
        "/* Handles have no const. */",
        "out_value->v_handle = (void *)(uintptr_t)&metadata;",
        "*out_type_code = kTVMOpaqueHandle;",
        "return 0;",
    ]
    return c_function(f"int {_metadata_name(prefix)}", PACKED_PARAMETERS, body, [comment])


def _metadata_name(prefix: str) -> str:
    return f"{prefix}_get_c_metadata"


def tensor_table_name(model: ModelInfo, prefix: str) -> str:
    """Name the array that `tensor_table` defines; NULL for a model without tensors."""
    return f"{prefix}_tensors" if model.ports else "NULL"


def tensor_table(model: ModelInfo, prefix: str) -> list[str]:
    """Print an array of struct TVMTensorInfo: the inputs, then the outputs."""
    lines, rows = [], []
    for number, port in enumerate(model.ports):
        rank, shape = len(port.type.shape), "NULL"
        if rank:
            shape = f"{prefix}_shape_{number}"
            extents = ", ".join(map(str, port.type.shape))
            lines.append(f"static const int64_t {shape}[] = {{{extents}}};")
        info = f"{c_string(port.name)}, {shape}, {rank}, {dlpack_dtype(port.type.dtype)}"
        rows.append(f"    {{{info}}},")
    if rows:
        name = tensor_table_name(model, prefix)
        lines += [f"static const struct TVMTensorInfo {name}[] = {{", *rows, "};"]
    return lines


def module_function(
    program: CProgram, model: ModelInfo, prefix: str, functions: Mapping[str, str]
) -> FunctionText:
    """Return `tvmgen_<mod>_module`: the constant description of the program.

    Args:
        program: what is described.
        model: its tensors.
        prefix: of microTVM's names.
        functions: packed functions that it lists: names and C names.

    Raises:
        UsageError: it is a graph that uses devices, for which microTVM's executor has no place.
    """
    if program.is_graph and program.devices:
        raise UsageError(
            f"the graph uses the device '{program.devices[0].name}', but microTVM's graph "
            "executor does not support devices",
            where="compatibility",
            fix="use executor 'aot'",
        )
    comment = "The module of functions by name: TVMModCreateFromCModule() makes a handle of it."
    head, tables = f"const TVMModule *{prefix}_module", _tables(program, model, functions)
    return c_function(head, (), list(tables), [comment])


def _tables(program: CProgram, model: ModelInfo, functions: Mapping[str, str]) -> Iterator[str]:
    if functions:
        yield "static const TVMBackendPackedCFunc functions[] = {"
        yield from (f"    {function}," for function in functions.values())
        yield "};"
    table = "functions" if functions else "NULL"
    entries = [f"\\{len(functions):03o}\\000", *(f"{name}\\000" for name in functions)]
    yield "static const char names[] ="
    yield from (f'        "{text}"{";" * (text is entries[-1])}' for text in entries)
    yield f"static const TVMFuncRegistry registry = {{names, {table}}};"
    if program.is_graph:
        yield from graph_tables(program, model)
    yield f"static const TVMModule module = {{&registry, {'&graph' * program.is_graph or 'NULL'}}};"
    yield "return &module;"
