#include "microtir/tensor.h"

#include <stddef.h>

#include "microtir/status.h"

#define MAX_BYTES ((uint64_t)INT64_MAX)

static int32_t check_view(const struct microtir_tensor *tensor)
{
    if (tensor == NULL || tensor->data == NULL || (tensor->rank > 0 && tensor->shape == NULL)) {
        return MICROTIR_ERROR_NULL_POINTER;
    }
    return tensor->rank < 0 ? MICROTIR_ERROR_TENSOR_RANK : MICROTIR_OK;
}

/* Bytes of an element: those of types that C has. */
static int32_t element_bytes(struct microtir_dtype dtype, uint64_t *bytes)
{
    if (dtype.bits != 8u && dtype.bits != 16u && dtype.bits != 32u && dtype.bits != 64u) {
        return MICROTIR_ERROR_TENSOR_DTYPE;
    }
    *bytes = (uint64_t)dtype.bits / 8u;
    return MICROTIR_OK;
}

/* Number of bytes of a tensor without gaps. */
static int32_t bytes_of(struct microtir_dtype dtype, int32_t rank, const int64_t *shape,
                        uint64_t *bytes)
{
    uint64_t product = 0;
    const int32_t status = element_bytes(dtype, &product);
    if (status != MICROTIR_OK) {
        return status;
    }
    for (int32_t i = 0; i < rank; i++) {
        if (shape[i] < 0 || (shape[i] > 0 && product > MAX_BYTES / (uint64_t)shape[i])) {
            return MICROTIR_ERROR_TENSOR_SHAPE;
        }
        product *= (uint64_t)shape[i];
    }
    *bytes = product;
    return MICROTIR_OK;
}

/* Elements between neighbours of one dimension. Unsigned, as all sums of distances are: a tensor
 * without elements has extents of any size behind its zero, whose product may not overflow, and
 * sums of negative strides come out right. */
static uint64_t stride_of(const struct microtir_tensor *tensor, int32_t dimension)
{
    uint64_t stride = 1;
    if (tensor->strides != NULL) {
        return (uint64_t)tensor->strides[dimension];
    }
    for (int32_t i = dimension + 1; i < tensor->rank; i++) {
        stride *= (uint64_t)tensor->shape[i];
    }
    return stride;
}

static int32_t check_compact(const struct microtir_tensor *tensor)
{
    uint64_t expected = 1;
    for (int32_t i = tensor->rank - 1; i >= 0; i--) {
        if (tensor->shape[i] != 1 && stride_of(tensor, i) != expected) {
            return MICROTIR_ERROR_TENSOR_STRIDES;
        }
        expected *= (uint64_t)tensor->shape[i];
    }
    return MICROTIR_OK;
}

int32_t microtir_tensor_view(struct microtir_tensor *tensor, void *data,
                             struct microtir_dtype dtype, int32_t rank, const int64_t *shape)
{
    uint64_t bytes = 0;
    if (tensor == NULL) {
        return MICROTIR_ERROR_NULL_POINTER;
    }
    struct microtir_tensor view = {data, rank, {0, 0}, shape, NULL, 0};
    view.dtype = dtype;
    int32_t status = check_view(&view);
    if (status == MICROTIR_OK) {
        status = bytes_of(dtype, rank, shape, &bytes);
    }
    if (status == MICROTIR_OK) {
        *tensor = view;
    }
    return status;
}

int32_t microtir_tensor_bytes(const struct microtir_tensor *tensor, uint64_t *bytes)
{
    int32_t status = check_view(tensor);
    if (bytes == NULL) {
        return MICROTIR_ERROR_NULL_POINTER;
    }
    if (status == MICROTIR_OK) {
        status = bytes_of(tensor->dtype, tensor->rank, tensor->shape, bytes);
    }
    return status == MICROTIR_OK ? check_compact(tensor) : status;
}

