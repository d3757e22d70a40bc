/* graph_test.c: the graph executor on a table written by hand: out = (in + 1) * weight. */
#include "unit.h"

static int32_t calls;

static int32_t increment(const struct microtir_graph_executor *executor, const uint16_t *tensors)
{
    const int32_t *const from = microtir_graph_read(executor, tensors[1]);
    int32_t *const to = microtir_graph_write(executor, tensors[0]);
    to[0] = from[0] + 1;
    calls++;
    return MICROTIR_OK;
}

static int32_t multiply(const struct microtir_graph_executor *executor, const uint16_t *tensors)
{
    const int32_t *const from = microtir_graph_read(executor, tensors[1]);
    int32_t *const to = microtir_graph_write(executor, tensors[0]);
    const uint8_t *const weight = executor->parameters;
    to[0] = from[0] * (weight == NULL ? 10 : weight[16]);
    calls++;
    return from[0] == 99 ? -6 : MICROTIR_OK;
}

static const struct microtir_graph_tensor tensors[] = {
    {0, 4, MICROTIR_GRAPH_INPUT, {MICROTIR_ELEMENT_SIGNED, 32}},
    {4, 4, MICROTIR_GRAPH_WORKSPACE, {MICROTIR_ELEMENT_SIGNED, 32}},
    {0, 4, MICROTIR_GRAPH_OUTPUT, {MICROTIR_ELEMENT_SIGNED, 32}},
};
static const uint16_t arguments[] = {1, 0, 2, 1};
static const struct microtir_graph_node nodes[] = {{increment, 0, 1, 30}, {multiply, 2, 1, 50}};
static const char *const names[] = {"increment", "multiply"};
static const int32_t extent[] = {1};
static const struct microtir_tensor_type ports[] = {
    {{MICROTIR_ELEMENT_SIGNED, 32}, 1, extent, 4},
    {{MICROTIR_ELEMENT_SIGNED, 32}, 1, extent, 4},
};
static int32_t inside[1];
static const struct microtir_graph_pool one[] = {{NULL, 8, 4}, {NULL, 0, 1}};
static const struct microtir_graph_pool two[] = {{(uint8_t *)inside, 4, 4}, {NULL, 8, 4}};
static const struct microtir_graph_tensor spread[] = {
    {0, 4, MICROTIR_GRAPH_INPUT, {MICROTIR_ELEMENT_SIGNED, 32}},
    {4, 4, MICROTIR_GRAPH_WORKSPACE + 1, {MICROTIR_ELEMENT_SIGNED, 32}},
    {0, 4, MICROTIR_GRAPH_OUTPUT, {MICROTIR_ELEMENT_SIGNED, 32}},
    {0, 4, MICROTIR_GRAPH_WORKSPACE, {MICROTIR_ELEMENT_SIGNED, 32}},
};
static int32_t begin(void *state)
{
    uint32_t *const words = state;
    words[0] = 77;
    words[1] = 5;
    return MICROTIR_OK;
}

static const struct microtir_graph_state facts = {begin, 8, 77, 4};
static const struct microtir_graph_tensor kept[] = {
    {4, 4, MICROTIR_GRAPH_STATE, {MICROTIR_ELEMENT_SIGNED, 32}},
    {4, 4, MICROTIR_GRAPH_STATE, {MICROTIR_ELEMENT_SIGNED, 32}},
    {0, 4, MICROTIR_GRAPH_OUTPUT, {MICROTIR_ELEMENT_SIGNED, 32}},
};
static const struct microtir_graph graph = {
    nodes, arguments, tensors, ports, names, one, NULL, 2, 1, 1, 2, 0, 0, 0, 0, 0};
static const struct microtir_graph apart = {
    nodes, arguments, tensors, ports, NULL, one, NULL, 2, 1, 1, 2, 4, 0, 0, 7, 17};
static const struct microtir_graph driven = {
    nodes, arguments, tensors, ports, NULL, one, NULL, 2, 1, 1, 2, 0, 0, 1, 0, 0};
static const struct microtir_graph pooled = {
    nodes, arguments, spread, ports, NULL, two, NULL, 2, 1, 1, 2, 0, 1, 0, 0, 0};
static const struct microtir_graph keeping = {
    nodes, arguments, kept, ports, NULL, one, &facts, 2, 1, 1, 2, 0, 0, 0, 0, 0};

static const int64_t shape[] = {1};
static int32_t input[2];
static int32_t output[2];
static int32_t workspace[3];
static const void *inputs[1];
static void *outputs[1];
static uint8_t *pools[2];

