/* packed_arguments.h: what generated packed functions of microTVM's interface call. */
#ifndef TVM_RUNTIME_CRT_PACKED_ARGUMENTS_H_
#define TVM_RUNTIME_CRT_PACKED_ARGUMENTS_H_

#include "microtir/packed.h"
#include "tvm/runtime/c_runtime_api.h"
#include "tvm/runtime/metadata_types.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Makes a view of a DLTensor; MICROTIR_ERROR_TENSOR_DTYPE for elements that microtir does not
 * have. */
int32_t tvm_tensor_view(const DLTensor *given, struct microtir_tensor *tensor);

/* Number of elements; -1 where an extent is negative, or where there are more than can be. */
int64_t tvm_element_count(const int64_t *shape, int64_t rank);

/* Checks a tensor of the application, whose data is row-major without gaps, against `own`.
 *
 * As in microTVM, rank, bits and number of elements must be those of `own`. What microTVM never
 * read may be anything: the kind of elements, lanes, strides and byte_offset, which applications
 * leave unset, and single extents. With TVM_CRT_STRICT_TENSORS it is all compared. */
int32_t tvm_tensor_check(const DLTensor *given, const struct TVMTensorInfo *own);

/* Makes `count` tensors and values of microtir from as many arguments that are DLTensors.
 *
 *   own              the tensors of the model, `count` of them
 *   tensors, values  `count` of each
 *
 * Returns MICROTIR_OK, or the status of what is wrong: another number of arguments, one that is no
 * tensor, or what tvm_tensor_check() refuses. */
int32_t tvm_packed_arguments(const TVMValue *args, const int *type_codes, int num_args,
                             int32_t count, const struct TVMTensorInfo *own,
                             struct microtir_tensor *tensors, union microtir_value *values);

#ifdef __cplusplus
}
#endif

#endif /* TVM_RUNTIME_CRT_PACKED_ARGUMENTS_H_ */
