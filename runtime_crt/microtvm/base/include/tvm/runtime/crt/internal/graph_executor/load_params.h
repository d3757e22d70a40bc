/* load_params.h: a file of parameters as TVM serialises it, a list of arrays by name.
 *
 *     8 bytes  0xF7E58D4F05049CB7, and 8 of 0
 *     8        number of names; of each 8 for its length, and its characters
 *     8        number of arrays; of each, in the order of the names:
 *         8      0xDD5E40F096B4A13F, and 8 of 0
 *         4 + 4  kind and number of a device
 *         4      number of dimensions
 *         1+1+2  kind of elements, bits, lanes
 *         8      each extent
 *         8      bytes of the elements; then these
 *
 * Numbers are little-endian.
 */
#ifndef TVM_RUNTIME_CRT_INTERNAL_GRAPH_EXECUTOR_LOAD_PARAMS_H_
#define TVM_RUNTIME_CRT_INTERNAL_GRAPH_EXECUTOR_LOAD_PARAMS_H_

#include <stddef.h>
#include <stdint.h>

#include "tvm/runtime/crt/error_codes.h"
#include "tvm/runtime/crt/module.h"

#ifdef __cplusplus
extern "C" {
#endif

struct tvm_params {
    const uint8_t *bytes;
    size_t size;
};

/* Whether it begins as such a file does. */
int tvm_params_is_list(const struct tvm_params *list);

/* The number of arrays of a file of nothing else; -1 of one that is damaged. */
int64_t tvm_params_count(const struct tvm_params *list);

/* Copies all parameters of a model to their offsets from `place`; others of the file are left out.
 * kTvmErrorFunctionCallInvalidArg where one is missing, of another type or size, or where the file
 * is damaged. */
tvm_crt_error_t tvm_params_take(const struct tvm_params *list, const struct tvm_graph_model *model,
                                uint8_t *place);

#ifdef __cplusplus
}
#endif

#endif /* TVM_RUNTIME_CRT_INTERNAL_GRAPH_EXECUTOR_LOAD_PARAMS_H_ */
