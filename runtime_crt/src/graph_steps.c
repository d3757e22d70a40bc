#include <stddef.h>

#include "microtir/graph.h"
#include "microtir/status.h"

/* Checks that a run can go on at *next. */
static int32_t check_place(const struct microtir_graph_executor *executor, const int32_t *next)
{
    if (executor == NULL || executor->graph == NULL || next == NULL) {
        return MICROTIR_ERROR_NULL_POINTER;
    }
    if (*next < 0 || *next > (int32_t)executor->graph->node_count) {
        return MICROTIR_ERROR_INDEX;
    }
    return MICROTIR_OK;
}

int32_t microtir_graph_run_on(const struct microtir_graph_executor *executor, int32_t *next,
                              microtir_graph_go_on go_on, void *context)
{
    int32_t status = check_place(executor, next);
    int32_t is_on = 1;
    while (status == MICROTIR_OK && is_on != 0 && *next < (int32_t)executor->graph->node_count) {
        status = microtir_graph_run_node(executor, *next);
        if (status == MICROTIR_OK) {
            *next += 1;
            is_on = go_on != NULL ? go_on(context, *next) : 0;
        }
    }
    return status;
}

int32_t microtir_graph_run_within(const struct microtir_graph_executor *executor, int32_t *next,
                                  uint32_t limit)
{
    int32_t status = check_place(executor, next);
    uint32_t left = limit;
    if (status != MICROTIR_OK) {
        return status;
    }
    const struct microtir_graph *const graph = executor->graph;
    if (*next < (int32_t)graph->node_count && graph->nodes[*next].cost > limit) {
        return MICROTIR_ERROR_STEP_COST;
    }
    while (status == MICROTIR_OK && *next < (int32_t)graph->node_count
           && graph->nodes[*next].cost <= left) {
        left -= graph->nodes[*next].cost;
        status = microtir_graph_run_node(executor, *next);
        if (status == MICROTIR_OK) {
            *next += 1;
        }
    }
    return status;
}

/* Whether a node writes an output of the model. */
static int32_t writes(const struct microtir_graph *graph, int32_t node, int32_t output)
{
    const struct microtir_graph_node *const entry = &graph->nodes[node];
    for (uint16_t i = 0; i < entry->outputs; i++) {
        const uint16_t number = graph->arguments[entry->first + i];
        const struct microtir_graph_tensor *const tensor = &graph->tensors[number];
        if (tensor->place == (uint8_t)MICROTIR_GRAPH_OUTPUT && tensor->offset == (uint32_t)output) {
            return 1;
        }
    }
    return 0;
}

int32_t microtir_graph_last_node(const struct microtir_graph *graph, int32_t output, int32_t *node)
{
    if (graph == NULL || node == NULL) {
        return MICROTIR_ERROR_NULL_POINTER;
    }
    if (output < 0 || output >= (int32_t)graph->output_count) {
        return MICROTIR_ERROR_INDEX;
    }
    for (int32_t i = (int32_t)graph->node_count - 1; i >= 0; i--) {
        if (writes(graph, i, output) != 0) {
            *node = i;
            return MICROTIR_OK;
        }
    }
    return MICROTIR_ERROR_INDEX;
}
