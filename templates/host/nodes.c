/* nodes.c: lets the host watch the nodes of a graph that was generated for debugging. */
#include <stddef.h>
#include <time.h>

#include "microtir/graph.h"
#include "microtir/platform.h"

typedef void (*host_node)(int32_t node, const char *name, uint32_t ticks);
typedef void (*host_tensor)(int32_t node, const void *data, uint32_t bytes);

const struct microtir_graph_observer *microtir_host_observer(host_node node, host_tensor tensor);
const struct microtir_platform *microtir_host_platform(void);

/* One for each thread: each sees the nodes of its own run. */
static __thread host_node see_node;
static __thread host_tensor see_tensor;

static void on_node(void *context, int32_t node, const char *name, uint32_t ticks)
{
    (void)context;
    see_node(node, name, ticks);
}

static void on_tensor(void *context, int32_t node, const struct microtir_graph_tensor *tensor,
                      const void *data, uint32_t checksum)
{
    (void)context;
    (void)checksum;
    see_tensor(node, data, tensor->bytes);
}

/* Nanoseconds; they start over after four seconds, which a node does not take. */
static uint32_t nanoseconds(void *context)
{
    struct timespec now;
    (void)context;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint32_t)now.tv_sec * 1000000000u + (uint32_t)now.tv_nsec;
}

const struct microtir_graph_observer *microtir_host_observer(host_node node, host_tensor tensor)
{
    static const struct microtir_graph_observer observer = {NULL, on_node, on_tensor};
    see_node = node;
    see_tensor = tensor;
    return &observer;
}

const struct microtir_platform *microtir_host_platform(void)
{
    static const struct microtir_platform platform = {NULL, nanoseconds, NULL, NULL, NULL, NULL};
    return &platform;
}
