/* func_registry.h: packed functions of a module by name, as microTVM's generated code lists them. */
#ifndef TVM_RUNTIME_CRT_FUNC_REGISTRY_H_
#define TVM_RUNTIME_CRT_FUNC_REGISTRY_H_

#include "tvm/runtime/c_backend_api.h"
#include "tvm/runtime/crt/error_codes.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef uint16_t tvm_function_index_t;
typedef uint16_t tvm_module_index_t;

typedef struct TVMFuncRegistry {
    const char *names; /* their number in two bytes, the lower first; then each with its final zero */
    const TVMBackendPackedCFunc *funcs;
} TVMFuncRegistry;

/* Finds the index of a name; kTvmErrorFunctionNameNotFound where there is none. */
tvm_crt_error_t TVMFuncRegistry_Lookup(const TVMFuncRegistry *reg, const char *name,
                                       tvm_function_index_t *function_index);

/* Gives a function; kTvmErrorFunctionIndexInvalid for an index that there is not. */
tvm_crt_error_t TVMFuncRegistry_GetByIndex(const TVMFuncRegistry *reg,
                                           tvm_function_index_t function_index,
                                           TVMBackendPackedCFunc *out_func);

uint16_t TVMFuncRegistry_GetNumFuncs(const TVMFuncRegistry *reg);

/* Writes the number of functions before the names, which must be memory that can be written; 0. */
int TVMFuncRegistry_SetNumFuncs(const TVMFuncRegistry *reg, const uint16_t num_funcs);

const char *TVMFuncRegistry_Get0thFunctionName(const TVMFuncRegistry *reg);

/* What applications size the memory of a registry by. */
#define TVM_AVERAGE_FUNCTION_NAME_STRLEN_BYTES 10
static const size_t kTvmAverageFunctionNameStrlenBytes = TVM_AVERAGE_FUNCTION_NAME_STRLEN_BYTES;
static const size_t kTvmAverageFuncEntrySizeBytes =
        TVM_AVERAGE_FUNCTION_NAME_STRLEN_BYTES + 1 + sizeof(void *);

/* A registry in memory of the application. */
typedef struct TVMMutableFuncRegistry {
    TVMFuncRegistry registry;
    size_t max_functions;
} TVMMutableFuncRegistry;

/* Makes an empty registry in a buffer; kTvmErrorBufferTooSmall where not one function fits. */
tvm_crt_error_t TVMMutableFuncRegistry_Create(TVMMutableFuncRegistry *reg, uint8_t *buffer,
                                              size_t buffer_size_bytes);

/* Adds a function, whose name is copied, or replaces that of this name with `override`;
 * kTvmErrorFunctionAlreadyDefined without, kTvmErrorFunctionRegistryFull where none fits. */
tvm_crt_error_t TVMMutableFuncRegistry_Set(TVMMutableFuncRegistry *reg, const char *name,
                                           TVMBackendPackedCFunc func, int override);

#ifdef __cplusplus
}
#endif

#endif /* TVM_RUNTIME_CRT_FUNC_REGISTRY_H_ */
