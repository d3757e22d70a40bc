#include <stddef.h>

#include "microtir/checksum.h"
#include "microtir/graph.h"
#include "microtir/status.h"

/* One node of a run, as a function that microtir_measure() takes. */
struct step {
    const struct microtir_graph_executor *executor;
    int32_t node;
};

static int32_t run_step(void *argument)
{
    const struct step *const step = argument;
    return microtir_graph_run_node(step->executor, step->node);
}

static void show_tensors(const struct microtir_graph_executor *executor, int32_t index,
                         const struct microtir_graph_observer *observer)
{
    const struct microtir_graph *const graph = executor->graph;
    const struct microtir_graph_node *const node = &graph->nodes[index];
    for (uint16_t i = 0; i < node->outputs; i++) {
        const uint16_t number = graph->arguments[node->first + i];
        const struct microtir_graph_tensor *const tensor = &graph->tensors[number];
        const void *const data = microtir_graph_read(executor, number);
        observer->tensor(observer->context, index, tensor, data,
                         microtir_crc32(0, data, tensor->bytes));
    }
}

int32_t microtir_graph_run_observed(const struct microtir_graph_executor *executor,
                                    const struct microtir_graph_observer *observer,
                                    const struct microtir_platform *platform)
{
    if (executor == NULL || executor->graph == NULL) {
        return MICROTIR_ERROR_NULL_POINTER;
    }
    if (observer == NULL) {
        return microtir_graph_run(executor);
    }
    const struct microtir_graph *const graph = executor->graph;
    for (int32_t i = 0; i < graph->node_count; i++) {
        struct step step = {executor, i};
        uint32_t ticks = 0;
        const int32_t status = microtir_measure(platform, run_step, &step, &ticks);
        if (status != MICROTIR_OK) {
            MICROTIR_LOG_ERROR(platform, "a node of the graph did not run", i);
            return status;
        }
        if (observer->node != NULL) {
            const char *const name = graph->names != NULL ? graph->names[i] : NULL;
            observer->node(observer->context, i, name, ticks);
        }
        if (observer->tensor != NULL) {
            show_tensors(executor, i, observer);
        }
    }
    return MICROTIR_OK;
}
