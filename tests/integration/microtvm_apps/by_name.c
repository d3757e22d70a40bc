/* An application that has everything by name: an executor as a module, its functions, tensors. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <tvm/runtime/c_runtime_api.h>
#include <tvm/runtime/crt/crt.h>
#include <tvm/runtime/crt/packed_func.h>
#include <tvm/runtime/metadata_types.h>

#include "names.h"

#ifdef __cplusplus
extern "C" {
#endif
#include "memory.c"
#ifdef __cplusplus
}
#endif

static void expect(int holds, int line)
{
    if (!holds) {
        printf("line %d: %s\n", line, TVMGetLastError());
        exit(1);
    }
}
#define EXPECT(condition) expect(condition, __LINE__)

/* Calls a function of a module, or a global one where there is no module. */
static int call(TVMModuleHandle module, const char *name, const TVMArgs *args, TVMValue *result)
{
    TVMPackedFunc function;
    const int status = module == NULL ? TVMPackedFunc_InitGlobalFunc(&function, name, args)
                                      : TVMPackedFunc_InitModuleFunc(&function, module, name, args);
    const int done = status != 0 ? status : TVMPackedFunc_Call(&function);
    *result = function.ret_value.values[0];
    return done;
}

static TVMArgs string(const char *text)
{
    TVMValue value;
    uint32_t code = kTVMStr;
    value.v_str = text;
    return TVMArgs_Create(&value, &code, 1);
}

static TVMArgs number(int64_t given)
{
    TVMValue value;
    uint32_t code = kTVMArgInt;
    value.v_int64 = given;
    return TVMArgs_Create(&value, &code, 1);
}

static TVMArgs executor_arguments(TVMModuleHandle library)
{
    TVMValue values[4];
#ifdef GRAPH
    uint32_t codes[4] = {kTVMStr, kTVMModuleHandle, kTVMArgInt, kTVMArgInt};
    values[0].v_str = "{}";
    values[1].v_handle = library;
    values[2].v_int64 = kDLCPU;
    values[3].v_int64 = 0;
    return TVMArgs_Create(values, codes, 4);
#else
    const DLDevice cpu = {kDLCPU, 0};
    uint32_t codes[3] = {kTVMModuleHandle, kDLDevice, kTVMStr};
    values[0].v_handle = library;
    values[1].v_device = cpu;
    values[2].v_str = "default";
    return TVMArgs_Create(values, codes, 3);
#endif
}

static void print_output(TVMModuleHandle executor, int64_t index)
{
    TVMValue result;
    const TVMArgs args = number(index);
    EXPECT(call(executor, "get_output", &args, &result) == 0);
    const DLTensor *const tensor = (const DLTensor *)result.v_handle;
    EXPECT(tensor->dtype.code == kDLInt && tensor->dtype.bits == 8 && tensor->ndim == 2);
    for (int64_t i = 0; i < tensor->shape[1]; i++) {
        printf("%d\n", ((const int8_t *)tensor->data)[i]);
    }
}

int main(void)
{
    const TVMArgs none = TVMArgs_Create(NULL, NULL, 0);
    TVMArgs args = none;
    TVMValue result, values[2];
    uint32_t codes[2] = {kTVMStr, kTVMDLTensorHandle};

    EXPECT(TVMPlatformInitialize() == kTvmErrorNoError);
    EXPECT(TVMInitializeRuntime() == kTvmErrorNoError);
    EXPECT(REGISTER() == kTvmErrorNoError);
    EXPECT(REGISTER() == kTvmErrorFunctionAlreadyDefined);
    EXPECT(call(NULL, "runtime.SystemLib", &none, &result) == 0);
    const TVMModuleHandle library = result.v_handle;
    EXPECT(call(NULL, CREATE, &none, &result) == kTvmErrorFunctionCallNumArguments);
    args = executor_arguments(library);
    EXPECT(call(NULL, CREATE, &args, &result) == 0);
    const TVMModuleHandle executor = result.v_handle;
    EXPECT(call(NULL, CREATE, &args, &result) == kTvmErrorExecutorModuleAlreadyCreated);

    EXPECT(call(executor, "get_num_inputs", &none, &result) == 0 && result.v_int64 == 2);
    EXPECT(call(executor, "get_num_outputs", &none, &result) == 0 && result.v_int64 == 2);
    args = string("serving_default_right:0");
    EXPECT(call(executor, "get_input_index", &args, &result) == 0 && result.v_int64 == 1);
    EXPECT(call(executor, "get_input", &args, &result) == 0);
    int8_t *const right = (int8_t *)((DLTensor *)result.v_handle)->data;
    EXPECT(call(executor, "get_input_info", &args, &result) == 0);
    const struct TVMTensorInfo *const info = (const struct TVMTensorInfo *)result.v_handle;
    EXPECT(strcmp(info->name, "serving_default_right:0") == 0 && info->num_shape == 2);
    EXPECT(info->shape[0] == 1 && info->shape[1] == 6);
    EXPECT(info->dtype.code == kDLInt && info->dtype.bits == 8 && info->dtype.lanes == 1);
    args = number(0);
    EXPECT(call(executor, "get_input_name", &args, &result) == 0);
    EXPECT(strcmp(result.v_str, "serving_default_left:0") == 0);
    args = number(2);
    EXPECT(call(executor, "get_input_info", &args, &result) != 0);
    EXPECT(call(executor, "get_input_name", &args, &result) != 0);
    args = string("middle");
    EXPECT(call(executor, "get_input", &args, &result) == kTvmErrorExecutorModuleNoSuchInput);
    args = number(2);
    EXPECT(call(executor, "get_input", &args, &result) == kTvmErrorExecutorModuleNoSuchInput);
    EXPECT(call(executor, "get_output", &args, &result) == kTvmErrorFunctionCallInvalidArg);
    EXPECT(call(executor, "share_params", &args, &result) == kTvmErrorFunctionCallNotImplemented);

    int8_t left[6];
    int64_t shape[2] = {1, 6};
    DLTensor tensor;
    memset(&tensor, 0, sizeof tensor);
    tensor.data = left;
    tensor.device.device_type = kDLCPU;
    tensor.ndim = 2;
    tensor.dtype.code = kDLInt;
    tensor.dtype.bits = 8;
    tensor.dtype.lanes = 1;
    tensor.shape = shape;
    for (int i = 0; i < 6; i++) {
        left[i] = (int8_t)(i * 13);
        right[i] = (int8_t)(100 - i * 17);
    }
    values[0].v_str = "serving_default_left:0";
    values[1].v_handle = &tensor;
    args = TVMArgs_Create(values, codes, 2);
    EXPECT(call(executor, "set_input", &args, &result) == 0);
    shape[1] = 5; /* another shape than the model's */
    EXPECT(call(executor, "set_input", &args, &result) != 0);
    EXPECT(call(executor, "run", &none, &result) == 0);
    print_output(executor, 0);
    print_output(executor, 1);
    return 0;
}
