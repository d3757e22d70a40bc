/* tensor.h: views of tensors; the memory is always somebody else's. */
#ifndef MICROTIR_TENSOR_H
#define MICROTIR_TENSOR_H

#include <stdint.h>

#include "microtir/config.h"
#include "microtir/packed.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Makes `tensor` a row-major view of `data`. `shape` must live as long as the view. */
int32_t microtir_tensor_view(struct microtir_tensor *tensor, void *data,
                             struct microtir_dtype dtype, int32_t rank, const int64_t *shape);

/* Gives the number of bytes from the first element to the last, if there is no gap between them. */
int32_t microtir_tensor_bytes(const struct microtir_tensor *tensor, uint64_t *bytes);

/* Makes `rows` a view of rows [first, last) of the outermost dimension of `tensor`.
 *
 *   shape  `rank` extents of the caller's, which the view uses */
int32_t microtir_tensor_rows(const struct microtir_tensor *tensor, int64_t first, int64_t last,
                             int64_t *shape, struct microtir_tensor *rows);

/* Makes `reshaped` a view of the elements of `tensor`, which has no gaps, with another shape. */
int32_t microtir_tensor_reshape(const struct microtir_tensor *tensor, int32_t rank,
                                const int64_t *shape, struct microtir_tensor *reshaped);

/* Copies elements, whatever the strides of both are; they do not share memory, have the same type
 * and shape, and at most MICROTIR_MAX_RANK dimensions. */
int32_t microtir_tensor_copy(const struct microtir_tensor *from, const struct microtir_tensor *to);

#ifdef __cplusplus
}
#endif

#endif /* MICROTIR_TENSOR_H */
