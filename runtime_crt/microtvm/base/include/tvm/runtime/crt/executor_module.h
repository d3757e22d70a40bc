/* executor_module.h: what the modules of both executors are made of. */
#ifndef TVM_RUNTIME_CRT_EXECUTOR_MODULE_H_
#define TVM_RUNTIME_CRT_EXECUTOR_MODULE_H_

#include "tvm/runtime/c_runtime_api.h"
#include "tvm/runtime/crt/func_registry.h"
#include "tvm/runtime/crt/module.h"

#ifdef __cplusplus
extern "C" {
#endif

/* An executor; there is none yet where `executor` is NULL. */
struct tvm_executor {
    void *executor;
    int (*count_inputs)(void *executor);
    int (*count_outputs)(void *executor);
    int (*find_input)(void *executor, const char *name); /* -1 where there is none */
    const char *(*input_name)(void *executor, int index);
    /* The tensor of an input, or of an output. */
    DLTensor *(*input)(void *executor, int index);
    DLTensor *(*output)(void *executor, int index);
    int (*set_input)(void *executor, int index, const DLTensor *given);
    int (*load)(void *executor, const TVMByteArray *params);
    int (*run)(void *executor);
};

/* Registers the function that creates a module under a name. */
tvm_crt_error_t tvm_executor_register(const char *name, TVMBackendPackedCFunc create);

/* Whether a module was made: there can be one. */
int tvm_executor_is_made(void);

/* Makes the module of an executor, whose struct must stay, and gives it. */
int tvm_executor_give_module(const struct tvm_executor *made, TVMValue *out_ret_value,
                             int *out_ret_tcode);

struct TVMGraphExecutor;

/* The tensor of an input or output of the graph executor, numbered in this order. Runs use the data
 * that it has then. */
DLTensor *tvm_graph_tensor(struct TVMGraphExecutor *executor, int number);

/* TVMGraphExecutor_SetInput() by number, with a code instead of an end. */
int tvm_graph_set_input(struct TVMGraphExecutor *executor, int index, const DLTensor *given);

#ifdef __cplusplus
}
#endif

#endif /* TVM_RUNTIME_CRT_EXECUTOR_MODULE_H_ */
