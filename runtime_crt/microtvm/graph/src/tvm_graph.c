/* tvm_graph.c: microTVM's graph executor over the runtime's. */
#include <string.h>

#include "microtir/graph.h"
#include "microtir/status.h"
#include "tvm/runtime/crt/executor_module.h"
#include "tvm/runtime/crt/internal/graph_executor/graph_executor.h"
#include "tvm/runtime/crt/internal/graph_executor/load_params.h"
#include "tvm/runtime/crt/packed_arguments.h"

/* What every part of the block of memory is aligned to: the strictest type, and most vectors. */
#define ALIGNMENT 16u

static uint64_t aligned(uint64_t bytes, uint64_t alignment)
{
    return (bytes + alignment - 1u) / alignment * alignment;
}

static uint64_t tensor_bytes(const struct microtir_tensor_type *type)
{
    uint64_t bytes = (uint64_t)type->dtype.bits / 8u;
    for (int32_t i = 0; i < type->rank; i++) {
        bytes *= (uint64_t)type->shape[i];
    }
    return bytes;
}

static uint64_t larger(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

static uint32_t port_count(const struct microtir_graph *graph)
{
    return (uint32_t)graph->input_count + graph->output_count;
}

static uint32_t entry_count(const struct tvm_graph_nodes *nodes)
{
    return nodes->node_row_ptr[nodes->node_count];
}

/* Bytes of the block: the executor, its pointers, the tensors, the pools of the workspace and what
 * outlives a run. */
static uint64_t block_bytes(const struct microtir_graph *graph,
                            const struct tvm_graph_nodes *nodes)
{
    const uint64_t entries = entry_count(nodes);
    uint64_t bytes = ALIGNMENT + aligned(sizeof(struct TVMGraphExecutor), ALIGNMENT);
    bytes += aligned((2u * port_count(graph) + graph->pool_count) * sizeof(void *), ALIGNMENT);
    bytes += aligned(entries * sizeof(TVMNDArray), ALIGNMENT);
    bytes += aligned(entries * sizeof(int64_t), ALIGNMENT); /* extents of those in the workspace */
    for (uint32_t i = 0; i < port_count(graph); i++) {
        const uint64_t alignment = larger(graph->ports[i].alignment, ALIGNMENT);
        bytes += aligned((uint64_t)graph->ports[i].rank * sizeof(int64_t), ALIGNMENT);
        bytes += aligned(tensor_bytes(&graph->ports[i]), ALIGNMENT) + alignment;
    }
    for (uint32_t i = 0; i < graph->pool_count; i++) {
        const struct microtir_graph_pool *const pool = &graph->pools[i];
        bytes += aligned(pool->bytes, ALIGNMENT) + larger(pool->alignment, ALIGNMENT);
    }
    if (graph->state != NULL) {
        bytes += aligned(graph->state->bytes, ALIGNMENT);
        bytes += larger(graph->state->alignment, ALIGNMENT);
    }
    return bytes;
}

/* Takes `bytes` bytes of a block, from *place on. */
static void *taken(uint8_t **place, uint64_t bytes, uint64_t alignment)
{
    const uintptr_t rest = (uintptr_t)*place % (uintptr_t)alignment;
    uint8_t *const start = *place + (rest == 0u ? 0u : (uintptr_t)alignment - rest);
    *place = start + (size_t)bytes;
    return start;
}

static uint8_t code_of(uint8_t element)
{
    switch (element) {
    case MICROTIR_ELEMENT_SIGNED:
        return (uint8_t)kDLInt;
    case MICROTIR_ELEMENT_FLOAT:
        return (uint8_t)kDLFloat;
    case MICROTIR_ELEMENT_BOOL:
        return (uint8_t)kDLBool;
    default:
        return (uint8_t)kDLUInt;
    }
}

static void describe(DLTensor *tensor, const struct microtir_dtype *dtype, int32_t rank)
{
    (void)memset(tensor, 0, sizeof *tensor);
    tensor->device.device_type = kDLCPU;
    tensor->ndim = rank;
    tensor->dtype.code = code_of(dtype->element);
    tensor->dtype.bits = dtype->bits;
    tensor->dtype.lanes = 1;
}

/* Makes the tensor of a port, with zeros in memory of the executor. */
static void make_tensor(DLTensor *tensor, const struct microtir_tensor_type *type, uint8_t **place)
{
    describe(tensor, &type->dtype, type->rank);
    tensor->shape = taken(place, (uint64_t)type->rank * sizeof(int64_t), ALIGNMENT);
    for (int32_t i = 0; i < type->rank; i++) {
        tensor->shape[i] = type->shape[i];
    }
    tensor->data = taken(place, tensor_bytes(type), larger(type->alignment, ALIGNMENT));
    (void)memset(tensor->data, 0, (size_t)tensor_bytes(type));
}

/* The tensor of an input or output, numbered in this order. */
static DLTensor *tensor_of(const TVMGraphExecutor *executor, uint32_t number)
{
    const uint32_t inputs = executor->input_nodes_count;
    uint32_t entry;
    if (number < inputs) {
        entry = executor->node_row_ptr[executor->input_nodes[number]];
    } else {
        const TVMGraphExecutorNodeEntry *const head = &executor->outputs[number - inputs];
        entry = executor->node_row_ptr[head->node_id] + head->index;
    }
    return &executor->data_entry[entry].dl_tensor;
}

/* Takes over what generated code says of the nodes; microTVM's members have no const. */
static void take_nodes(TVMGraphExecutor *made, const struct microtir_graph *graph,
                       const struct tvm_graph_nodes *nodes)
{
    made->nodes = (TVMGraphExecutorNode *)(uintptr_t)nodes->nodes;
    made->nodes_count = nodes->node_count;
    made->input_nodes = (uint32_t *)(uintptr_t)nodes->input_nodes;
    made->input_nodes_count = graph->input_count;
    made->node_row_ptr = (uint32_t *)(uintptr_t)nodes->node_row_ptr;
    made->node_row_ptr_count = nodes->node_count + 1u;
    made->outputs = (TVMGraphExecutorNodeEntry *)(uintptr_t)nodes->outputs;
    made->outputs_count = graph->output_count;
    made->devices_count = 1;
    made->data_entry_count = entry_count(nodes);
}

/* Makes the tensors of entries that are neither an input nor an output: their places are known. */
static void describe_entries(TVMGraphExecutor *made, const uint16_t *tensors, int64_t *extents)
{
    const struct microtir_graph *const graph = made->executor.graph;
    for (uint32_t i = 0; i < made->data_entry_count; i++) {
        DLTensor *const entry = &made->data_entry[i].dl_tensor;
        if (entry->data == NULL) { /* not one of a port */
            const struct microtir_graph_tensor *const own = &graph->tensors[tensors[i]];
            describe(entry, &own->dtype, 1);
            extents[i] = (int64_t)(own->bytes / (own->dtype.bits / 8u));
            entry->shape = &extents[i];
            entry->data = microtir_graph_write(&made->executor, tensors[i]);
        }
    }
}

/* Hands the parts of a block out; the setters of the runtime would only ask for views of them. */
static void fill(struct TVMGraphExecutor *made, const struct microtir_graph *graph,
                 const struct tvm_graph_nodes *nodes, uint8_t *place)
{
    const uint64_t pointer = sizeof(void *);
    const void **const inputs = taken(&place, graph->input_count * pointer, ALIGNMENT);
    void **const outputs = taken(&place, graph->output_count * pointer, pointer);
    uint8_t **const pools = taken(&place, graph->pool_count * pointer, pointer);
    made->own = taken(&place, port_count(graph) * pointer, pointer);
    take_nodes(made, graph, nodes);
    const uint64_t entries = made->data_entry_count;
    made->data_entry = taken(&place, entries * sizeof(TVMNDArray), ALIGNMENT);
    (void)memset(made->data_entry, 0, (size_t)entries * sizeof(TVMNDArray));
    int64_t *const extents = taken(&place, entries * sizeof(int64_t), ALIGNMENT);
    (void)microtir_graph_init(&made->executor, graph, inputs, outputs, pools);
    for (uint32_t i = 0; i < port_count(graph); i++) {
        make_tensor(tensor_of(made, i), &graph->ports[i], &place);
        made->own[i] = tensor_of(made, i)->data;
    }
    for (uint32_t i = 0; i < graph->pool_count; i++) {
        if (pools[i] == NULL) {
            const uint64_t alignment = larger(graph->pools[i].alignment, ALIGNMENT);
            pools[i] = taken(&place, graph->pools[i].bytes, alignment);
        }
    }
    if (graph->state != NULL) {
        const uint64_t alignment = larger(graph->state->alignment, ALIGNMENT);
        made->executor.state = taken(&place, graph->state->bytes, alignment);
        (void)graph->state->init(made->executor.state); /* it is aligned: all that is checked */
    }
    for (uint32_t i = 0; i < port_count(graph); i++) { /* where nodes that write a part of it go */
        if (i < graph->input_count) {
            inputs[i] = made->own[i];
        } else {
            outputs[i - graph->input_count] = made->own[i];
        }
    }
    describe_entries(made, nodes->tensors, extents);
}

int TVMGraphExecutor_Create(const char *sym_json, TVMModuleHandle module_handle,
                            const DLDevice *devices, TVMGraphExecutor **executor)
{
    const TVMModule *const module = module_handle;
    void *block = NULL;
    (void)sym_json;
    if (executor == NULL || devices == NULL || module == NULL || module->model == NULL) {
        return (int)kTvmErrorExecutorModuleBadContext;
    }
    const struct microtir_graph *const graph = module->model->graph();
    const struct tvm_graph_nodes *const nodes = module->model->nodes;
    const uint64_t bytes = block_bytes(graph, nodes);
    if (bytes > SIZE_MAX) {
        return (int)kTvmErrorPlatformNoMemory;
    }
    const tvm_crt_error_t code = TVMPlatformMemoryAllocate((size_t)bytes, devices[0], &block);
    if (code != kTvmErrorNoError) {
        return (int)code;
    }
    TVMGraphExecutor *const made = block;
    made->model = module->model;
    made->module_handle = module_handle;
    made->devices[0] = devices[0];
    made->copied_parameters = NULL;
    fill(made, graph, nodes, (uint8_t *)block + sizeof *made);
    *executor = made;
    return (int)kTvmErrorNoError;
}

int TVMGraphExecutor_Reset(TVMGraphExecutor *executor)
{
    const struct microtir_graph_state *const kept = executor->executor.graph->state;
    if (kept != NULL && kept->init(executor->executor.state) != MICROTIR_OK) {
        return (int)kTvmErrorPlatformCheckFailure;
    }
    return (int)kTvmErrorNoError;
}

int TVMGraphExecutor_GetInputIndex(TVMGraphExecutor *executor, const char *name)
{
    for (uint32_t i = 0; i < executor->input_nodes_count; i++) {
        if (strcmp(executor->nodes[executor->input_nodes[i]].name, name) == 0) {
            return (int)i;
        }
    }
    return -1;
}

int TVMGraphExecutor_GetNumInputs(TVMGraphExecutor *executor)
{
    return (int)executor->input_nodes_count;
}

int TVMGraphExecutor_GetNumOutputs(TVMGraphExecutor *executor)
{
    return (int)executor->outputs_count;
}

uint32_t TVMGraphExecutor_GetEntryId(TVMGraphExecutor *executor, uint32_t nid, uint32_t index)
{
    return executor->node_row_ptr[nid] + index;
}

DLTensor *tvm_graph_tensor(TVMGraphExecutor *executor, int number)
{
    return tensor_of(executor, (uint32_t)number);
}

static int32_t check(const DLTensor *given, const DLTensor *own)
{
    const struct TVMTensorInfo info = {NULL, own->shape, own->ndim, own->dtype};
    return tvm_tensor_check(given, &info);
}

int tvm_graph_set_input(TVMGraphExecutor *executor, int index, const DLTensor *given)
{
    DLTensor *const own = tensor_of(executor, (uint32_t)index);
    if (check(given, own) != MICROTIR_OK) {
        return (int)kTvmErrorFunctionCallInvalidArg;
    }
    own->data = given->data;
    return (int)kTvmErrorNoError;
}

void TVMGraphExecutor_SetInput(TVMGraphExecutor *executor, const char *name, DLTensor *data_in)
{
    const int index = TVMGraphExecutor_GetInputIndex(executor, name);
    if (index < 0) {
        TVMPlatformAbort(kTvmErrorExecutorModuleNoSuchInput);
    }
    if (tvm_graph_set_input(executor, index, data_in) != 0) {
        TVMPlatformAbort(kTvmErrorFunctionCallInvalidArg);
    }
}

int TVMGraphExecutor_GetOutput(TVMGraphExecutor *executor, const int32_t index, DLTensor *out)
{
    const struct microtir_graph *const graph = executor->executor.graph;
    if (index < 0 || index >= (int32_t)graph->output_count) {
        return (int)kTvmErrorFunctionCallInvalidArg;
    }
    const uint32_t number = graph->input_count + (uint32_t)index;
    const DLTensor *const own = tensor_of(executor, number);
    if (check(out, own) != MICROTIR_OK) {
        return (int)kTvmErrorFunctionCallInvalidArg;
    }
    if (out->data != own->data) {
        (void)memcpy(out->data, own->data, (size_t)tensor_bytes(&graph->ports[number]));
    }
    return (int)kTvmErrorNoError;
}

/* Gives the copy of parameters back, if there is one. */
static tvm_crt_error_t drop_parameters(TVMGraphExecutor *executor)
{
    if (executor->copied_parameters != NULL) {
        const tvm_crt_error_t code =
                TVMPlatformMemoryFree(executor->copied_parameters, executor->devices[0]);
        if (code != kTvmErrorNoError) {
            return code;
        }
        executor->copied_parameters = NULL;
        executor->executor.parameters = NULL;
    }
    return kTvmErrorNoError;
}

/* Takes memory for a copy of parameters, of so many bytes at an aligned place. */
static tvm_crt_error_t make_room(TVMGraphExecutor *executor, uint32_t bytes, uint8_t **place)
{
    const uint32_t alignment = executor->executor.graph->parameter_alignment;
    const size_t room = (size_t)((uint64_t)bytes + alignment);
    if (room < bytes) {
        return kTvmErrorPlatformNoMemory;
    }
    const tvm_crt_error_t code =
            TVMPlatformMemoryAllocate(room, executor->devices[0], &executor->copied_parameters);
    if (code == kTvmErrorNoError) {
        uint8_t *start = executor->copied_parameters;
        *place = taken(&start, bytes, alignment);
    }
    return code;
}

int TVMGraphExecutor_LoadParams(TVMGraphExecutor *executor, const char *param_blob,
                                const uint32_t param_size)
{
    const struct microtir_graph *const graph = executor->executor.graph;
    const struct tvm_params list = {(const uint8_t *)param_blob, (size_t)param_size};
    const int is_list = tvm_params_is_list(&list);
    const void *file = param_blob;
    if (graph->parameter_alignment == 0u) { /* what lies beside a model whose weights are linked */
        const int is_fine = param_size == 0u || (is_list && tvm_params_count(&list) == 0);
        return (int)(is_fine ? kTvmErrorNoError : kTvmErrorFunctionCallInvalidArg);
    }
    tvm_crt_error_t code = drop_parameters(executor);
    if (code == kTvmErrorNoError
        && (is_list || !TVM_CRT_PARAMETERS_IN_PLACE
            || (uintptr_t)param_blob % graph->parameter_alignment != 0u)) {
        uint8_t *place = NULL;
        const uint32_t bytes = is_list ? graph->parameter_bytes : param_size;
        code = make_room(executor, bytes, &place);
        if (code == kTvmErrorNoError && is_list) {
            code = tvm_params_take(&list, executor->model, place);
        } else if (code == kTvmErrorNoError) {
            (void)memcpy(place, param_blob, (size_t)param_size);
        }
        file = place;
    }
    if (code != kTvmErrorNoError) {
        return (int)code;
    }
    if (is_list) { /* names and types were compared */
        executor->executor.parameters = file;
        return (int)kTvmErrorNoError;
    }
    const int32_t status = microtir_graph_set_parameters(&executor->executor, file, param_size);
    return (int)(status == MICROTIR_OK ? kTvmErrorNoError : kTvmErrorFunctionCallInvalidArg);
}

int TVMGraphExecutor_ShareParams(TVMGraphExecutor *executor, const TVMGraphExecutor *other)
{
    if (executor == NULL || other == NULL || executor == other
        || executor->executor.graph != other->executor.graph
        || other->executor.parameters == NULL) {
        return (int)kTvmErrorFunctionCallInvalidArg;
    }
    const tvm_crt_error_t code = drop_parameters(executor);
    if (code == kTvmErrorNoError) {
        executor->executor.parameters = other->executor.parameters;
    }
    return (int)code;
}

/* Whether the memory of two ports has a byte in common. */
static int is_shared(const struct microtir_graph *graph, uint32_t one, const void *at,
                     uint32_t other, const void *there)
{
    const uintptr_t first = (uintptr_t)at;
    const uintptr_t second = (uintptr_t)there;
    return first < second + (uintptr_t)tensor_bytes(&graph->ports[other])
        && second < first + (uintptr_t)tensor_bytes(&graph->ports[one]);
}

/* Where a run reads or writes a port: at the data of its tensor, or in memory of the executor where
 * kernels need more alignment than that has, or where it lies in one of the ports from `begin` to
 * `end`. Outputs are written before the last byte of an input is read, row by row: an input that was
 * an output would change under way. */
static void *place_of(const TVMGraphExecutor *executor, uint32_t number, uint32_t begin,
                      uint32_t end)
{
    const struct microtir_graph *const graph = executor->executor.graph;
    void *const data = tensor_of(executor, number)->data;
    if ((uintptr_t)data % graph->ports[number].alignment != 0u) {
        return executor->own[number];
    }
    for (uint32_t i = begin; i < end; i++) {
        const void *const other = i < graph->input_count
                ? tensor_of(executor, i)->data
                : executor->executor.outputs[i - graph->input_count];
        if (is_shared(graph, number, data, i, other)) {
            return executor->own[number];
        }
    }
    return data;
}

static size_t port_bytes(const TVMGraphExecutor *executor, uint32_t number)
{
    return (size_t)tensor_bytes(&executor->executor.graph->ports[number]);
}

/* Takes the tensors as they are now: an application refills the buffer of an input, or sets another
 * one. */
static void take_tensors(TVMGraphExecutor *executor)
{
    const uint32_t inputs = executor->executor.graph->input_count;
    const uint32_t ports = port_count(executor->executor.graph);
    for (uint32_t i = 0; i < ports; i++) {
        if (tensor_of(executor, i)->data == NULL) {
            TVMPlatformAbort(kTvmErrorFunctionCallInvalidArg);
        }
    }
    for (uint32_t i = inputs; i < ports; i++) {
        executor->executor.outputs[i - inputs] = place_of(executor, i, 0, inputs);
    }
    for (uint32_t i = 0; i < inputs; i++) {
        void *const place = place_of(executor, i, inputs, ports);
        if (place != tensor_of(executor, i)->data) {
            (void)memcpy(place, tensor_of(executor, i)->data, port_bytes(executor, i));
        }
        executor->executor.inputs[i] = place;
    }
}

void TVMGraphExecutor_Run(TVMGraphExecutor *executor)
{
    const uint32_t inputs = executor->executor.graph->input_count;
    take_tensors(executor);
    if (microtir_graph_run(&executor->executor) != MICROTIR_OK) {
        TVMPlatformAbort(kTvmErrorPlatformCheckFailure);
    }
    for (uint32_t i = inputs; i < port_count(executor->executor.graph); i++) {
        const void *const made = executor->executor.outputs[i - inputs];
        if (made != tensor_of(executor, i)->data) {
            (void)memcpy(tensor_of(executor, i)->data, made, port_bytes(executor, i));
        }
    }
}

int TVMGraphExecutor_Release(TVMGraphExecutor **executor)
{
    TVMGraphExecutor *const made = *executor;
    const DLDevice device = made->devices[0];
    const tvm_crt_error_t code = drop_parameters(made);
    if (code != kTvmErrorNoError) {
        return (int)code;
    }
    *executor = NULL;
    return (int)TVMPlatformMemoryFree(made, device);
}
