/* module.h: what generated code offers to applications that find it by name. */
#ifndef TVM_RUNTIME_CRT_MODULE_H_
#define TVM_RUNTIME_CRT_MODULE_H_

#include "tvm/runtime/c_runtime_api.h"
#include "tvm/runtime/crt/func_registry.h"

#ifdef __cplusplus
extern "C" {
#endif

struct microtir_graph;
struct tvm_graph_nodes;

/* A constant of a model whose weights are a file: where it lies in microtir's form of that file. */
struct tvm_graph_parameter {
    const char *name; /* in the file that TVM would write */
    DLDataType dtype;
    uint32_t offset;
    uint32_t bytes;
};

/* A model for the graph executor. */
struct tvm_graph_model {
    const struct microtir_graph *(*graph)(void);
    const struct tvm_graph_nodes *nodes;
    const struct tvm_graph_parameter *parameters; /* NULL where weights are part of the code */
    uint32_t parameter_count;
};

typedef struct TVMModule {
    const TVMFuncRegistry *registry;
    const struct tvm_graph_model *model; /* NULL where the executor is another one */
} TVMModule;

/* The module of the program, defined by generated code that was asked for a system library. */
const TVMModule *TVMSystemLibEntryPoint(void);

/* Gives the handle of a module; it stays valid, and nothing is registered. */
int TVMModCreateFromCModule(const TVMModule *mod, TVMModuleHandle *out_handle);

#ifdef __cplusplus
}
#endif

#endif /* TVM_RUNTIME_CRT_MODULE_H_ */
