/* An application that calls a packed function again and again with the same tensors, and has arrays
 * as microTVM made them. */
#include "refilled.h"

#include <tvm/runtime/crt/internal/common/ndarray.h>

static const DLDevice cpu = {kDLCPU, 0};

static void arrays(void)
{
    static const tvm_index_t shape[] = {2, 3}, flat[] = {6}, none[] = {0}, less[] = {5};
    const DLDataType int8 = {kDLInt, 8, 0};
    TVMNDArray array, view, empty;

    EXPECT(TVMNDArray_Empty(2, shape, int8, cpu, &array) == 0);
    EXPECT(TVMNDArray_DataSizeBytes(&array) == 6);
    EXPECT(TVMNDArray_Empty(1, flat, int8, cpu, &view) == 0);
    memcpy(array.dl_tensor.data, "\1\2\3\4\5\6", 6);
    EXPECT(TVMDeviceCopyDataFromTo(&array.dl_tensor, &view.dl_tensor, NULL) == 0);
    EXPECT(memcmp(view.dl_tensor.data, "\1\2\3\4\5\6", 6) == 0);
    EXPECT(TVMNDArray_Release(&view) == 0);
    EXPECT(TVMNDArray_Empty(1, less, int8, cpu, &view) == 0);
    EXPECT(TVMDeviceCopyDataFromTo(&array.dl_tensor, &view.dl_tensor, NULL) != 0);
    EXPECT(TVMNDArray_Release(&view) == 0);
    EXPECT(TVMNDArray_Empty(1, none, int8, cpu, &empty) == 0);
    EXPECT(TVMNDArray_DataSizeBytes(&empty) == 0 && TVMNDArray_Release(&empty) == 0);
    /* The first reference is the second owner's: an array is made without one. */
    EXPECT(array.reference_count == 0);
    TVMNDArray_IncrementReference(&array);
    TVMNDArray_IncrementReference(&array);
    EXPECT(TVMNDArray_Release(&array) == 0 && array.dl_tensor.data != NULL);
    EXPECT(TVMNDArray_Release(&array) == 0 && array.dl_tensor.data == NULL);
    EXPECT(manager->vleak_size == 0);
}

int main(void)
{
    float image[20], result[20];
    DLTensor in = tensor_at(image), out = tensor_at(result);
    TVMModuleHandle module = NULL;
    TVMFunctionHandle run = NULL;
    TVMValue values[2], nothing;
    int codes[2] = {kTVMDLTensorHandle, kTVMDLTensorHandle}, code = 0;

    EXPECT(TVMPlatformInitialize() == 0 && TVMInitializeRuntime() == 0);
    arrays();
    EXPECT(TVMModCreateFromCModule(TVMSystemLibEntryPoint(), &module) == 0);
    EXPECT(TVMModGetFunction(module, "tvmgen_default_run", 0, &run) == 0);
    values[0].v_handle = &in;
    values[1].v_handle = &out;
    for (int factor = 3; factor <= 7; factor += 4) {
        fill(image, factor);
        EXPECT(TVMFuncCall(run, values, codes, 2, &nothing, &code) == 0);
        print(result);
    }
    in.dtype.bits = 16;
    EXPECT(TVMFuncCall(run, values, codes, 2, &nothing, &code) != 0);
    in.dtype.bits = 32;
    in.ndim = 3;
    EXPECT(TVMFuncCall(run, values, codes, 2, &nothing, &code) != 0);
    return 0;
}
