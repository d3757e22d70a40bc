#include "microtir/graph.h"

#include <stddef.h>
#include <string.h>

#include "microtir/parameters.h"
#include "microtir/status.h"

int32_t microtir_graph_init(struct microtir_graph_executor *executor,
                            const struct microtir_graph *graph, const void **inputs,
                            void **outputs, uint8_t **pools)
{
    if (executor == NULL || graph == NULL || inputs == NULL || outputs == NULL || pools == NULL) {
        return MICROTIR_ERROR_NULL_POINTER;
    }
    for (uint16_t i = 0; i < graph->input_count; i++) {
        inputs[i] = NULL;
    }
    for (uint16_t i = 0; i < graph->output_count; i++) {
        outputs[i] = NULL;
    }
    for (uint16_t i = 0; i < graph->pool_count; i++) {
        pools[i] = graph->pools[i].memory;
    }
    executor->graph = graph;
    executor->inputs = inputs;
    executor->outputs = outputs;
    executor->pools = pools;
    executor->state = NULL;
    executor->parameters = NULL;
    executor->constants = NULL;
    executor->devices = NULL;
    return MICROTIR_OK;
}

/* Address of a tensor that is of the type of port `number`. */
static int32_t port_data(const struct microtir_graph *graph, uint32_t number,
                         const struct microtir_tensor *tensor, void **data)
{
    const union microtir_value args[] = {{.v_tensor = tensor}};
    const int32_t kinds[] = {MICROTIR_KIND_TENSOR};
    return microtir_tensor_argument(args, kinds, 0, &graph->ports[number], data);
}

int32_t microtir_graph_set_input(struct microtir_graph_executor *executor, int32_t index,
                                 const struct microtir_tensor *tensor)
{
    void *data = NULL;
    if (executor == NULL) {
        return MICROTIR_ERROR_NULL_POINTER;
    }
    if (index < 0 || index >= executor->graph->input_count) {
        return MICROTIR_ERROR_INDEX;
    }
    const int32_t status = port_data(executor->graph, (uint32_t)index, tensor, &data);
    if (status == MICROTIR_OK) {
        executor->inputs[index] = data;
    }
    return status;
}

int32_t microtir_graph_set_output(struct microtir_graph_executor *executor, int32_t index,
                                  const struct microtir_tensor *tensor)
{
    void *data = NULL;
    if (executor == NULL) {
        return MICROTIR_ERROR_NULL_POINTER;
    }
    if (index < 0 || index >= executor->graph->output_count) {
        return MICROTIR_ERROR_INDEX;
    }
    const uint32_t number = executor->graph->input_count + (uint32_t)index;
    const int32_t status = port_data(executor->graph, number, tensor, &data);
    if (status == MICROTIR_OK) {
        executor->outputs[index] = data;
    }
    return status;
}

int32_t microtir_graph_set_pool(struct microtir_graph_executor *executor, int32_t index,
                                void *memory, uint32_t bytes)
{
    if (executor == NULL || memory == NULL) {
        return MICROTIR_ERROR_NULL_POINTER;
    }
    if (index < 0 || index >= executor->graph->pool_count) {
        return MICROTIR_ERROR_INDEX;
    }
    const struct microtir_graph_pool *const pool = &executor->graph->pools[index];
    if (bytes < pool->bytes) {
        return MICROTIR_ERROR_WORKSPACE_SIZE;
    }
    if ((uintptr_t)memory % pool->alignment != 0u) {
        return MICROTIR_ERROR_MEMORY_LAYOUT;
    }
    executor->pools[index] = memory;
    return MICROTIR_OK;
}

/* Checks memory for the state of a model, whatever it holds. */
static int32_t check_graph_state(const struct microtir_graph_executor *executor,
                                 const void *state, uint32_t bytes)
{
    if (executor == NULL || state == NULL) {
        return MICROTIR_ERROR_NULL_POINTER;
    }
    const struct microtir_graph_state *const facts = executor->graph->state;
    if (facts == NULL || bytes != facts->bytes) {
        return MICROTIR_ERROR_STATE;
    }
    return (uintptr_t)state % facts->alignment != 0u ? MICROTIR_ERROR_MEMORY_LAYOUT : MICROTIR_OK;
}

int32_t microtir_graph_set_state(struct microtir_graph_executor *executor, void *state,
                                 uint32_t bytes)
{
    uint32_t identity = 0;
    const int32_t status = check_graph_state(executor, state, bytes);
    if (status != MICROTIR_OK) {
        return status;
    }
    (void)memcpy(&identity, state, sizeof identity);
    if (identity != executor->graph->state->identity) {
        return MICROTIR_ERROR_STATE;
    }
    executor->state = state;
    return MICROTIR_OK;
}

int32_t microtir_graph_reset_state(struct microtir_graph_executor *executor, void *state,
                                   uint32_t bytes)
{
    int32_t status = check_graph_state(executor, state, bytes);
    if (status == MICROTIR_OK) {
        status = executor->graph->state->init(state);
    }
    if (status == MICROTIR_OK) {
        executor->state = state;
    }
    return status;
}

