/* tvm_packed.c: arguments of microTVM's packed functions as arguments of the runtime's. */
#include "microtir/packed.h"
#include "microtir/status.h"
#include "tvm/runtime/c_runtime_api.h"
#include "tvm/runtime/crt/packed_arguments.h"

static int32_t element_of(DLDataType dtype, struct microtir_dtype *element)
{
    if (dtype.lanes != 1u) {
        return MICROTIR_ERROR_TENSOR_DTYPE;
    }
    element->bits = dtype.bits;
    switch (dtype.code) {
    case kDLInt:
        element->element = (uint8_t)MICROTIR_ELEMENT_SIGNED;
        return MICROTIR_OK;
    case kDLUInt:
        element->element = (uint8_t)(dtype.bits == 1u ? MICROTIR_ELEMENT_BOOL
                                                      : MICROTIR_ELEMENT_UNSIGNED);
        element->bits = (uint8_t)(dtype.bits == 1u ? 8u : dtype.bits);
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

int32_t tvm_packed_arguments(const TVMValue *args, const int *type_codes, int num_args,
                             int32_t count, struct microtir_tensor *tensors,
                             union microtir_value *values)
{
    int32_t index;

    if (args == NULL || type_codes == NULL) {
        return MICROTIR_ERROR_NULL_POINTER;
    }
    if ((int32_t)num_args != count) {
        return MICROTIR_ERROR_ARGUMENT_COUNT;
    }
    for (index = 0; index < count; index++) {
        const DLTensor *const given = (const DLTensor *)args[index].v_handle;
        int32_t status;
        if (type_codes[index] != (int)kTVMDLTensorHandle
            && type_codes[index] != (int)kTVMNDArrayHandle) {
            return MICROTIR_ERROR_ARGUMENT_KIND;
        }
        status = tvm_tensor_view(given, &tensors[index]);
        if (status != MICROTIR_OK) {
            return status;
        }
        values[index].v_tensor = &tensors[index];
    }
    return MICROTIR_OK;
}
