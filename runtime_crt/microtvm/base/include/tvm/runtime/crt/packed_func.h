/* packed_func.h: packed functions with their arguments, as applications for microTVM call them. */
#ifndef TVM_RUNTIME_CRT_PACKED_FUNC_H_
#define TVM_RUNTIME_CRT_PACKED_FUNC_H_

#include "tvm/runtime/c_runtime_api.h"
#include "tvm/runtime/crt/module.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct TVMArgs {
    TVMValue values[TVM_CRT_MAX_ARGS];
    int tcodes[TVM_CRT_MAX_ARGS];
    uint32_t values_count;
} TVMArgs;

typedef struct TVMPackedFunc {
    char name[TVM_CRT_MAX_STRLEN_FUNCTION_NAME];
    TVMFunctionHandle fexec;
    TVMArgs args;
    TVMArgs ret_value;
    int (*Call)(struct TVMPackedFunc *pf);
    void (*SetArgs)(struct TVMPackedFunc *pf, const struct TVMArgs *args);
} TVMPackedFunc;

/* Copies at most TVM_CRT_MAX_ARGS arguments; more of them stop the program. */
TVMArgs TVMArgs_Create(TVMValue *values, uint32_t *tcodes, uint32_t values_count);

/* The module among arguments; another kind stops the program. */
TVMModuleHandle TVMArgs_AsModuleHandle(const TVMArgs *args, size_t index);

/* Finds a function, registered by the application or of a module; 0 if it is there. */
int TVMPackedFunc_InitGlobalFunc(TVMPackedFunc *pf, const char *name, const TVMArgs *args);
int TVMPackedFunc_InitModuleFunc(TVMPackedFunc *pf, TVMModuleHandle module, const char *name,
                                 const TVMArgs *args);

int TVMPackedFunc_Call(TVMPackedFunc *pf);
void TVMPackedFunc_SetArgs(TVMPackedFunc *pf, const TVMArgs *args);

#ifdef __cplusplus
}
#endif

#endif /* TVM_RUNTIME_CRT_PACKED_FUNC_H_ */