static struct microtir_tensor view(int32_t *data)
{
    const struct microtir_tensor tensor = {data, 1, {MICROTIR_ELEMENT_SIGNED, 32}, shape, NULL, 0};
    return tensor;
}

static struct microtir_graph_executor ready(const struct microtir_graph *table)
{
    const struct microtir_tensor in = view(input);
    const struct microtir_tensor out = view(output);
    struct microtir_graph_executor executor;
    CHECK(microtir_graph_init(&executor, table, inputs, outputs, pools), MICROTIR_OK);
    CHECK(microtir_graph_set_input(&executor, 0, &in), MICROTIR_OK);
    CHECK(microtir_graph_set_output(&executor, 0, &out), MICROTIR_OK);
    CHECK(microtir_graph_set_pool(&executor, table->pools == two, workspace, 8), MICROTIR_OK);
    return executor;
}

static void test_run(void)
{
    const struct microtir_graph_executor executor = ready(&graph);
    input[0] = 4;
    CHECK(microtir_graph_run(&executor), MICROTIR_OK);
    CHECK(output[0], 50);
    CHECK(workspace[1], 5);
    CHECK(workspace[2], 0);
    input[0] = 98;
    CHECK(microtir_graph_run(&executor), -6);
}

static void test_run_node(void)
{
    const struct microtir_graph_executor executor = ready(&graph);
    input[0] = 6;
    output[0] = 0;
    CHECK(microtir_graph_run_node(&executor, 0), MICROTIR_OK);
    CHECK(workspace[1], 7);
    CHECK(output[0], 0);
    CHECK(microtir_graph_run_node(&executor, 1), MICROTIR_OK);
    CHECK(output[0], 70);
    CHECK(microtir_graph_run_node(&executor, 2), MICROTIR_ERROR_INDEX);
    CHECK(microtir_graph_run_node(&executor, -1), MICROTIR_ERROR_INDEX);
}

static void test_graph_pools(void)
{
    struct microtir_graph_executor executor = ready(&pooled);
    CHECK(pools[0] == (uint8_t *)inside, 1);
    CHECK(pools[1] == (uint8_t *)workspace, 1);
    CHECK(microtir_graph_read(&executor, 3) == (const void *)inside, 1);
#if MICROTIR_CHECK_GRAPH
    CHECK(microtir_graph_run(&executor), MICROTIR_ERROR_NOT_SET);
#endif
    CHECK(microtir_graph_set_constants(&executor, NULL), MICROTIR_ERROR_NULL_POINTER);
    CHECK(microtir_graph_set_constants(NULL, inside), MICROTIR_ERROR_NULL_POINTER);
    CHECK(microtir_graph_set_constants(&executor, inside), MICROTIR_OK);
    input[0] = 8;
    workspace[1] = 0;
    CHECK(microtir_graph_run(&executor), MICROTIR_OK);
    CHECK(output[0], 90);
    CHECK(workspace[1], 9);
#if MICROTIR_CHECK_GRAPH
    pools[1] = NULL;
    CHECK(microtir_graph_run(&executor), MICROTIR_ERROR_NOT_SET);
#endif
}

static void test_graph_arguments(void)
{
    struct microtir_graph_executor executor = ready(&graph);
    const struct microtir_tensor tensor = view(input);
    const int32_t null = MICROTIR_ERROR_NULL_POINTER;
    CHECK(microtir_graph_init(NULL, &graph, inputs, outputs, pools), null);
    CHECK(microtir_graph_init(&executor, NULL, inputs, outputs, pools), null);
    CHECK(microtir_graph_init(&executor, &graph, NULL, outputs, pools), null);
    CHECK(microtir_graph_init(&executor, &graph, inputs, NULL, pools), null);
    CHECK(microtir_graph_init(&executor, &graph, inputs, outputs, NULL), null);
    CHECK(microtir_graph_set_input(&executor, 1, &tensor), MICROTIR_ERROR_INDEX);
    CHECK(microtir_graph_set_input(&executor, -1, &tensor), MICROTIR_ERROR_INDEX);
    CHECK(microtir_graph_set_input(&executor, 0, NULL), MICROTIR_ERROR_NULL_POINTER);
    CHECK(microtir_graph_set_input(NULL, 0, &tensor), MICROTIR_ERROR_NULL_POINTER);
    CHECK(microtir_graph_set_output(&executor, 1, &tensor), MICROTIR_ERROR_INDEX);
    CHECK(microtir_graph_set_output(&executor, -1, &tensor), MICROTIR_ERROR_INDEX);
    CHECK(microtir_graph_set_output(NULL, 0, &tensor), MICROTIR_ERROR_NULL_POINTER);
    CHECK(microtir_graph_set_pool(NULL, 0, workspace, 8), null);
    CHECK(microtir_graph_set_pool(&executor, 0, NULL, 8), null);
    CHECK(microtir_graph_set_pool(&executor, 2, workspace, 8), MICROTIR_ERROR_INDEX);
    CHECK(microtir_graph_set_pool(&executor, -1, workspace, 8), MICROTIR_ERROR_INDEX);
    CHECK(microtir_graph_set_pool(&executor, 0, workspace, 7), MICROTIR_ERROR_WORKSPACE_SIZE);
    CHECK(microtir_graph_set_pool(&executor, 0, (uint8_t *)workspace + 1, 8),
          MICROTIR_ERROR_MEMORY_LAYOUT);
    CHECK(microtir_graph_run(NULL), MICROTIR_ERROR_NULL_POINTER);
    CHECK(microtir_graph_run_node(NULL, 0), MICROTIR_ERROR_NULL_POINTER);
    CHECK(microtir_graph_write(&executor, 0) == NULL, 1);
}

