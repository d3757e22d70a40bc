/* An application with a device: the graph executor. */
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "default_graph.h"

static float given[6] = {-1.0f, 2.0f, 3.0f, 4.0f, -5.0f, 6.0f};
static float made[6];

static int32_t run(void *state)
{
    static DEFAULT_WORKSPACE(memory);
    const struct default_inputs inputs = {given};
    const struct default_outputs outputs = {made};
    const struct default_devices devices = {state};
    struct microtir_graph_executor executor;
    const void *in[DEFAULT_INPUT_COUNT];
    void *out[DEFAULT_OUTPUT_COUNT];
    uint8_t *pools[DEFAULT_POOL_COUNT];
    /* A run of nodes that was not told of the devices is refused. */
    if (microtir_graph_init(&executor, default_graph(), in, out, pools) != MICROTIR_OK
        || microtir_graph_set_pool(&executor, 0, memory, sizeof memory) != MICROTIR_OK) {
        return 1;
    }
    in[0] = given;
    out[0] = made;
    if (microtir_graph_run(&executor) != MICROTIR_ERROR_NOT_SET
        || microtir_graph_set_devices(&executor, &devices) != MICROTIR_OK) {
        return 2;
    }
    return default_run(&inputs, &outputs, memory, &devices);
}
