"""What of the C interface of TVM v0.18 is left out or spelt differently here, and why."""

from __future__ import annotations

from collections.abc import Mapping

_NEVER = "declared for TVM's runtime on a computer; microTVM's C runtime did not define it either"
_PARSER = "the text of the graph is not read: the table is part of the generated code"
_INSIDE = "inside of microTVM's page manager; microtir's manages its pages in another way"
_STACK = "inside of microTVM's stack of blocks; its tags are not in microtir's, which checks more"
_RETURN = "sets a value that no packed function of the C runtime reads"
_STORAGE = "the workspace is planned: no tensor has storage of its own"
_SERVER = "the header stops the compiler and says what to use: nothing answers TVM's protocol"

LEFT_OUT: Mapping[str, str] = {
    **dict.fromkeys(
        (
            *("TVMBackendGetFuncFromEnv", "TVMBackendRegisterEnvCAPI", "TVMBackendParallelBarrier"),
            *("TVMBackendRunOnce", "TVMModLoadFromFile", "TVMModImport", "TVMCbArgToReturn"),
            *("TVMFuncCreateFromCFunc", "TVMFuncListGlobalNames", "TVMFuncRemoveGlobal"),
            *("TVMArrayCopyFromBytes", "TVMArrayCopyToBytes", "TVMArrayCopyFromTo"),
            *("TVMArrayFromDLPack", "TVMArrayToDLPack", "TVMDLManagedTensorCallDeleter"),
            *("TVMStreamStreamSynchronize", "TVMObjectGetTypeIndex", "TVMObjectTypeKey2Index"),
            *("TVMObjectTypeIndex2Key", "TVMObjectRetain", "TVMObjectFree", "TVMObjectDerivedFrom"),
            *("g_fexecs", "g_fexecs_count", "vleak_size"),
        ),
        _NEVER,
    ),
    **dict.fromkeys(
        (
            *("TVMGraphExecutorGraphAttr", "TVMGraphExecutor_Load", "String2DLDataType"),
            *("JSONReader", "JSONReader_Create", "JSONReader_Release", "Seq"),
            *(f"JSON_READ_TYPE_{kind}{bits}" for kind in "US" for bits in (8, 16, 32)),
            *("JSON_READ_TYPE_F32", "JSON_READ_TYPE_F64", "JSON_READ_TYPE_GRAPH_EXECUTOR_NODE"),
            "JSON_READ_TYPE_GRAPH_EXECUTOR_NODE_ENTRY",
            "JSON_READ_TYPE_GRAPH_EXECUTOR_GRAPH_ATTR",
        ),
        _PARSER,
    ),
    **dict.fromkeys(
        (
            *("Page", "PageCreate", "PageTable", "PageEntry", "TLB", "IndexedEntry", "MultiMap"),
            "MemoryManager",
        ),
        _INSIDE,
    ),
    **dict.fromkeys(
        (
            *("StackMemoryManager_Allocate_Body", "StackMemoryManager_Free_Body"),
            *("STACK_ALLOCATOR_TAG", "STACK_ALLOCATOR_TAG_SIZE_BYTES"),
        ),
        _STACK,
    ),
    **dict.fromkeys(
        ("TVMGraphExecutorPoolEntry", "TVMGraphExecutorStorageEntry"),
        _STORAGE,
    ),
    **dict.fromkeys(
        (
            *("MicroTVMRpcServerInit", "MicroTVMRpcServerLoop"),
            *("microtvm_rpc_channel_write_t", "microtvm_rpc_server_t"),
        ),
        _SERVER,
    ),
    "TVMCFuncSetReturn": _RETURN,
    "TVMGraphExecutor_CreateTVMOp": "calls are functions of the table, not made at run time",
    "strcmp_cursor": "inside of microTVM's registry",
    "LOG": "a name that headers of platforms define; the macros that microTVM made of it are there",
    "CHECK_BINARY_OP": "what CHECK_EQ and the others were made of; these are there",
}
"""By name: the reason. Names of a header stand for their typedef and their members, too."""

_TEXTS = "texts lie in flash: an array in each node took some 400 bytes of RAM"
_LOADER = "without the functions that read it from text, and without what only these fill"

DIFFERENT: Mapping[str, tuple[object, str]] = {
    "TVMGraphExecutor_GetNumInputs": (
        "int (TVMGraphExecutor *)",
        "declared without parameters, and called with an executor, which C++ refuses",
    ),
    "TVMGraphExecutor_GetNumOutputs": ("int (TVMGraphExecutor *)", "the same"),
    "TVMOpParam": (
        [
            "func_name: char *",
            *(f"{name}: uint32_t" for name in ("num_inputs", "num_outputs", "flatten_data")),
        ],
        _TEXTS,
    ),
    "TVMGraphExecutorNodeEntry": (
        [f"{name}: uint32_t" for name in ("node_id", "index", "version")],
        _LOADER,
    ),
    "TVMGraphExecutorNode": (
        [
            *("op_type: char *", "name: char *", "param: TVMOpParam"),
            *("inputs: TVMGraphExecutorNodeEntry *", "inputs_count: size_t"),
        ],
        f"{_TEXTS}; {_LOADER}",
    ),
    "tvm_workspace_t": ("struct microtir_stack", _STACK),
    "TVMPackedFunc.name": (
        "char [TVM_CRT_MAX_STRLEN_FUNCTION_NAME]",
        "as long as names of functions are, not always 200 bytes",
    ),
}
"""By name of a function, typedef, struct or member: what it is here, and the reason."""

WITHOUT: Mapping[str, tuple[str, ...]] = {
    "TVMGraphExecutor": (
        *("attrs", "storage_pool", "storage_pool_count", "op_execs", "op_execs_count"),
    ),
}
"""Members of structs that are otherwise as they were: what is in them is part of the code."""
