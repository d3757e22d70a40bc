/* aot_executor.h: microTVM's executor of a model that is found in a module.
 *
 * Its memory, and that of the inputs and outputs, is the application's
 * TVMPlatformMemoryAllocate(). Functions that return int return 0, or a code of error_codes.h
 * unless they say otherwise.
 */
#ifndef TVM_RUNTIME_CRT_AOT_EXECUTOR_H_
#define TVM_RUNTIME_CRT_AOT_EXECUTOR_H_

#include <dlpack/dlpack.h>

#include "tvm/runtime/c_runtime_api.h"
#include "tvm/runtime/crt/internal/common/ndarray.h"
#include "tvm/runtime/metadata_types.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct TVMMetadata TVMMetadata;

/* Applications read and write the tensors of `args`. */
typedef struct TVMAotExecutor {
    const TVMMetadata *metadata;
    TVMModuleHandle module_handle;
    DLDevice device;
    TVMNDArray *args; /* the inputs, then the outputs */
    int64_t num_args;
} TVMAotExecutor;

/* Makes an executor of the model of a module, with inputs and outputs of zeros; with NULL for its
 * name it is the only one, or the first. */
int TVMAotExecutor_Create(TVMModuleHandle module_handle, const DLDevice device,
                          TVMAotExecutor **executor, const char *module_name);

/* Gives all memory back, in the reverse order. */
int TVMAotExecutor_Release(TVMAotExecutor *executor, const DLDevice device);

int TVMAotExecutor_GetNumInputs(TVMAotExecutor *executor);
int TVMAotExecutor_GetNumOutputs(TVMAotExecutor *executor);

/* The number of an input, as it is called in the model file; -1 where there is none. */
int TVMAotExecutor_GetInputIndex(TVMAotExecutor *executor, const char *name);

int TVMAotExecutor_GetInputName(TVMAotExecutor *executor, int index, const char **name);

/* Runs the model on `args`; returns what it returns. */
int TVMAotExecutor_Run(TVMAotExecutor *executor);

#ifdef __cplusplus
}
#endif

#endif /* TVM_RUNTIME_CRT_AOT_EXECUTOR_H_ */
