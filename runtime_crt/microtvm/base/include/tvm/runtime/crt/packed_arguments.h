/* packed_arguments.h: what generated packed functions of microTVM's interface call. */
#ifndef TVM_RUNTIME_CRT_PACKED_ARGUMENTS_H_
#define TVM_RUNTIME_CRT_PACKED_ARGUMENTS_H_

#include "microtir/packed.h"
#include "tvm/runtime/c_runtime_api.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Makes a view of a DLTensor; MICROTIR_ERROR_TENSOR_DTYPE for elements that microtir does not
 * have. */
int32_t tvm_tensor_view(const DLTensor *given, struct microtir_tensor *tensor);

/* Makes `count` tensors and values of microtir from as many arguments that are DLTensors.
 *
 *   tensors, values  `count` of each
 *
 * Returns MICROTIR_OK, or the status of what is wrong: another number of arguments, one that is no
 * tensor, or elements of a type that microtir does not have. */
int32_t tvm_packed_arguments(const TVMValue *args, const int *type_codes, int num_args,
                             int32_t count, struct microtir_tensor *tensors,
                             union microtir_value *values);

#ifdef __cplusplus
}
#endif

#endif /* TVM_RUNTIME_CRT_PACKED_ARGUMENTS_H_ */
