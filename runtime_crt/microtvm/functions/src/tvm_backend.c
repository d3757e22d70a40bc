/* tvm_backend.c: memory for operators and tensors of the application, by its own hooks. */
#include <stdint.h>
#include <string.h>

#include "microtir/status.h"
#include "microtir/tensor.h"
#include "tvm/runtime/c_backend_api.h"
#include "tvm/runtime/c_runtime_api.h"
#include "tvm/runtime/crt/internal/common/ndarray.h"
#include "tvm/runtime/crt/packed_arguments.h"

/* Of memory for a tensor of a shape: microTVM's. */
#define BLOCK_ALIGNMENT 64u

static DLDevice device_of(int device_type, int device_id)
{
    const DLDevice device = {(DLDeviceType)device_type, (int32_t)device_id};
    return device;
}

void *TVMBackendAllocWorkspace(int device_type, int device_id, uint64_t nbytes,
                               int dtype_code_hint, int dtype_bits_hint)
{
    void *block = NULL;
    tvm_crt_error_t code = kTvmErrorPlatformNoMemory;
    (void)dtype_code_hint;
    (void)dtype_bits_hint;
    if (nbytes <= SIZE_MAX) {
        code = TVMPlatformMemoryAllocate((size_t)nbytes, device_of(device_type, device_id), &block);
    }
    if (code != kTvmErrorNoError) {
        TVMPlatformAbort(code);
    }
    return block;
}

int TVMBackendFreeWorkspace(int device_type, int device_id, void *ptr)
{
    return (int)TVMPlatformMemoryFree(ptr, device_of(device_type, device_id));
}

int TVMBackendParallelLaunch(FTVMParallelLambda flambda, void *cdata, int num_task)
{
    TVMParallelGroupEnv env = {NULL, 1};
    (void)num_task;
    return flambda(0, &env, cdata);
}

int TVMBackendRegisterSystemLibSymbol(const char *name, void *ptr)
{
    return TVMFuncRegisterGlobal(name, ptr, 0);
}

int TVMArrayAlloc(const tvm_index_t *shape, int ndim, int dtype_code, int dtype_bits,
                  int dtype_lanes, int device_type, int device_id, TVMArrayHandle *out)
{
    const DLDataType dtype = {(uint8_t)dtype_code, (uint8_t)dtype_bits, (uint16_t)dtype_lanes};
    TVMNDArray array;
    const int status =
            TVMNDArray_Empty(ndim, shape, dtype, device_of(device_type, device_id), &array);
    if (status == (int)kTvmErrorNoError) {
        **out = array.dl_tensor;
    }
    return status;
}

int TVMArrayFree(TVMArrayHandle handle)
{
    TVMNDArray array = {*handle, 0, 0};
    const int status = TVMNDArray_Release(&array);
    *handle = array.dl_tensor;
    return status;
}

int TVMDeviceAllocDataSpace(DLDevice dev, size_t nbytes, size_t alignment, DLDataType type_hint,
                            void **out_data)
{
    (void)type_hint;
    if (alignment == 0u || nbytes > SIZE_MAX - alignment) {
        return (int)kTvmErrorFunctionCallInvalidArg;
    }
    const size_t whole = (nbytes + alignment - 1u) / alignment * alignment;
    return (int)TVMPlatformMemoryAllocate(whole, dev, out_data);
}

int TVMDeviceFreeDataSpace(DLDevice dev, void *ptr)
{
    return (int)TVMPlatformMemoryFree(ptr, dev);
}

int TVMDeviceAllocDataSpaceWithScope(DLDevice dev, int ndim, const int64_t *shape, DLDataType dtype,
                                     const char *mem_scope, void **out_data)
{
    const int is_shape = ndim == 0 || (ndim > 0 && shape != NULL);
    const int64_t count = is_shape != 0 ? tvm_element_count(shape, ndim) : -1;
    const int64_t size = ((int64_t)dtype.bits * dtype.lanes + 7) / 8;
    (void)mem_scope;
    if (count < 0 || out_data == NULL || (size > 0 && count > INT64_MAX / size)
        || (uint64_t)(count * size) > SIZE_MAX) {
        return (int)kTvmErrorFunctionCallInvalidArg;
    }
    return TVMDeviceAllocDataSpace(dev, (size_t)(count * size), BLOCK_ALIGNMENT, dtype, out_data);
}

int TVMByteArrayFree(TVMByteArray *arr)
{
    const DLDevice device = {kDLCPU, 0};
    const tvm_crt_error_t code = TVMPlatformMemoryFree((void *)(uintptr_t)arr->data, device);
    return (int)(code == kTvmErrorNoError ? TVMPlatformMemoryFree(arr, device) : code);
}

static uint8_t *first_byte(const DLTensor *tensor)
{
    return (uint8_t *)tensor->data + tensor->byte_offset;
}

/* Copies elements without gaps: as in microTVM, shapes may differ that have as many elements. */
static int copy_dense(const DLTensor *from, const DLTensor *to)
{
    const int64_t count = tvm_element_count(from->shape, from->ndim);
    const int64_t size = (from->dtype.bits + 7) / 8;
    if (count < 0 || count != tvm_element_count(to->shape, to->ndim)
        || from->dtype.bits != to->dtype.bits || (count > 0 && size > INT64_MAX / count)
        || (uint64_t)(count * size) > SIZE_MAX) {
        return (int)kTvmErrorFunctionCallInvalidArg;
    }
    if (first_byte(to) != first_byte(from)) {
        (void)memcpy(first_byte(to), first_byte(from), (size_t)(count * size));
    }
    return (int)kTvmErrorNoError;
}

int TVMDeviceCopyDataFromTo(DLTensor *from, DLTensor *to, TVMStreamHandle stream)
{
    struct microtir_tensor source;
    struct microtir_tensor target;
    (void)stream;
    if (from == NULL || to == NULL || from->data == NULL || to->data == NULL
        || (from->ndim > 0 && from->shape == NULL) || (to->ndim > 0 && to->shape == NULL)) {
        return (int)kTvmErrorFunctionCallInvalidArg;
    }
    if (from->strides == NULL && to->strides == NULL) {
        return copy_dense(from, to);
    }
    int32_t status = tvm_tensor_view(from, &source);
    if (status == MICROTIR_OK) {
        status = tvm_tensor_view(to, &target);
    }
    if (status == MICROTIR_OK) {
        status = microtir_tensor_copy(&source, &target);
    }
    return (int)(status == MICROTIR_OK ? kTvmErrorNoError : kTvmErrorFunctionCallInvalidArg);
}

int TVMStreamCreate(int device_type, int device_id, TVMStreamHandle *out)
{
    (void)device_type;
    (void)device_id;
    if (out == NULL) {
        return (int)kTvmErrorFunctionCallInvalidArg;
    }
    *out = NULL;
    return (int)kTvmErrorNoError;
}

int TVMStreamFree(int device_type, int device_id, TVMStreamHandle stream)
{
    (void)device_type;
    (void)device_id;
    (void)stream;
    return (int)kTvmErrorNoError;
}

int TVMSetStream(int device_type, int device_id, TVMStreamHandle handle)
{
    return TVMStreamFree(device_type, device_id, handle); /* nothing, too */
}

int TVMSynchronize(int device_type, int device_id, TVMStreamHandle stream)
{
    (void)device_type;
    (void)device_id;
    (void)stream;
    return (int)kTvmErrorNoError;
}
