/* Firmware in C on a platform in C++: the AOT executor, whose tensors it fills where they are. */
#include <stdio.h>
#include <tvm/runtime/crt/aot_executor.h>
#include <tvm/runtime/crt/crt.h>
#include <tvm/runtime/crt/module.h>
#include <tvm/runtime/crt/platform.h>

int main(void)
{
    const DLDevice device = {kDLCPU, 0};
    TVMAotExecutor *executor = NULL;
    TVMModuleHandle module = NULL;
    int turn;
    if (TVMPlatformInitialize() != kTvmErrorNoError || TVMInitializeRuntime() != kTvmErrorNoError
        || TVMModCreateFromCModule(TVMSystemLibEntryPoint(), &module) != 0
        || TVMAotExecutor_Create(module, device, &executor, "default") != 0
        || TVMAotExecutor_GetNumInputs(executor) != 2
        || TVMAotExecutor_GetNumOutputs(executor) != 2) {
        return 1;
    }
    for (turn = 1; turn >= 0; turn--) {
        int8_t *const left = (int8_t *)executor->args[0].dl_tensor.data;
        int8_t *const right = (int8_t *)executor->args[1].dl_tensor.data;
        for (int i = 0; i < 6; i++) {
            left[i] = (int8_t)(13 * i + turn);
            right[i] = (int8_t)(100 - 17 * i);
        }
        if (TVMAotExecutor_Run(executor) != 0) {
            return 2;
        }
    }
    for (int output = 2; output < 4; output++) {
        const DLTensor *const tensor = &executor->args[output].dl_tensor;
        for (int64_t i = 0; i < tensor->shape[1]; i++) {
            printf("%d\n", ((const int8_t *)tensor->data)[i]);
        }
    }
    return TVMAotExecutor_Release(executor, device);
}
