/* Two executors of one model, of which one reads the weights that the other has loaded: each has its
 * tensors, and there is one copy of the weights. */
#include <stdio.h>
#include <string.h>
#include <tvm/runtime/c_runtime_api.h>
#include <tvm/runtime/crt/crt.h>
#include <tvm/runtime/crt/graph_executor.h>
#include <tvm/runtime/crt/module.h>

#include "blobs.h"
#include "memory.c"

#define EXPECT(condition)                  \
    do {                                   \
        if (!(condition)) {                \
            printf("line %d\n", __LINE__); \
            exit(1);                       \
        }                                  \
    } while (0)

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

static void run(TVMGraphExecutor *executor, int turn, int8_t *scores, int8_t *features)
{
    static int8_t left[6], right[6];
    int64_t in[2] = {1, 6}, out[2] = {1, 4};
    DLTensor first = row_of(left, in), second = row_of(right, in);
    DLTensor one = row_of(scores, out), two = row_of(features, in);
    int i;
    for (i = 0; i < 6; i++) {
        left[i] = (int8_t)(13 * i + turn);
        right[i] = (int8_t)(100 - 17 * i);
    }
    TVMGraphExecutor_SetInput(executor, "serving_default_left:0", &first);
    TVMGraphExecutor_SetInput(executor, "serving_default_right:0", &second);
    TVMGraphExecutor_Run(executor);
    EXPECT(TVMGraphExecutor_GetOutput(executor, 0, &one) == 0);
    EXPECT(TVMGraphExecutor_GetOutput(executor, 1, &two) == 0);
}

int main(void)
{
    const char *const params = (const char *)build_params_c_bin;
    TVMGraphExecutor *owner = NULL, *guest = NULL;
    TVMModuleHandle module = NULL;
    int8_t scores[4], features[6], same[4], other[6];
    DLDevice cpu;
    int i;

    cpu.device_type = kDLCPU;
    cpu.device_id = 0;
    EXPECT(TVMPlatformInitialize() == kTvmErrorNoError);
    EXPECT(TVMInitializeRuntime() == kTvmErrorNoError);
    EXPECT(TVMModCreateFromCModule(TVMSystemLibEntryPoint(), &module) == 0);
    EXPECT(TVMGraphExecutor_Create(build_graph_c_json, module, &cpu, &owner) == 0);
    EXPECT(TVMGraphExecutor_Create(build_graph_c_json, module, &cpu, &guest) == 0);
    EXPECT(TVMGraphExecutor_ShareParams(guest, owner) == kTvmErrorFunctionCallInvalidArg);
    EXPECT(TVMGraphExecutor_LoadParams(owner, params, build_params_c_bin_len) == 0);
    EXPECT(TVMGraphExecutor_LoadParams(guest, params, build_params_c_bin_len) == 0);
    EXPECT(manager->vleak_size == 4);
    EXPECT(TVMGraphExecutor_ShareParams(guest, guest) == kTvmErrorFunctionCallInvalidArg);
    EXPECT(TVMGraphExecutor_ShareParams(guest, owner) == 0);
    EXPECT(manager->vleak_size == 3); /* its own copy was given back */
    run(guest, 1, same, other);
    run(owner, 0, scores, features);
    run(guest, 0, same, other);
    EXPECT(memcmp(scores, same, sizeof same) == 0 && memcmp(features, other, sizeof other) == 0);
    for (i = 0; i < 4; i++) {
        printf("%d\n", same[i]);
    }
    for (i = 0; i < 6; i++) {
        printf("%d\n", other[i]);
    }
    EXPECT(TVMGraphExecutor_Release(&guest) == 0 && manager->vleak_size == 2);
    EXPECT(TVMGraphExecutor_Release(&owner) == 0 && manager->vleak_size == 0);
    return 0;
}
