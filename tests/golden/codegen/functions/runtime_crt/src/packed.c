#include "microtir/packed.h"

#include <stddef.h>

#include "microtir/config.h"
#include "microtir/status.h"

int32_t microtir_check_count(const union microtir_value *args, const int32_t *kinds, int32_t count,
                             int32_t expected)
{
    if (count != expected) {
        return MICROTIR_ERROR_ARGUMENT_COUNT;
    }
    if (expected > 0 && (args == NULL || kinds == NULL)) {
        return MICROTIR_ERROR_NULL_POINTER;
    }
    return MICROTIR_OK;
}

#if MICROTIR_CHECK_TENSORS
/* Strides of dimensions with one element are never used and may be anything. */
static int32_t check_strides(const struct microtir_tensor *tensor)
{
    int64_t expected = 1;
    if (tensor->strides == NULL) {
        return MICROTIR_OK;
    }
    for (int32_t i = tensor->rank - 1; i >= 0; i--) {
        if (tensor->shape[i] != 1 && tensor->strides[i] != expected) {
            return MICROTIR_ERROR_TENSOR_STRIDES;
        }
        expected *= tensor->shape[i];
    }
    return MICROTIR_OK;
}

static int32_t check_tensor(const struct microtir_tensor *tensor,
                            const struct microtir_tensor_type *type)
{
    if (tensor->dtype.element != type->dtype.element || tensor->dtype.bits != type->dtype.bits) {
        return MICROTIR_ERROR_TENSOR_DTYPE;
    }
    if (tensor->rank != type->rank) {
        return MICROTIR_ERROR_TENSOR_RANK;
    }
    if (type->rank > 0 && tensor->shape == NULL) {
        return MICROTIR_ERROR_NULL_POINTER;
    }
    for (int32_t i = 0; i < type->rank; i++) {
        if (tensor->shape[i] != type->shape[i]) {
            return MICROTIR_ERROR_TENSOR_SHAPE;
        }
    }
    return check_strides(tensor);
}
#endif

/* Address of the first element. */
static int32_t data_of(const struct microtir_tensor *tensor, uint32_t alignment, void **data)
{
    if (tensor->data == NULL) {
        return MICROTIR_ERROR_NULL_POINTER;
    }
    uint8_t *const first = (uint8_t *)tensor->data + tensor->byte_offset;
#if MICROTIR_CHECK_TENSORS
    if ((uintptr_t)first % alignment != 0) {
        return MICROTIR_ERROR_TENSOR_ALIGNMENT;
    }
#else
    (void)alignment;
#endif
    *data = first;
    return MICROTIR_OK;
}

static int32_t tensor_of(const union microtir_value *args, const int32_t *kinds, int32_t index,
                         const struct microtir_tensor **tensor)
{
    if (kinds[index] != MICROTIR_KIND_TENSOR) {
        return MICROTIR_ERROR_ARGUMENT_KIND;
    }
    if (args[index].v_tensor == NULL) {
        return MICROTIR_ERROR_NULL_POINTER;
    }
    *tensor = args[index].v_tensor;
    return MICROTIR_OK;
}

int32_t microtir_tensor_argument(const union microtir_value *args, const int32_t *kinds,
                                 int32_t index, const struct microtir_tensor_type *type,
                                 void **data)
{
    const struct microtir_tensor *tensor = NULL;
    int32_t status = tensor_of(args, kinds, index, &tensor);
#if MICROTIR_CHECK_TENSORS
    if (status == MICROTIR_OK) {
        status = check_tensor(tensor, type);
    }
#endif
    return status == MICROTIR_OK ? data_of(tensor, type->alignment, data) : status;
}

int32_t microtir_integer_argument(const union microtir_value *args, const int32_t *kinds,
                                  int32_t index, int64_t low, int64_t high, int64_t *value)
{
    if (kinds[index] != MICROTIR_KIND_INTEGER) {
        return MICROTIR_ERROR_ARGUMENT_KIND;
    }
    if (args[index].v_integer < low || args[index].v_integer > high) {
        return MICROTIR_ERROR_ARGUMENT_RANGE;
    }
    *value = args[index].v_integer;
    return MICROTIR_OK;
}

int32_t microtir_workspace_argument(const union microtir_value *args, const int32_t *kinds,
                                    int32_t index, uint32_t bytes, uint32_t alignment, void **data)
{
    const struct microtir_tensor *tensor = NULL;
    if (bytes == 0) {
        *data = NULL;
        return MICROTIR_OK;
    }
    const int32_t status = tensor_of(args, kinds, index, &tensor);
    if (status != MICROTIR_OK) {
        return status;
    }
#if MICROTIR_CHECK_TENSORS
    if (tensor->dtype.element != MICROTIR_ELEMENT_UNSIGNED || tensor->dtype.bits != 8) {
        return MICROTIR_ERROR_TENSOR_DTYPE;
    }
    if (tensor->rank != 1) {
        return MICROTIR_ERROR_TENSOR_RANK;
    }
    if (tensor->shape == NULL) {
        return MICROTIR_ERROR_NULL_POINTER;
    }
    if (tensor->shape[0] < (int64_t)bytes) {
        return MICROTIR_ERROR_WORKSPACE_SIZE;
    }
    const int32_t strides = check_strides(tensor);
    if (strides != MICROTIR_OK) {
        return strides;
    }
#endif
    return data_of(tensor, alignment, data);
}