#if MICROTIR_CHECK_TENSORS
static void test_graph_types(void)
{
    struct microtir_graph_executor executor = ready(&graph);
    struct microtir_tensor tensor = view(input);
    tensor.dtype.bits = 16;
    CHECK(microtir_graph_set_input(&executor, 0, &tensor), MICROTIR_ERROR_TENSOR_DTYPE);
    CHECK(microtir_graph_set_output(&executor, 0, &tensor), MICROTIR_ERROR_TENSOR_DTYPE);
}
#endif

#if MICROTIR_CHECK_GRAPH
static void test_not_set(void)
{
    struct microtir_graph_executor executor = ready(&graph);
    calls = 0;
    executor.pools[0] = NULL;
    CHECK(microtir_graph_run(&executor), MICROTIR_ERROR_NOT_SET);
    executor = ready(&graph);
    inputs[0] = NULL;
    CHECK(microtir_graph_run(&executor), MICROTIR_ERROR_NOT_SET);
    executor = ready(&graph);
    outputs[0] = NULL;
    CHECK(microtir_graph_run(&executor), MICROTIR_ERROR_NOT_SET);
    CHECK(microtir_graph_run_node(&executor, 0), MICROTIR_ERROR_NOT_SET);
    executor = ready(&apart);
    CHECK(microtir_graph_run(&executor), MICROTIR_ERROR_NOT_SET);
    CHECK(calls, 0);
}
#endif

static int32_t two_steps(void *context, int32_t node)
{
    int32_t *const seen = context;
    *seen = *seen * 10 + node;
    return node != 1;
}

static void test_run_on(void)
{
    struct microtir_graph_executor executor = ready(&graph);
    int32_t next = 0;
    int32_t seen = 0;
    calls = 0;
    CHECK(microtir_graph_run_on(&executor, &next, two_steps, &seen), MICROTIR_OK);
    CHECK(next, 1);
    CHECK(calls, 1);
    CHECK(microtir_graph_run_on(&executor, &next, two_steps, &seen), MICROTIR_OK);
    CHECK(next, 2);
    CHECK(calls, 2);
    CHECK(seen, 12);
    CHECK(microtir_graph_run_on(&executor, &next, two_steps, &seen), MICROTIR_OK);
    CHECK(calls, 2);
    next = 0;
    CHECK(microtir_graph_run_on(&executor, &next, NULL, NULL), MICROTIR_OK);
    CHECK(next, 1);
    next = 3;
    CHECK(microtir_graph_run_on(&executor, &next, NULL, NULL), MICROTIR_ERROR_INDEX);
    next = -1;
    CHECK(microtir_graph_run_on(&executor, &next, NULL, NULL), MICROTIR_ERROR_INDEX);
    CHECK(microtir_graph_run_on(&executor, NULL, NULL, NULL), MICROTIR_ERROR_NULL_POINTER);
    CHECK(microtir_graph_run_on(NULL, &next, NULL, NULL), MICROTIR_ERROR_NULL_POINTER);
}

