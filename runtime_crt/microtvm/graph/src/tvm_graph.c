/* tvm_graph.c: microTVM's graph executor over the runtime's. */
#include <string.h>

#include "microtir/graph.h"
#include "microtir/status.h"
#include "tvm/runtime/crt/executor_module.h"
#include "tvm/runtime/crt/graph_executor.h"
#include "tvm/runtime/crt/packed_arguments.h"

/* What every part of the block of memory is aligned to: the strictest type, and most vectors. */
#define ALIGNMENT 16u

struct TVMGraphExecutor {
    struct microtir_graph_executor executor;
    const struct tvm_graph_model *model;
    DLDevice device;
    DLTensor *tensors; /* the inputs, then the outputs; applications may set their data */
    void **own;        /* memory of the executor for each of them */
    void *copied_parameters; /* a block of its own, or NULL */
};

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

/* Bytes of the block: the executor, its pointers, the tensors and the pools of the workspace. */
static uint64_t block_bytes(const struct microtir_graph *graph)
{
    uint64_t bytes = ALIGNMENT + aligned(sizeof(struct TVMGraphExecutor), ALIGNMENT);
    bytes += aligned((2u * port_count(graph) + graph->pool_count) * sizeof(void *), ALIGNMENT);
    bytes += aligned(port_count(graph) * sizeof(DLTensor), ALIGNMENT);
    for (uint32_t i = 0; i < port_count(graph); i++) {
        const uint64_t alignment = larger(graph->ports[i].alignment, ALIGNMENT);
        bytes += aligned((uint64_t)graph->ports[i].rank * sizeof(int64_t), ALIGNMENT);
        bytes += aligned(tensor_bytes(&graph->ports[i]), ALIGNMENT) + alignment;
    }
    for (uint32_t i = 0; i < graph->pool_count; i++) {
        const struct microtir_graph_pool *const pool = &graph->pools[i];
        bytes += aligned(pool->bytes, ALIGNMENT) + larger(pool->alignment, ALIGNMENT);
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

/* Makes the tensor of a port, with zeros in memory of the executor. */
static void make_tensor(DLTensor *tensor, const struct microtir_tensor_type *type, uint8_t **place)
{
    (void)memset(tensor, 0, sizeof *tensor);
    tensor->device.device_type = kDLCPU;
    tensor->ndim = type->rank;
    tensor->dtype.code = code_of(type->dtype.element);
    tensor->dtype.bits = type->dtype.bits;
    tensor->dtype.lanes = 1;
    tensor->shape = taken(place, (uint64_t)type->rank * sizeof(int64_t), ALIGNMENT);
    for (int32_t i = 0; i < type->rank; i++) {
        tensor->shape[i] = type->shape[i];
    }
    tensor->data = taken(place, tensor_bytes(type), larger(type->alignment, ALIGNMENT));
    (void)memset(tensor->data, 0, (size_t)tensor_bytes(type));
}

/* Hands the parts of a block out; the setters of the runtime would only ask for views of them. */
static void fill(struct TVMGraphExecutor *made, const struct microtir_graph *graph, uint8_t *place)
{
    const uint64_t pointer = sizeof(void *);
    const void **const inputs = taken(&place, graph->input_count * pointer, ALIGNMENT);
    void **const outputs = taken(&place, graph->output_count * pointer, pointer);
    uint8_t **const pools = taken(&place, graph->pool_count * pointer, pointer);
    made->own = taken(&place, port_count(graph) * pointer, pointer);
    made->tensors = taken(&place, port_count(graph) * sizeof(DLTensor), ALIGNMENT);
    (void)microtir_graph_init(&made->executor, graph, inputs, outputs, pools);
    for (uint32_t i = 0; i < port_count(graph); i++) {
        make_tensor(&made->tensors[i], &graph->ports[i], &place);
        made->own[i] = made->tensors[i].data;
    }
    for (uint32_t i = 0; i < graph->pool_count; i++) {
        if (pools[i] == NULL) {
            const uint64_t alignment = larger(graph->pools[i].alignment, ALIGNMENT);
            pools[i] = taken(&place, graph->pools[i].bytes, alignment);
        }
    }
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
    const uint64_t bytes = block_bytes(graph);
    if (bytes > SIZE_MAX) {
        return (int)kTvmErrorPlatformNoMemory;
    }
    const tvm_crt_error_t code = TVMPlatformMemoryAllocate((size_t)bytes, devices[0], &block);
    if (code != kTvmErrorNoError) {
        return (int)code;
    }
    TVMGraphExecutor *const made = block;
    made->model = module->model;
    made->device = devices[0];
    made->copied_parameters = NULL;
    fill(made, graph, (uint8_t *)block + sizeof *made);
    *executor = made;
    return (int)kTvmErrorNoError;
}

int TVMGraphExecutor_GetInputIndex(TVMGraphExecutor *executor, const char *name)
{
    for (int i = 0; i < (int)executor->executor.graph->input_count; i++) {
        if (strcmp(executor->model->input_names[i], name) == 0) {
            return i;
        }
    }
    return -1;
}

int TVMGraphExecutor_GetNumInputs(TVMGraphExecutor *executor)
{
    return (int)executor->executor.graph->input_count;
}

int TVMGraphExecutor_GetNumOutputs(TVMGraphExecutor *executor)
{
    return (int)executor->executor.graph->output_count;
}

DLTensor *tvm_graph_tensor(TVMGraphExecutor *executor, int number)
{
    return &executor->tensors[number];
}

static int32_t check(const DLTensor *given, const DLTensor *own)
{
    const struct TVMTensorInfo info = {NULL, own->shape, own->ndim, own->dtype};
    return tvm_tensor_check(given, &info);
}

int tvm_graph_set_input(TVMGraphExecutor *executor, int index, const DLTensor *given)
{
    if (check(given, &executor->tensors[index]) != MICROTIR_OK) {
        return (int)kTvmErrorFunctionCallInvalidArg;
    }
    executor->tensors[index].data = given->data;
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
    const DLTensor *const own = &executor->tensors[number];
    if (check(out, own) != MICROTIR_OK) {
        return (int)kTvmErrorFunctionCallInvalidArg;
    }
    if (out->data != own->data) {
        (void)memcpy(out->data, own->data, (size_t)tensor_bytes(&graph->ports[number]));
    }
    return (int)kTvmErrorNoError;
}

/* What lies in an archive beside a model whose weights are linked: an empty list of arrays. */
static int is_empty_list(const char *blob, uint32_t bytes)
{
    static const uint8_t start[] = {0xb7, 0x9c, 0x04, 0x05, 0x4f, 0x8d, 0xe5, 0xf7};
    if (bytes == 0u) {
        return 1;
    }
    if (bytes != 32u || memcmp(blob, start, sizeof start) != 0) {
        return 0;
    }
    for (uint32_t i = sizeof start; i < bytes; i++) {
        if (blob[i] != '\0') {
            return 0;
        }
    }
    return 1;
}

int TVMGraphExecutor_LoadParams(TVMGraphExecutor *executor, const char *param_blob,
                                const uint32_t param_size)
{
    const uint32_t alignment = executor->executor.graph->parameter_alignment;
    const void *file = param_blob;
    if (alignment == 0u) {
        const int is_fine = is_empty_list(param_blob, param_size);
        return (int)(is_fine != 0 ? kTvmErrorNoError : kTvmErrorFunctionCallInvalidArg);
    }
    if (executor->copied_parameters != NULL) {
        const tvm_crt_error_t code =
                TVMPlatformMemoryFree(executor->copied_parameters, executor->device);
        if (code != kTvmErrorNoError) {
            return (int)code;
        }
        executor->copied_parameters = NULL;
        executor->executor.parameters = NULL;
    }
    if (!TVM_CRT_PARAMETERS_IN_PLACE || (uintptr_t)param_blob % alignment != 0u) {
        const size_t room = (size_t)((uint64_t)param_size + alignment);
        if (room < param_size) {
            return (int)kTvmErrorPlatformNoMemory;
        }
        const tvm_crt_error_t code =
                TVMPlatformMemoryAllocate(room, executor->device, &executor->copied_parameters);
        if (code != kTvmErrorNoError) {
            return (int)code;
        }
        uint8_t *place = executor->copied_parameters;
        file = memcpy(taken(&place, param_size, alignment), param_blob, (size_t)param_size);
    }
    const int32_t status = microtir_graph_set_parameters(&executor->executor, file, param_size);
    return (int)(status == MICROTIR_OK ? kTvmErrorNoError : kTvmErrorFunctionCallInvalidArg);
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
    void *const data = executor->tensors[number].data;
    if ((uintptr_t)data % graph->ports[number].alignment != 0u) {
        return executor->own[number];
    }
    for (uint32_t i = begin; i < end; i++) {
        const void *const other = i < graph->input_count
                ? executor->tensors[i].data
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
        if (executor->tensors[i].data == NULL) {
            TVMPlatformAbort(kTvmErrorFunctionCallInvalidArg);
        }
    }
    for (uint32_t i = inputs; i < ports; i++) {
        executor->executor.outputs[i - inputs] = place_of(executor, i, 0, inputs);
    }
    for (uint32_t i = 0; i < inputs; i++) {
        void *const place = place_of(executor, i, inputs, ports);
        if (place != executor->tensors[i].data) {
            (void)memcpy(place, executor->tensors[i].data, port_bytes(executor, i));
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
        if (made != executor->tensors[i].data) {
            (void)memcpy(executor->tensors[i].data, made, port_bytes(executor, i));
        }
    }
}

int TVMGraphExecutor_Release(TVMGraphExecutor **executor)
{
    TVMGraphExecutor *const made = *executor;
    const DLDevice device = made->device;
    if (made->copied_parameters != NULL) {
        const tvm_crt_error_t code = TVMPlatformMemoryFree(made->copied_parameters, device);
        if (code != kTvmErrorNoError) {
            return (int)code;
        }
    }
    *executor = NULL;
    return (int)TVMPlatformMemoryFree(made, device);
}