int32_t microtir_graph_set_parameters(struct microtir_graph_executor *executor, const void *file,
                                      uint32_t bytes)
{
    if (executor == NULL || file == NULL) {
        return MICROTIR_ERROR_NULL_POINTER;
    }
    if (executor->graph->parameter_alignment == 0u) {
        return MICROTIR_ERROR_PARAMETERS;
    }
    if ((uintptr_t)file % executor->graph->parameter_alignment != 0u) {
        return MICROTIR_ERROR_MEMORY_LAYOUT;
    }
    const int32_t status = microtir_parameters_check(
            file, bytes, executor->graph->parameter_bytes, executor->graph->identity);
    if (status == MICROTIR_OK) {
        executor->parameters = file;
    }
    return status;
}

int32_t microtir_graph_set_constants(struct microtir_graph_executor *executor,
                                     const void *constants)
{
    if (executor == NULL || constants == NULL) {
        return MICROTIR_ERROR_NULL_POINTER;
    }
    executor->constants = constants;
    return MICROTIR_OK;
}

int32_t microtir_graph_set_devices(struct microtir_graph_executor *executor, const void *devices)
{
    if (executor == NULL || devices == NULL) {
        return MICROTIR_ERROR_NULL_POINTER;
    }
    executor->devices = devices;
    return MICROTIR_OK;
}

/* Checks that everything that a run reads is there. */
static int32_t check_run(const struct microtir_graph_executor *executor)
{
    if (executor == NULL || executor->graph == NULL) {
        return MICROTIR_ERROR_NULL_POINTER;
    }
#if MICROTIR_CHECK_GRAPH
    const struct microtir_graph *const graph = executor->graph;
    if ((graph->parameter_alignment != 0u && executor->parameters == NULL)
        || (graph->constant_pool_count != 0u && executor->constants == NULL)
        || (graph->device_count != 0u && executor->devices == NULL)
        || (graph->state != NULL && executor->state == NULL)) {
        return MICROTIR_ERROR_NOT_SET;
    }
    for (uint16_t i = 0; i < graph->input_count; i++) {
        if (executor->inputs[i] == NULL) {
            return MICROTIR_ERROR_NOT_SET;
        }
    }
    for (uint16_t i = 0; i < graph->output_count; i++) {
        if (executor->outputs[i] == NULL) {
            return MICROTIR_ERROR_NOT_SET;
        }
    }
    for (uint16_t i = 0; i < graph->pool_count; i++) {
        if (graph->pools[i].bytes != 0u && executor->pools[i] == NULL) {
            return MICROTIR_ERROR_NOT_SET;
        }
    }
#endif
    return MICROTIR_OK;
}

int32_t microtir_graph_run(const struct microtir_graph_executor *executor)
{
    int32_t status = check_run(executor);
    if (status != MICROTIR_OK) {
        return status;
    }
    const struct microtir_graph *const graph = executor->graph;
    for (uint16_t i = 0; i < graph->node_count && status == MICROTIR_OK; i++) {
        status = graph->nodes[i].call(executor, &graph->arguments[graph->nodes[i].first]);
    }
    return status;
}

int32_t microtir_graph_run_node(const struct microtir_graph_executor *executor, int32_t node)
{
    const int32_t status = check_run(executor);
    if (status != MICROTIR_OK) {
        return status;
    }
    const struct microtir_graph *const graph = executor->graph;
    if (node < 0 || node >= graph->node_count) {
        return MICROTIR_ERROR_INDEX;
    }
    return graph->nodes[node].call(executor, &graph->arguments[graph->nodes[node].first]);
}

const void *microtir_graph_read(const struct microtir_graph_executor *executor, uint16_t number)
{
    const struct microtir_graph_tensor *const tensor = &executor->graph->tensors[number];
    if (tensor->place == (uint8_t)MICROTIR_GRAPH_INPUT) {
        return executor->inputs[tensor->offset];
    }
    return microtir_graph_write(executor, number);
}

void *microtir_graph_write(const struct microtir_graph_executor *executor, uint16_t number)
{
    const struct microtir_graph_tensor *const tensor = &executor->graph->tensors[number];
    void *address = NULL;
    if (tensor->place >= (uint8_t)MICROTIR_GRAPH_WORKSPACE) {
        const uint32_t pool = tensor->place - (uint32_t)MICROTIR_GRAPH_WORKSPACE;
        address = executor->pools[pool] + tensor->offset;
    } else if (tensor->place == (uint8_t)MICROTIR_GRAPH_STATE) {
        address = executor->state + tensor->offset;
    } else if (tensor->place == (uint8_t)MICROTIR_GRAPH_OUTPUT) {
        address = executor->outputs[tensor->offset];
    } else {
        /* An input is never written. */
    }
    return address;
}
