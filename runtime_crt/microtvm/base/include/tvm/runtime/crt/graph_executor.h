/* graph_executor.h: microTVM's graph executor over microtir's table of calls.
 *
 * Its memory comes from the application's TVMPlatformMemoryAllocate(), in one block. The text of
 * the graph is not read: the table is part of the generated code.
 */
#ifndef TVM_RUNTIME_CRT_GRAPH_EXECUTOR_H_
#define TVM_RUNTIME_CRT_GRAPH_EXECUTOR_H_

#include <dlpack/dlpack.h>

#include "tvm/runtime/c_runtime_api.h"
#include "tvm/runtime/crt/packed_func.h"

#ifdef __cplusplus
extern "C" {
#endif

/* What a node calls. */
typedef struct TVMOpParam {
    char *func_name; /* in flash: to be read */
    uint32_t num_inputs;
    uint32_t num_outputs;
    uint32_t flatten_data; /* 0 */
} TVMOpParam;

/* Its members are in internal/graph_executor/graph_executor.h. */
typedef struct TVMGraphExecutor TVMGraphExecutor;

/* Makes an executor of the model of `module_handle`; `sym_json` is not used. 0 if it succeeds. */
int TVMGraphExecutor_Create(const char *sym_json, TVMModuleHandle module_handle,
                            const DLDevice *devices, TVMGraphExecutor **executor);

/* The number of an input, as it is called in the model file; -1 where there is none. */
int TVMGraphExecutor_GetInputIndex(TVMGraphExecutor *executor, const char *name);

int TVMGraphExecutor_GetNumInputs(TVMGraphExecutor *executor);
int TVMGraphExecutor_GetNumOutputs(TVMGraphExecutor *executor);

/* Makes the runs that follow read data_in->data, which must stay: it may be refilled before each.
 * An input that the model does not have stops the program, and so does another rank, number of bits
 * or number of elements; nothing else of *data_in is read (but see TVM_CRT_STRICT_TENSORS). */
void TVMGraphExecutor_SetInput(TVMGraphExecutor *executor, const char *name, DLTensor *data_in);

/* Copies an output to out->data, which is checked as that of an input. */
int TVMGraphExecutor_GetOutput(TVMGraphExecutor *executor, const int32_t index, DLTensor *out);

/* Takes a copy of the file of parameters that was generated with the code. With
 * TVM_CRT_PARAMETERS_IN_PLACE a file at an aligned address is read where it lies, and must stay. */
int TVMGraphExecutor_LoadParams(TVMGraphExecutor *executor, const char *param_blob,
                                const uint32_t param_size);

/* Makes an executor read the parameters that another one of the same model has loaded, and give back
 * its own; they must stay as long. kTvmErrorFunctionCallInvalidArg for another model, or where there
 * are none yet. An addition to microTVM's interface. */
int TVMGraphExecutor_ShareParams(TVMGraphExecutor *executor, const TVMGraphExecutor *other);

/* Runs the model; what a node reports stops the program. */
void TVMGraphExecutor_Run(TVMGraphExecutor *executor);

/* Makes a model that keeps something from one run to the next forget it; each executor has a state
 * of its own. An addition to microTVM's interface. */
int TVMGraphExecutor_Reset(TVMGraphExecutor *executor);

/* Gives the memory back and sets the pointer to NULL. */
int TVMGraphExecutor_Release(TVMGraphExecutor **executor);

#ifdef __cplusplus
}
#endif

#endif /* TVM_RUNTIME_CRT_GRAPH_EXECUTOR_H_ */
