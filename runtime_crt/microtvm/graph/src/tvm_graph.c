/* tvm_graph.c: microTVM's graph executor over the runtime's. */
#include <string.h>

#include "microtir/graph.h"
#include "microtir/status.h"
#include "microtir/tensor.h"
#include "tvm/runtime/crt/executor_module.h"
#include "tvm/runtime/crt/graph_executor.h"
#include "tvm/runtime/crt/packed_arguments.h"

/* What every part of the block of memory is aligned to: the strictest type, and most vectors. */
#define ALIGNMENT 16u

struct TVMGraphExecutor {
    struct microtir_graph_executor executor;
    const struct tvm_graph_model *model;
    DLDevice device;
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
    bytes += aligned((port_count(graph) + graph->pool_count) * sizeof(void *), ALIGNMENT);
    for (uint32_t i = 0; i < port_count(graph); i++) {
        const uint64_t alignment = larger(graph->ports[i].alignment, ALIGNMENT);
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

/* Hands the parts of a block out; the setters of the runtime would only ask for views of them. */
static void fill(struct TVMGraphExecutor *made, const struct microtir_graph *graph, uint8_t *place)
{
    const uint64_t pointer = sizeof(void *);
    const void **const inputs = taken(&place, graph->input_count * pointer, ALIGNMENT);
    void **const outputs = taken(&place, graph->output_count * pointer, pointer);
    uint8_t **const pools = taken(&place, graph->pool_count * pointer, pointer);
    (void)microtir_graph_init(&made->executor, graph, inputs, outputs, pools);
    for (uint32_t i = 0; i < port_count(graph); i++) {
        const struct microtir_tensor_type *const type = &graph->ports[i];
        void *const data = taken(&place, tensor_bytes(type), larger(type->alignment, ALIGNMENT));
        (void)memset(data, 0, (size_t)tensor_bytes(type));
        if (i < graph->input_count) {
            inputs[i] = data;
        } else {
            outputs[i - graph->input_count] = data;
        }
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

const struct microtir_tensor_type *tvm_graph_port(TVMGraphExecutor *executor, int number,
                                                  void **data)
{
    const struct microtir_graph *const graph = executor->executor.graph;
    const int inputs = (int)graph->input_count;
    *data = number < inputs ? (void *)(uintptr_t)executor->executor.inputs[number]
                            : executor->executor.outputs[number - inputs];
    return &graph->ports[number];
}

/* Copies between a tensor of the application and `data`, of the type of a port. */
static int32_t copied(const struct microtir_tensor_type *type, void *data, const DLTensor *given,
                      int is_input)
{
    int64_t shape[MICROTIR_MAX_RANK];
    struct microtir_tensor own;
    struct microtir_tensor other;
    int32_t status = tvm_tensor_view(given, &other);
    if (status != MICROTIR_OK) {
        return status;
    }
    if (type->rank > MICROTIR_MAX_RANK) {
        return MICROTIR_ERROR_TENSOR_SHAPE;
    }
    for (int32_t i = 0; i < type->rank; i++) {
        shape[i] = type->shape[i];
    }
    status = microtir_tensor_view(&own, data, type->dtype, type->rank, shape);
    if (status != MICROTIR_OK) {
        return status;
    }
    return is_input != 0 ? microtir_tensor_copy(&other, &own) : microtir_tensor_copy(&own, &other);
}

void TVMGraphExecutor_SetInput(TVMGraphExecutor *executor, const char *name, DLTensor *data_in)
{
    const struct microtir_graph *const graph = executor->executor.graph;
    const int index = TVMGraphExecutor_GetInputIndex(executor, name);
    if (index < 0) {
        TVMPlatformAbort(kTvmErrorExecutorModuleNoSuchInput);
    }
    void *const data = (void *)(uintptr_t)executor->executor.inputs[index];
    if (copied(&graph->ports[index], data, data_in, 1) != MICROTIR_OK) {
        TVMPlatformAbort(kTvmErrorFunctionCallInvalidArg);
    }
}

int TVMGraphExecutor_GetOutput(TVMGraphExecutor *executor, const int32_t index, DLTensor *out)
{
    const struct microtir_graph *const graph = executor->executor.graph;
    if (index < 0 || index >= (int32_t)graph->output_count) {
        return (int)kTvmErrorFunctionCallInvalidArg;
    }
    const struct microtir_tensor_type *const type = &graph->ports[graph->input_count + index];
    const int32_t status = copied(type, executor->executor.outputs[index], out, 0);
    return (int)(status == MICROTIR_OK ? kTvmErrorNoError : kTvmErrorFunctionCallInvalidArg);
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
    }
    if ((uintptr_t)param_blob % alignment != 0u) {
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

void TVMGraphExecutor_Run(TVMGraphExecutor *executor)
{
    if (microtir_graph_run(&executor->executor) != MICROTIR_OK) {
        TVMPlatformAbort(kTvmErrorPlatformCheckFailure);
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
