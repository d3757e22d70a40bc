/* tvm_ndarray.c: tensors that own their memory, of the application's manager. */
#include <stdint.h>
#include <string.h>

#include "tvm/runtime/crt/internal/common/ndarray.h"
#include "tvm/runtime/crt/packed_arguments.h"

/* Few applications have random numbers. */
#if defined(__GNUC__) && defined(__ELF__)
extern tvm_crt_error_t TVMPlatformGenerateRandom(uint8_t *buffer, size_t num_bytes)
        __attribute__((weak));
#define HAS_RANDOM (TVMPlatformGenerateRandom != NULL)
#else
#define HAS_RANDOM 1
#endif

static const DLDevice host = {kDLCPU, 0};

int TVMNDArray_Create(int32_t ndim, const tvm_index_t *shape, DLDataType dtype, DLDevice dev,
                      TVMNDArray *array)
{
    void *extents = NULL;
    if (array == NULL || ndim < 0 || ndim > TVM_CRT_MAX_NDIM || (ndim > 0 && shape == NULL)) {
        return (int)kTvmErrorFunctionCallInvalidArg;
    }
    (void)memset(array, 0, sizeof *array);
    if (ndim > 0) {
        const size_t bytes = sizeof(int64_t) * (size_t)ndim;
        const tvm_crt_error_t code = TVMPlatformMemoryAllocate(bytes, host, &extents);
        if (code != kTvmErrorNoError) {
            return (int)code;
        }
        (void)memcpy(extents, shape, bytes);
    }
    array->dl_tensor.shape = extents;
    array->dl_tensor.ndim = ndim;
    array->dl_tensor.dtype = dtype;
    array->dl_tensor.device = dev;
    return (int)kTvmErrorNoError;
}

int64_t TVMNDArray_DataSizeBytes(TVMNDArray *array)
{
    const DLTensor *const tensor = &array->dl_tensor;
    const int64_t count = tvm_element_count(tensor->shape, tensor->ndim);
    if (count < 0 || (tensor->dtype.bits > 0u && count > (INT64_MAX - 7) / tensor->dtype.bits)) {
        return -1;
    }
    return (count * tensor->dtype.bits + 7) / 8;
}

/* Gets the bytes of an array's elements; 0 where an object cannot have so many. */
static int is_object(TVMNDArray *array, size_t *bytes)
{
    const int64_t found = TVMNDArray_DataSizeBytes(array);
    if (found < 0 || (uint64_t)found > SIZE_MAX) {
        return 0;
    }
    *bytes = (size_t)found;
    return 1;
}

static int refused(TVMNDArray *array, int code)
{
    (void)TVMNDArray_Release(array);
    return code;
}

int TVMNDArray_Empty(int32_t ndim, const tvm_index_t *shape, DLDataType dtype, DLDevice dev,
                     TVMNDArray *array)
{
    const int status = TVMNDArray_Create(ndim, shape, dtype, dev, array);
    if (status != (int)kTvmErrorNoError) {
        return status;
    }
    size_t bytes = 0;
    if (!is_object(array, &bytes)) {
        return refused(array, (int)kTvmErrorFunctionCallInvalidArg);
    }
    void *data = NULL;
    /* A manager of memory may have no block of no bytes. */
    const size_t room = bytes == 0u ? 1u : bytes;
    const tvm_crt_error_t code = TVMPlatformMemoryAllocate(room, host, &data);
    if (code != kTvmErrorNoError) {
        return refused(array, (int)code);
    }
    array->dl_tensor.data = memset(data, 0, room);
    return (int)kTvmErrorNoError;
}

int TVMNDArray_CreateView(TVMNDArray *arr, const tvm_index_t *shape, int32_t ndim,
                          DLDataType dtype, TVMNDArray *array_view)
{
    if (arr == NULL) {
        return (int)kTvmErrorFunctionCallInvalidArg;
    }
    const int status =
            TVMNDArray_Create(ndim, shape, dtype, arr->dl_tensor.device, array_view);
    if (status != (int)kTvmErrorNoError) {
        return status;
    }
    size_t bytes = 0;
    size_t room = 0;
    if (!is_object(array_view, &bytes) || !is_object(arr, &room) || bytes > room) {
        return refused(array_view, (int)kTvmErrorFunctionCallInvalidArg);
    }
    array_view->dl_tensor.data = arr->dl_tensor.data;
    array_view->dl_tensor.byte_offset = arr->dl_tensor.byte_offset;
    array_view->is_view = 1;
    return (int)kTvmErrorNoError;
}

/* Copies the next `bytes` bytes of a file, which need no alignment. */
static void take(void *place, const char **from, size_t bytes)
{
    (void)memcpy(place, *from, bytes);
    *from += bytes;
}

int TVMNDArray_Load(TVMNDArray *ret, const char **strm)
{
    int64_t shape[TVM_CRT_MAX_NDIM] = {0};
    uint64_t magic, reserved;
    int32_t device[2], ndim;
    int64_t stated;
    DLDataType dtype;
    const char *from = *strm;

    take(&magic, &from, sizeof magic);
    take(&reserved, &from, sizeof reserved);
    take(device, &from, sizeof device);
    take(&ndim, &from, sizeof ndim);
    take(&dtype, &from, sizeof dtype);
    if (magic != kTVMNDArrayMagic || device[0] != (int32_t)kDLCPU || ndim < 0
        || ndim > TVM_CRT_MAX_NDIM) {
        return (int)kTvmErrorFunctionCallInvalidArg;
    }
    take(shape, &from, sizeof shape[0] * (size_t)ndim);
    take(&stated, &from, sizeof stated);
    const int status = TVMNDArray_Empty(ndim, shape, dtype, host, ret);
    if (status != (int)kTvmErrorNoError) {
        return status;
    }
    if (stated != TVMNDArray_DataSizeBytes(ret)) {
        return refused(ret, (int)kTvmErrorFunctionCallInvalidArg);
    }
    take(ret->dl_tensor.data, &from, (size_t)stated);
    *strm = from;
    return (int)kTvmErrorNoError;
}

int TVMNDArray_RandomFill(TVMNDArray *array)
{
    size_t bytes = 0;
    if (!is_object(array, &bytes) || array->dl_tensor.data == NULL) {
        return (int)kTvmErrorFunctionCallInvalidArg;
    }
    if (!HAS_RANDOM) {
        return (int)kTvmErrorFunctionCallNotImplemented;
    }
    return (int)TVMPlatformGenerateRandom(array->dl_tensor.data, bytes);
}

void TVMNDArray_IncrementReference(TVMNDArray *arr)
{
    arr->reference_count++;
}

uint32_t TVMNDArray_DecrementReference(TVMNDArray *arr)
{
    if (arr->reference_count > 0u) {
        arr->reference_count--;
    }
    return arr->reference_count;
}

/* Gives a block back; one that is not there is no error. */
static tvm_crt_error_t given_back(void *block)
{
    return block == NULL ? kTvmErrorNoError : TVMPlatformMemoryFree(block, host);
}

int TVMNDArray_Release(TVMNDArray *arr)
{
    tvm_crt_error_t code = kTvmErrorNoError;
    if (TVMNDArray_DecrementReference(arr) > 0u) {
        return (int)code;
    }
    if (arr->is_view == 0u) {
        code = given_back(arr->dl_tensor.data);
    }
    if (code == kTvmErrorNoError) {
        arr->dl_tensor.data = NULL;
        code = given_back(arr->dl_tensor.shape);
    }
    if (code == kTvmErrorNoError) {
        arr->dl_tensor.shape = NULL;
    }
    return (int)code;
}
