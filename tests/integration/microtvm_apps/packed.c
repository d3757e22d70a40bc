/* An application that calls a model's packed function with DLTensors. */
#include <stdio.h>
#include <tvm/runtime/c_backend_api.h>
#include <tvm/runtime/c_runtime_api.h>

int tvmgen_default_run(TVMValue *args, int *type_code, int num_args, TVMValue *out_value,
                       int *out_type_code, void *resource_handle);

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
    TVMBackendPackedCFunc run = tvmgen_default_run;
    int i;

    for (i = 0; i < 12; i++) {
        image[i] = (int8_t)(11 * i);
    }
    args[0].v_handle = &tensors[0];
    args[1].v_handle = &tensors[1];
    /* What is wrong is found out: a missing argument, one that is no tensor, another shape. */
    kinds[1] = kTVMArgInt;
    if (run(args, kinds, 1, &result, &result_kind, NULL) == 0
        || run(args, kinds, 2, &result, &result_kind, NULL) == 0) {
        return 1;
    }
    kinds[1] = kTVMDLTensorHandle;
    shapes[0][1] = 4;
    if (run(args, kinds, 2, &result, &result_kind, NULL) == 0) {
        return 2;
    }
    shapes[0][1] = 3;
    if (run(args, kinds, 2, &result, &result_kind, NULL) != 0 || result_kind != kTVMNullptr) {
        return 3;
    }
    for (i = 0; i < 5; i++) {
        printf("%d\n", scores[i]);
    }
    return 0;
}
