/* graph_executor.h: what applications read of microTVM's graph executor.
 *
 * Nodes and what belongs to them are constants of the generated code, in flash: they are read, not
 * written. Texts are pointers, where microTVM had arrays in each node. No pointer of a node is to
 * const, since applications keep them as they kept microTVM's. Intermediate tensors lie in the
 * workspace, where a later node may write another one to the same bytes.
 */
#ifndef TVM_RUNTIME_CRT_INTERNAL_GRAPH_EXECUTOR_GRAPH_EXECUTOR_H_
#define TVM_RUNTIME_CRT_INTERNAL_GRAPH_EXECUTOR_GRAPH_EXECUTOR_H_

#include "microtir/graph.h"
#include "tvm/runtime/crt/graph_executor.h"
#include "tvm/runtime/crt/internal/common/ndarray.h"
#include "tvm/runtime/crt/module.h"

#ifdef __cplusplus
extern "C" {
#endif

/* One of the tensors that a node writes. */
typedef struct TVMGraphExecutorNodeEntry {
    uint32_t node_id;
    uint32_t index;   /* among the outputs of the node */
    uint32_t version; /* 0 */
} TVMGraphExecutorNodeEntry;

/* An input of the model, or what it keeps from one run to the next, or a call. */
typedef struct TVMGraphExecutorNode {
    char *op_type;    /* "tvm_op", or "null" for what no call writes */
    char *name;       /* of the model file */
    TVMOpParam param; /* of a call; zeros and an empty name for others */
    TVMGraphExecutorNodeEntry *inputs;
    size_t inputs_count;
} TVMGraphExecutorNode;

/* What generated code says of the nodes. */
struct tvm_graph_nodes {
    const TVMGraphExecutorNode *nodes;
    const uint32_t *input_nodes;              /* one for each input of the model */
    const uint32_t *node_row_ptr;             /* the first entry of each node; then their number */
    const TVMGraphExecutorNodeEntry *outputs; /* one for each output of the model */
    const uint16_t *tensors; /* the number of each entry in the table of calls; of an input any */
    uint32_t node_count;
};

struct TVMGraphExecutor {
    TVMGraphExecutorNode *nodes;
    uint32_t nodes_count;
    uint32_t *input_nodes; /* the nodes of the inputs, in their order */
    uint32_t input_nodes_count;
    uint32_t *node_row_ptr; /* the first entry of each node; behind them the number of entries */
    uint32_t node_row_ptr_count;
    TVMGraphExecutorNodeEntry *outputs; /* the entries of the outputs, in their order */
    uint32_t outputs_count;
    TVMModuleHandle module_handle;
    DLDevice devices[1];
    uint32_t devices_count;
    /* The tensors. Runs use the data that those of inputs and outputs have then; others are rows of
     * elements, as they lie in memory. */
    TVMNDArray *data_entry;
    uint32_t data_entry_count;

    /* What follows is microtir's own. */
    struct microtir_graph_executor executor;
    const struct tvm_graph_model *model;
    void **own;              /* memory of the executor for each input, then each output */
    void *copied_parameters; /* a block of its own, or NULL */
};

typedef DLTensor *DLTensorPtr;

/* The number in data_entry of what a node writes. */
uint32_t TVMGraphExecutor_GetEntryId(TVMGraphExecutor *executor, uint32_t nid, uint32_t index);

#ifdef __cplusplus
}
#endif

#endif /* TVM_RUNTIME_CRT_INTERNAL_GRAPH_EXECUTOR_GRAPH_EXECUTOR_H_ */
