/* An application that finds the model in the system library, and functions of its own by name. */
#include <stdio.h>
#include <tvm/runtime/c_runtime_api.h>
#include <tvm/runtime/crt/crt.h>
#include <tvm/runtime/crt/module.h>
#include <tvm/runtime/crt/packed_func.h>

#include "memory.c"
#include "names.h"

static int twice(TVMValue *args, int *type_codes, int num_args, TVMValue *out_ret_value,
                 int *out_ret_tcode, void *resource_handle)
{
    (void)resource_handle;
    if (num_args != 1 || type_codes[0] != kTVMArgInt) {
        return -1;
    }
    out_ret_value->v_int64 = 2 * args[0].v_int64;
    *out_ret_tcode = kTVMArgInt;
    return 0;
}

int main(void)
{
    int8_t image[12], scores[5];
    int64_t shapes[2][4] = {{1, 3, 4, 1}, {1, 5, 0, 0}};
    DLTensor tensors[2] = {
        {image, {kDLCPU, 0}, 4, {kDLInt, 8, 1}, shapes[0], NULL, 0},
        {scores, {kDLCPU, 0}, 2, {kDLInt, 8, 1}, shapes[1], NULL, 0},
    };
    TVMValue args[2], result;
    int kinds[2] = {kTVMDLTensorHandle, kTVMDLTensorHandle};
    int result_kind = kTVMArgInt;
    TVMModuleHandle module = NULL;
    TVMFunctionHandle run = NULL, own = NULL;
    int i;

    if (TVMInitializeRuntime() != 0
        || TVMModCreateFromCModule(TVMSystemLibEntryPoint(), &module) != 0
        || TVMModGetFunction(module, "nothing", 0, &run) != kTvmErrorFunctionNameNotFound
        || TVMModGetFunction(module, RUN, 0, &run) != 0) {
        return 1;
    }
    /* A function of the application, which may be replaced only on demand. */
    if (TVMFuncGetGlobal("twice", &own) != kTvmErrorFunctionNameNotFound
        || TVMFuncRegisterGlobal("twice", (TVMFunctionHandle)&twice, 0) != 0
        || TVMFuncRegisterGlobal("twice", (TVMFunctionHandle)&twice, 0)
                != kTvmErrorFunctionAlreadyDefined
        || TVMFuncRegisterGlobal("twice", (TVMFunctionHandle)&twice, 1) != 0
        || TVMFuncGetGlobal("twice", &own) != 0) {
        return 2;
    }
    args[0].v_int64 = 21;
    kinds[0] = kTVMArgInt;
    if (TVMFuncCall(own, args, kinds, 1, &result, &result_kind) != 0 || result.v_int64 != 42
        || TVMFuncCall(own, args, kinds, 2, &result, &result_kind) == 0) {
        return 3;
    }
    for (i = 0; i < 12; i++) {
        image[i] = (int8_t)(11 * i);
    }
    args[0].v_handle = &tensors[0];
    args[1].v_handle = &tensors[1];
    kinds[0] = kTVMDLTensorHandle;
    if (TVMFuncCall(run, args, kinds, 1, &result, &result_kind) == 0
        || TVMFuncCall(run, args, kinds, 2, &result, &result_kind) != 0
        || TVMFuncFree(run) != 0 || TVMModFree(module) != 0) {
        return 4;
    }
    for (i = 0; i < 5; i++) {
        printf("%d\n", scores[i]);
    }
    return 0;
}
