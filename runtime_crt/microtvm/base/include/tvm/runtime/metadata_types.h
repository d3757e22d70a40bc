/* metadata_types.h: what a model with a system library says of itself, as microTVM's did. */
#ifndef TVM_RUNTIME_METADATA_TYPES_H_
#define TVM_RUNTIME_METADATA_TYPES_H_

#include "tvm/runtime/c_runtime_api.h"

#ifdef __cplusplus
extern "C" {
#endif

struct TVMTensorInfo {
    const char *name; /* of the model file */
    const int64_t *shape;
    int64_t num_shape;
    DLDataType dtype;
};

struct TVMConstantInfo {
    const char *name_hint;
    int64_t byte_offset;
    int64_t data_len;
    const void *data_bytes;
};

/* The tensors of a model, in the order of its arguments. Workspace and constants are part of the
 * code: there are no pools. */
struct TVMMetadata {
    int64_t version;
    const struct TVMTensorInfo *inputs;
    int64_t num_inputs;
    const struct TVMTensorInfo *outputs;
    int64_t num_outputs;
    const struct TVMTensorInfo *workspace_pools;
    int64_t num_workspace_pools;
    const struct TVMConstantInfo *constant_pools;
    int64_t num_constant_pools;
    const char *mod_name; /* what the names of its functions begin with */
};

#ifdef __cplusplus
}
#endif

#endif /* TVM_RUNTIME_METADATA_TYPES_H_ */