static void test_run_within(void)
{
    struct microtir_graph_executor executor = ready(&graph);
    int32_t next = 0;
    calls = 0;
    CHECK(microtir_graph_run_within(&executor, &next, 29), MICROTIR_ERROR_STEP_COST);
    CHECK(next + calls, 0);
    CHECK(microtir_graph_run_within(&executor, &next, 79), MICROTIR_OK);
    CHECK(next, 1);
    CHECK(calls, 1);
    CHECK(microtir_graph_run_within(&executor, &next, 49), MICROTIR_ERROR_STEP_COST);
    CHECK(microtir_graph_run_within(&executor, &next, 50), MICROTIR_OK);
    CHECK(next, 2);
    CHECK(microtir_graph_run_within(&executor, &next, 0), MICROTIR_OK);
    CHECK(calls, 2);
    next = 0;
    CHECK(microtir_graph_run_within(&executor, &next, 80), MICROTIR_OK);
    CHECK(next, 2);
    next = 0;
    input[0] = 98;
    CHECK(microtir_graph_run_within(&executor, &next, UINT32_MAX), -6);
    CHECK(next, 1);
    next = 3;
    CHECK(microtir_graph_run_within(&executor, &next, 80), MICROTIR_ERROR_INDEX);
    CHECK(microtir_graph_run_within(&executor, NULL, 80), MICROTIR_ERROR_NULL_POINTER);
    input[0] = 0;
}

static void test_last_node(void)
{
    int32_t node = -1;
    CHECK(microtir_graph_last_node(&graph, 0, &node), MICROTIR_OK);
    CHECK(node, 1);
    CHECK(microtir_graph_last_node(&graph, 1, &node), MICROTIR_ERROR_INDEX);
    CHECK(microtir_graph_last_node(&graph, -1, &node), MICROTIR_ERROR_INDEX);
    CHECK(microtir_graph_last_node(&graph, 0, NULL), MICROTIR_ERROR_NULL_POINTER);
    CHECK(microtir_graph_last_node(NULL, 0, &node), MICROTIR_ERROR_NULL_POINTER);
}

static void test_graph_devices(void)
{
    int32_t devices = 0;
    struct microtir_graph_executor executor = ready(&driven);
    CHECK(microtir_graph_set_devices(&executor, NULL), MICROTIR_ERROR_NULL_POINTER);
    CHECK(microtir_graph_set_devices(NULL, &devices), MICROTIR_ERROR_NULL_POINTER);
#if MICROTIR_CHECK_GRAPH
    CHECK(microtir_graph_run(&executor), MICROTIR_ERROR_NOT_SET);
#endif
    CHECK(microtir_graph_set_devices(&executor, &devices), MICROTIR_OK);
    CHECK(executor.devices == &devices, 1);
    CHECK(microtir_graph_run(&executor), MICROTIR_OK);
}

/* A counter: the first node adds one to what it has left, the second gives ten times that. */
static void test_graph_state(void)
{
    struct microtir_graph_executor executor = ready(&keeping);
    uint32_t state[3] = {1, 2, 3};
    CHECK(microtir_graph_set_state(&executor, NULL, 8), MICROTIR_ERROR_NULL_POINTER);
    CHECK(microtir_graph_set_state(NULL, state, 8), MICROTIR_ERROR_NULL_POINTER);
    CHECK(microtir_graph_set_state(&executor, state, 7), MICROTIR_ERROR_STATE);
    CHECK(microtir_graph_set_state(&executor, (uint8_t *)state + 1, 8),
          MICROTIR_ERROR_MEMORY_LAYOUT);
    CHECK(microtir_graph_set_state(&executor, state, 8), MICROTIR_ERROR_STATE);
    CHECK(microtir_graph_reset_state(&executor, state, 12), MICROTIR_ERROR_STATE);
    CHECK(executor.state == NULL, 1);
#if MICROTIR_CHECK_GRAPH
    CHECK(microtir_graph_run(&executor), MICROTIR_ERROR_NOT_SET);
#endif
    CHECK(microtir_graph_reset_state(&executor, state, 8), MICROTIR_OK);
    for (int i = 0; i < 3; i++) {
        CHECK(microtir_graph_run(&executor), MICROTIR_OK);
        CHECK(output[0], 60 + 10 * i);
    }
    CHECK(state[2], 3);
    executor = ready(&keeping);
    CHECK(microtir_graph_set_state(&executor, state, 8), MICROTIR_OK);
    CHECK(microtir_graph_run(&executor), MICROTIR_OK);
    CHECK(output[0], 90);
    executor = ready(&graph);
    CHECK(microtir_graph_set_state(&executor, state, 8), MICROTIR_ERROR_STATE);
}

