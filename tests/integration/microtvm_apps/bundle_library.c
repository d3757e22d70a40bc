/* The shared library of a model: functions over the graph executor, and its runtime. */
#include <string.h>
#include <tvm/runtime/c_runtime_api.h>
#include <tvm/runtime/crt/crt.h>
#include <tvm/runtime/crt/graph_executor.h>
#include <tvm/runtime/crt/packed_func.h>

#include "blobs.h"
#include "memory.c"

#ifdef __cplusplus
extern "C" {
#endif

TVM_DLL void *tvm_runtime_create(void);
TVM_DLL int tvm_runtime_set_input(void *handle, const char *name, int8_t *data, int64_t count);
TVM_DLL int tvm_runtime_run(void *handle);
TVM_DLL int tvm_runtime_get_output(void *handle, int index, int8_t *data, int64_t count);
TVM_DLL int tvm_runtime_destroy(void *handle);

#ifdef __cplusplus
}
#endif

static DLTensor row_of(int8_t *data, int64_t *shape)
{
    DLTensor tensor;
    memset(&tensor, 0, sizeof tensor);
    tensor.data = data;
    tensor.device.device_type = kDLCPU;
    tensor.ndim = 2;
    tensor.dtype.code = kDLInt;
    tensor.dtype.bits = 8;
    tensor.dtype.lanes = 1;
    tensor.shape = shape;
    return tensor;
}

void *tvm_runtime_create(void)
{
    TVMGraphExecutor *executor = NULL;
    TVMPackedFunc find;
    TVMArgs none = TVMArgs_Create(NULL, NULL, 0);
    DLDevice device;
    device.device_type = kDLCPU;
    device.device_id = 0;
    if (TVMPlatformInitialize() != kTvmErrorNoError || TVMInitializeRuntime() != kTvmErrorNoError
        || TVMPackedFunc_InitGlobalFunc(&find, "runtime.SystemLib", &none) != 0
        || TVMPackedFunc_Call(&find) != 0
        || TVMGraphExecutor_Create(build_graph_c_json, TVMArgs_AsModuleHandle(&find.ret_value, 0),
                                   &device, &executor)
            != 0
        || TVMGraphExecutor_LoadParams(executor, (const char *)build_params_c_bin,
                                       build_params_c_bin_len)
            != 0) {
        return NULL;
    }
    return executor;
}

int tvm_runtime_set_input(void *handle, const char *name, int8_t *data, int64_t count)
{
    int64_t shape[2] = {1, 0};
    DLTensor tensor = row_of(data, shape);
    shape[1] = count;
    if (TVMGraphExecutor_GetInputIndex((TVMGraphExecutor *)handle, name) < 0) {
        return -1;
    }
    TVMGraphExecutor_SetInput((TVMGraphExecutor *)handle, name, &tensor);
    return 0;
}

int tvm_runtime_run(void *handle)
{
    TVMGraphExecutor_Run((TVMGraphExecutor *)handle);
    return 0;
}

int tvm_runtime_get_output(void *handle, int index, int8_t *data, int64_t count)
{
    int64_t shape[2] = {1, 0};
    DLTensor tensor = row_of(data, shape);
    shape[1] = count;
    return TVMGraphExecutor_GetOutput((TVMGraphExecutor *)handle, index, &tensor);
}

int tvm_runtime_destroy(void *handle)
{
    TVMGraphExecutor *executor = (TVMGraphExecutor *)handle;
    return TVMGraphExecutor_Release(&executor) != 0 || manager->vleak_size != 0;
}
