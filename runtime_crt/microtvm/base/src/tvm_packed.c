/* tvm_packed.c: arguments of microTVM's packed functions as arguments of the runtime's. */
#include <stddef.h>

#include "microtir/packed.h"
#include "microtir/status.h"
#include "tvm/runtime/c_runtime_api.h"
#include "tvm/runtime/crt/packed_arguments.h"

/* microTVM described a bool as an unsigned integer of one bit, and stored it in a byte. */
static uint8_t stored_bits(DLDataType dtype)
{
    return (uint8_t)(dtype.bits == 1u ? 8u : dtype.bits);
}

static int32_t element_of(DLDataType dtype, struct microtir_dtype *element)
{
    /* Applications leave lanes 0, since microTVM did not read them. */
    if (dtype.lanes > 1u) {
        return MICROTIR_ERROR_TENSOR_DTYPE;
    }
    element->bits = stored_bits(dtype);
    switch (dtype.code) {
    case kDLInt:
        element->element = (uint8_t)MICROTIR_ELEMENT_SIGNED;
        return MICROTIR_OK;
    case kDLUInt:
        element->element = (uint8_t)(dtype.bits == 1u ? MICROTIR_ELEMENT_BOOL
                                                      : MICROTIR_ELEMENT_UNSIGNED);
        return MICROTIR_OK;
    case kDLFloat:
        element->element = (uint8_t)MICROTIR_ELEMENT_FLOAT;
        return MICROTIR_OK;
    case kDLBool:
        element->element = (uint8_t)MICROTIR_ELEMENT_BOOL;
        return MICROTIR_OK;
    default:
        return MICROTIR_ERROR_TENSOR_DTYPE;
    }
}

int32_t tvm_tensor_view(const DLTensor *given, struct microtir_tensor *tensor)
{
    if (given == NULL) {
        return MICROTIR_ERROR_NULL_POINTER;
    }
    tensor->data = given->data;
    tensor->rank = given->ndim;
    tensor->shape = given->shape;
    tensor->strides = given->strides;
    tensor->byte_offset = given->byte_offset;
    return element_of(given->dtype, &tensor->dtype);
}

int64_t tvm_element_count(const int64_t *shape, int64_t rank)
{
    int64_t count = 1;
    for (int64_t i = 0; i < rank; i++) {
        if (shape[i] < 0 || (shape[i] > 0 && count > INT64_MAX / shape[i])) {
            return -1;
        }
        count *= shape[i];
    }
    return count;
}

#if TVM_CRT_STRICT_TENSORS
/* What microTVM never read. */
static int32_t check_strictly(const DLTensor *given, const struct TVMTensorInfo *own)
{
    struct microtir_dtype element;
    struct microtir_dtype expected;
    int64_t stride = 1;
    if (given->dtype.lanes != 1u || element_of(given->dtype, &element) != MICROTIR_OK
        || element_of(own->dtype, &expected) != MICROTIR_OK
        || element.element != expected.element) {
        return MICROTIR_ERROR_TENSOR_DTYPE;
    }
    for (int32_t i = given->ndim - 1; i >= 0; i--) {
        if (given->shape[i] != own->shape[i]) {
            return MICROTIR_ERROR_TENSOR_SHAPE;
        }
        if (given->strides != NULL && given->shape[i] != 1 && given->strides[i] != stride) {
            return MICROTIR_ERROR_TENSOR_STRIDES;
        }
        stride *= given->shape[i];
    }
    return given->byte_offset != 0u ? MICROTIR_ERROR_TENSOR_STRIDES : MICROTIR_OK;
}
#endif

int32_t tvm_tensor_check(const DLTensor *given, const struct TVMTensorInfo *own)
{
    if (given == NULL || given->data == NULL) {
        return MICROTIR_ERROR_NULL_POINTER;
    }
    if (stored_bits(given->dtype) != stored_bits(own->dtype)) {
        return MICROTIR_ERROR_TENSOR_DTYPE;
    }
    if ((int64_t)given->ndim != own->num_shape) {
        return MICROTIR_ERROR_TENSOR_RANK;
    }
    if (given->ndim > 0 && given->shape == NULL) {
        return MICROTIR_ERROR_NULL_POINTER;
    }
    if (tvm_element_count(given->shape, given->ndim)
        != tvm_element_count(own->shape, own->num_shape)) {
        return MICROTIR_ERROR_TENSOR_SHAPE;
    }
#if TVM_CRT_STRICT_TENSORS
    return check_strictly(given, own);
#else
    return MICROTIR_OK;
#endif
}

int32_t tvm_packed_arguments(const TVMValue *args, const int *type_codes, int num_args,
                             int32_t count, const struct TVMTensorInfo *own,
                             struct microtir_tensor *tensors, union microtir_value *values)
{
    if (args == NULL || type_codes == NULL) {
        return MICROTIR_ERROR_NULL_POINTER;
    }
    if ((int32_t)num_args != count) {
        return MICROTIR_ERROR_ARGUMENT_COUNT;
    }
    for (int32_t i = 0; i < count; i++) {
        const DLTensor *const given = (const DLTensor *)args[i].v_handle;
        if (type_codes[i] != (int)kTVMDLTensorHandle && type_codes[i] != (int)kTVMNDArrayHandle) {
            return MICROTIR_ERROR_ARGUMENT_KIND;
        }
        int32_t status = tvm_tensor_check(given, &own[i]);
        if (status == MICROTIR_OK) {
            status = element_of(own[i].dtype, &tensors[i].dtype);
        }
        if (status != MICROTIR_OK) {
            return status;
        }
        /* Only the data is the application's: the rest of its tensor may be unset. */
        tensors[i].data = given->data;
        tensors[i].rank = (int32_t)own[i].num_shape;
        tensors[i].shape = own[i].shape;
        tensors[i].strides = NULL;
        tensors[i].byte_offset = 0;
        values[i].v_tensor = &tensors[i];
    }
    return MICROTIR_OK;
}