static void test_graph_parameters(void)
{
    union {
        uint32_t aligned;
        uint8_t bytes[20];
    } file = {.bytes = "MTIP\7\0\0\0\21\0\0\0"};
    struct microtir_graph_executor executor = ready(&apart);
    file.bytes[16] = 3;
    const uint32_t crc = microtir_crc32(0, file.bytes + 16, 1);
    for (int i = 0; i < 4; i++) {
        file.bytes[12 + i] = (uint8_t)(crc >> (8 * i));
    }
    CHECK(microtir_graph_set_parameters(&executor, file.bytes, 16), MICROTIR_ERROR_PARAMETERS);
    CHECK(microtir_graph_set_parameters(&executor, file.bytes + 1, 19),
          MICROTIR_ERROR_MEMORY_LAYOUT);
    CHECK(microtir_graph_set_parameters(&executor, NULL, 20), MICROTIR_ERROR_NULL_POINTER);
    CHECK(microtir_graph_set_parameters(NULL, file.bytes, 20), MICROTIR_ERROR_NULL_POINTER);
    CHECK(executor.parameters == NULL, 1);
    CHECK(microtir_graph_set_parameters(&executor, file.bytes, 20), MICROTIR_OK);
    input[0] = 4;
    CHECK(microtir_graph_run(&executor), MICROTIR_OK);
    CHECK(output[0], 15);
    executor = ready(&graph);
    CHECK(microtir_graph_set_parameters(&executor, file.bytes, 20), MICROTIR_ERROR_PARAMETERS);
}

/* --- watching --- */

static int32_t seen_nodes;
static int32_t seen_values[2];
static uint32_t seen_checksums[2];
static const char *seen_names[2];

static void see_node(void *context, int32_t node, const char *name, uint32_t ticks)
{
    CHECK(*(const int *)context, 5);
    CHECK(ticks, 0);
    seen_names[node] = name;
    seen_nodes++;
}

static void see_tensor(void *context, int32_t node, const struct microtir_graph_tensor *tensor,
                       const void *data, uint32_t checksum)
{
    CHECK(*(const int *)context, 5);
    CHECK(tensor->bytes, 4);
    memcpy(&seen_values[node], data, 4);
    seen_checksums[node] = checksum;
}

static void test_observed(void)
{
    int five = 5;
    const struct microtir_graph_observer observer = {&five, see_node, see_tensor};
    const struct microtir_graph_observer blind = {NULL, NULL, NULL};
    struct microtir_graph_executor executor = ready(&graph);
    seen_nodes = 0;
    input[0] = 2;
    CHECK(microtir_graph_run_observed(&executor, &observer, NULL), MICROTIR_OK);
    CHECK(seen_nodes, 2);
    CHECK(seen_values[0], 3);
    CHECK(seen_values[1], 30);
    CHECK(seen_checksums[1] == microtir_crc32(0, output, 4), 1);
    CHECK(strcmp(seen_names[1], "multiply"), 0);
    CHECK(microtir_graph_run_observed(&executor, &blind, NULL), MICROTIR_OK);
    CHECK(microtir_graph_run_observed(&executor, NULL, NULL), MICROTIR_OK);
    CHECK(microtir_graph_run_observed(NULL, &observer, NULL), MICROTIR_ERROR_NULL_POINTER);
    CHECK(seen_nodes, 2);
#if MICROTIR_CHECK_GRAPH
    outputs[0] = NULL;
    CHECK(microtir_graph_run_observed(&executor, &observer, NULL), MICROTIR_ERROR_NOT_SET);
    CHECK(seen_nodes, 2);
#endif
    executor = ready(&graph);
    executor.graph = &apart;
    executor.parameters = (const uint8_t *)&graph;
    CHECK(microtir_graph_run_observed(&executor, &observer, NULL), MICROTIR_OK);
    CHECK(seen_names[1] == NULL, 1);
}

const struct unit_test graph_tests[] = {
    {"graph_run", test_run},
    {"graph_run_node", test_run_node},
    {"graph_pools", test_graph_pools},
    {"graph_arguments", test_graph_arguments},
#if MICROTIR_CHECK_TENSORS
    {"graph_types", test_graph_types},
#endif
#if MICROTIR_CHECK_GRAPH
    {"graph_not_set", test_not_set},
#endif
    {"graph_run_on", test_run_on},
    {"graph_run_within", test_run_within},
    {"graph_last_node", test_last_node},
    {"graph_devices", test_graph_devices},
    {"graph_state", test_graph_state},
    {"graph_parameters", test_graph_parameters},
    {"graph_observed", test_observed},
    {NULL, NULL},
};
