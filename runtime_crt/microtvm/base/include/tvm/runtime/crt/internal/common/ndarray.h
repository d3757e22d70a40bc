/* ndarray.h: tensors that own their memory, which is the application's TVMPlatformMemoryAllocate().
 *
 * A function that fails returns a code of error_codes.h and keeps no memory.
 */
#ifndef TVM_RUNTIME_CRT_INTERNAL_COMMON_NDARRAY_H_
#define TVM_RUNTIME_CRT_INTERNAL_COMMON_NDARRAY_H_

#include <dlpack/dlpack.h>

#include "tvm/runtime/c_backend_api.h"
#include "tvm/runtime/c_runtime_api.h"

#ifdef __cplusplus
extern "C" {
#endif

/* What a serialised array begins with, and a list of them. */
static const uint64_t kTVMNDArrayMagic = 0xDD5E40F096B4A13FU;
static const uint64_t kTVMNDArrayListMagic = 0xF7E58D4F05049CB7U;

typedef struct TVMNDArray {
    DLTensor dl_tensor;       /* the first member: a pointer to an array is one to its tensor */
    uint32_t reference_count; /* 0 at first; see TVMNDArray_Release() */
    uint32_t is_view;         /* whether the elements are another array's */
} TVMNDArray;

/* An array without elements: its shape is copied, `data` is NULL. */
int TVMNDArray_Create(int32_t ndim, const tvm_index_t *shape, DLDataType dtype, DLDevice dev,
                      TVMNDArray *array);

/* An array of zeros. */
int TVMNDArray_Empty(int32_t ndim, const tvm_index_t *shape, DLDataType dtype, DLDevice dev,
                     TVMNDArray *array);

/* Another shape and type for the elements of `arr`, which must outlive it; what is larger than
 * `arr` is refused. */
int TVMNDArray_CreateView(TVMNDArray *arr, const tvm_index_t *shape, int32_t ndim,
                          DLDataType dtype, TVMNDArray *array_view);

/* Reads a serialised array from *strm, which is moved behind it; it must be complete. */
int TVMNDArray_Load(TVMNDArray *ret, const char **strm);

/* Bytes of the elements, of one lane each, as microTVM counted them; -1 where an extent is negative,
 * or where there are more than fit. */
int64_t TVMNDArray_DataSizeBytes(TVMNDArray *array);

/* Fills it by the application's TVMPlatformGenerateRandom(). */
int TVMNDArray_RandomFill(TVMNDArray *array);

void TVMNDArray_IncrementReference(TVMNDArray *arr);
uint32_t TVMNDArray_DecrementReference(TVMNDArray *arr);

/* Drops a reference, if there is one; without another one the memory is given back, the elements
 * first. */
int TVMNDArray_Release(TVMNDArray *arr);

#ifdef __cplusplus
}
#endif

#endif /* TVM_RUNTIME_CRT_INTERNAL_COMMON_NDARRAY_H_ */