int32_t microtir_tensor_rows(const struct microtir_tensor *tensor, int64_t first, int64_t last,
                             int64_t *shape, struct microtir_tensor *rows)
{
    uint64_t size = 0;
    int32_t status = check_view(tensor);
    if (status != MICROTIR_OK) {
        return status;
    }
    if (shape == NULL || rows == NULL) {
        return MICROTIR_ERROR_NULL_POINTER;
    }
    if (tensor->rank == 0) {
        return MICROTIR_ERROR_TENSOR_RANK;
    }
    if (first < 0 || last < first || last > tensor->shape[0]) {
        return MICROTIR_ERROR_TENSOR_SHAPE;
    }
    status = bytes_of(tensor->dtype, tensor->rank, tensor->shape, &size);
    if (status != MICROTIR_OK) {
        return status;
    }
    (void)element_bytes(tensor->dtype, &size);
    const uint64_t skipped = (uint64_t)first * stride_of(tensor, 0);
    for (int32_t i = 0; i < tensor->rank; i++) {
        shape[i] = tensor->shape[i];
    }
    shape[0] = last - first;
    *rows = *tensor;
    rows->shape = shape;
    rows->byte_offset = tensor->byte_offset + skipped * size;
    return MICROTIR_OK;
}

int32_t microtir_tensor_reshape(const struct microtir_tensor *tensor, int32_t rank,
                                const int64_t *shape, struct microtir_tensor *reshaped)
{
    struct microtir_tensor view = {NULL, 0, {0, 0}, NULL, NULL, 0};
    uint64_t before = 0;
    uint64_t after = 0;
    int32_t status = microtir_tensor_bytes(tensor, &before);
    if (status == MICROTIR_OK) {
        status = microtir_tensor_view(&view, tensor->data, tensor->dtype, rank, shape);
    }
    if (status == MICROTIR_OK) {
        status = microtir_tensor_bytes(&view, &after);
    }
    if (status != MICROTIR_OK) {
        return status;
    }
    if (before != after) {
        return MICROTIR_ERROR_TENSOR_SHAPE;
    }
    if (reshaped == NULL) {
        return MICROTIR_ERROR_NULL_POINTER;
    }
    view.byte_offset = tensor->byte_offset;
    *reshaped = view;
    return MICROTIR_OK;
}

static int32_t check_copy(const struct microtir_tensor *from, const struct microtir_tensor *to)
{
    int32_t status = check_view(from);
    if (status == MICROTIR_OK) {
        status = check_view(to);
    }
    if (status != MICROTIR_OK) {
        return status;
    }
    if (from->dtype.element != to->dtype.element || from->dtype.bits != to->dtype.bits) {
        return MICROTIR_ERROR_TENSOR_DTYPE;
    }
    if (from->rank != to->rank || from->rank > MICROTIR_MAX_RANK) {
        return MICROTIR_ERROR_TENSOR_RANK;
    }
    for (int32_t i = 0; i < from->rank; i++) {
        if (from->shape[i] != to->shape[i]) {
            return MICROTIR_ERROR_TENSOR_SHAPE;
        }
    }
    return MICROTIR_OK;
}

/* Address of the element at `position`. */
static uint8_t *element_at(const struct microtir_tensor *tensor, const int64_t *position,
                           uint64_t size)
{
    uint64_t offset = tensor->byte_offset;
    for (int32_t i = 0; i < tensor->rank; i++) {
        offset += (uint64_t)position[i] * stride_of(tensor, i) * size;
    }
    return (uint8_t *)tensor->data + (int64_t)offset;
}

/* Moves to the next element in row-major order; 0 behind the last one. */
static int32_t advance(const struct microtir_tensor *tensor, int64_t *position)
{
    for (int32_t i = tensor->rank - 1; i >= 0; i--) {
        position[i]++;
        if (position[i] < tensor->shape[i]) {
            return 1;
        }
        position[i] = 0;
    }
    return 0;
}

int32_t microtir_tensor_copy(const struct microtir_tensor *from, const struct microtir_tensor *to)
{
    int64_t position[MICROTIR_MAX_RANK];
    uint64_t bytes = 0;
    uint64_t size = 0;
    int32_t status = check_copy(from, to);
    if (status == MICROTIR_OK) {
        status = bytes_of(from->dtype, from->rank, from->shape, &bytes);
    }
    if (status != MICROTIR_OK || bytes == 0u) {
        return status;
    }
    (void)element_bytes(from->dtype, &size);
    for (int32_t i = 0; i < from->rank; i++) {
        position[i] = 0;
    }
    int32_t is_left = 1;
    while (is_left != 0) {
        const uint8_t *const source = element_at(from, position, size);
        uint8_t *const target = element_at(to, position, size);
        for (uint64_t i = 0; i < size; i++) {
            target[i] = source[i];
        }
        is_left = advance(from, position);
    }
    return MICROTIR_OK;
}
