/* graph.h: the graph executor, which runs a model as a table of calls.
 *
 * microtir generates the table, constant and in flash: nodes with the numbers of their tensors, and
 * tensors with their places in the workspace. There is nothing to parse, no name to look up and no
 * memory to allocate. Nodes can be run one by one, and watched.
 */
#ifndef MICROTIR_GRAPH_H
#define MICROTIR_GRAPH_H

#include <stdint.h>

#include "microtir/config.h"
#include "microtir/packed.h"
#include "microtir/platform.h"

#ifdef __cplusplus
extern "C" {
#endif

/* --- what microtir generates --- */

/* Where a tensor lies. */
enum microtir_graph_place {
    MICROTIR_GRAPH_INPUT = 0,    /* at a pointer of executor->inputs */
    MICROTIR_GRAPH_OUTPUT = 1,   /* at a pointer of executor->outputs */
    MICROTIR_GRAPH_STATE = 2,    /* in executor->state */
    MICROTIR_GRAPH_WORKSPACE = 3 /* in executor->pools[0]; 4 is in the next, and so on */
};

struct microtir_graph_tensor {
    uint32_t offset;             /* in its pool or the state, in bytes; else the pointer's number */
    uint32_t bytes;              /* of the tensor as it lies in memory */
    uint8_t place;               /* enum microtir_graph_place */
    struct microtir_dtype dtype; /* of the elements */
};

struct microtir_graph_executor;

/* Calls one operator, or a loop over rows of several, with the tensors of these numbers. Returns
 * MICROTIR_OK, or what the operator returned. */
typedef int32_t (*microtir_graph_call)(const struct microtir_graph_executor *executor,
                                       const uint16_t *tensors);

struct microtir_graph_node {
    microtir_graph_call call;
    uint16_t first;   /* of its tensors in graph->arguments */
    uint16_t outputs; /* how many of them it writes for others to read; these come first */
    uint32_t cost;    /* cycles, estimated or measured before; UINT32_MAX if nothing is known */
};

/* A pool of the workspace. */
struct microtir_graph_pool {
    uint8_t *memory;    /* an array of the program; NULL where it is the application's */
    uint32_t bytes;     /* 0: nothing lies there */
    uint16_t alignment; /* in bytes */
};

/* What a model keeps from one run to the next: the struct <name>_state. */
struct microtir_graph_state {
    int32_t (*init)(void *state); /* <name>_state_init */
    uint32_t bytes;
    uint32_t identity;  /* its first four bytes, once it is initialised */
    uint16_t alignment; /* in bytes */
};

struct microtir_graph {
    const struct microtir_graph_node *nodes; /* in the order in which they run */
    const uint16_t *arguments;               /* numbers of tensors */
    const struct microtir_graph_tensor *tensors;
    const struct microtir_tensor_type *ports; /* of the inputs, then of the outputs */
    const char *const *names;                 /* of the nodes; NULL unless built for debugging */
    const struct microtir_graph_pool *pools;  /* the workspace */
    const struct microtir_graph_state *state; /* NULL where nothing outlives a run */
    uint16_t node_count;
    uint16_t input_count;
    uint16_t output_count;
    uint16_t pool_count;
    uint16_t parameter_alignment; /* in bytes; 0 where there is no file of parameters */
    uint16_t constant_pool_count; /* pools of constants that a run needs */
    uint16_t device_count;        /* accelerators that a run needs */
    uint32_t identity;            /* of the parameters */
    uint32_t parameter_bytes;     /* of their file */
};

/* --- what an application keeps --- */

/* All pointers are the application's; one executor serves one run at a time. */
struct microtir_graph_executor {
    const struct microtir_graph *graph;
    const void **inputs; /* graph->input_count pointers */
    void **outputs;      /* graph->output_count pointers */
    uint8_t **pools;     /* graph->pool_count pointers */
    uint8_t *state;      /* struct <name>_state of a model that keeps something, else NULL */
    const uint8_t *parameters;
    const void *constants; /* struct <name>_constants of a model with pools of them, else NULL */
    const void *devices;   /* struct <name>_devices of a model that uses some, else NULL */
};

/* Prepares a run of `graph`; `inputs`, `outputs` and `pools` are arrays that the setters below
 * fill. Pools that are arrays of the program are set already. */
int32_t microtir_graph_init(struct microtir_graph_executor *executor,
                            const struct microtir_graph *graph, const void **inputs,
                            void **outputs, uint8_t **pools);

/* Uses the memory of `tensor` as an input or output, after checking its type; nothing is copied. */
int32_t microtir_graph_set_input(struct microtir_graph_executor *executor, int32_t index,
                                 const struct microtir_tensor *tensor);
int32_t microtir_graph_set_output(struct microtir_graph_executor *executor, int32_t index,
                                  const struct microtir_tensor *tensor);

/* Uses `bytes` bytes at `memory` as a pool of the workspace; 0 is the first one. */
int32_t microtir_graph_set_pool(struct microtir_graph_executor *executor, int32_t index,
                                void *memory, uint32_t bytes);

/* Uses the `bytes` bytes at `state`, a struct <name>_state that was initialised, after checking it:
 * MICROTIR_ERROR_STATE where it is not one of this model. Each run changes it. */
int32_t microtir_graph_set_state(struct microtir_graph_executor *executor, void *state,
                                 uint32_t bytes);

/* Makes the state as if it had seen nothing, also one that was not initialised, and uses it. */
int32_t microtir_graph_reset_state(struct microtir_graph_executor *executor, void *state,
                                   uint32_t bytes);

/* Uses the file of parameters at `file`, after checking it; see parameters.h. */
int32_t microtir_graph_set_parameters(struct microtir_graph_executor *executor, const void *file,
                                      uint32_t bytes);

/* Uses `constants`, the struct <name>_constants of a model with pools of constants. */
int32_t microtir_graph_set_constants(struct microtir_graph_executor *executor,
                                     const void *constants);

/* Uses `devices`, the struct <name>_devices of a model; who runs the graph activates them before
 * and deactivates them after. */
int32_t microtir_graph_set_devices(struct microtir_graph_executor *executor, const void *devices);

/* Runs every node, up to the first that fails. */
int32_t microtir_graph_run(const struct microtir_graph_executor *executor);

/* Runs one node, whose predecessors have run. */
int32_t microtir_graph_run_node(const struct microtir_graph_executor *executor, int32_t node);

/* --- a run in steps --- */

/* Asked after each node; 0 stops the run there. `node` is the next one. */
typedef int32_t (*microtir_graph_go_on)(void *context, int32_t node);

/* Runs nodes from *next on, up to the last one or to where `go_on` stops it, and sets *next to the
 * node to go on with: graph->node_count after the last. The tensors in the workspace must be left
 * alone in between. `go_on` may be NULL, which means 0: one node a call. */
int32_t microtir_graph_run_on(const struct microtir_graph_executor *executor, int32_t *next,
                              microtir_graph_go_on go_on, void *context);

/* The same for as many nodes as cost at most `limit` cycles together, one at least:
 * MICROTIR_ERROR_STEP_COST, and nothing has run, where the next one alone costs more. */
int32_t microtir_graph_run_within(const struct microtir_graph_executor *executor, int32_t *next,
                                  uint32_t limit);

/* Gives the node after which an output is complete, for who needs no other: running on to it
 * computes this output, and what comes later need not run. */
int32_t microtir_graph_last_node(const struct microtir_graph *graph, int32_t output, int32_t *node);

/* --- watching a run --- */

/* What an application is told; hooks that are NULL are not called. */
struct microtir_graph_observer {
    void *context; /* passed to both hooks */

    /* A node has run; `ticks` are the platform's, `name` is NULL unless built for debugging. */
    void (*node)(void *context, int32_t node, const char *name, uint32_t ticks);

    /* Called after that for each tensor that the node wrote, with its CRC-32. */
    void (*tensor)(void *context, int32_t node, const struct microtir_graph_tensor *tensor,
                   const void *data, uint32_t checksum);
};

/* Runs every node and tells the observer; `platform` says what time it is, and may be NULL. */
int32_t microtir_graph_run_observed(const struct microtir_graph_executor *executor,
                                    const struct microtir_graph_observer *observer,
                                    const struct microtir_platform *platform);

/* --- what generated calls ask for --- */

/* Address of the tensor of a number, to read it. */
const void *microtir_graph_read(const struct microtir_graph_executor *executor, uint16_t number);

/* Address of the tensor of a number, to write it; NULL for an input. */
void *microtir_graph_write(const struct microtir_graph_executor *executor, uint16_t number);

#ifdef __cplusplus
}
#endif

#endif /* MICROTIR_GRAPH_H */
