#include "microtir/status.h"

#include "microtir/config.h"

const char *microtir_status_text(int32_t status)
{
#if MICROTIR_STATUS_TEXTS
    switch (status) {
    case MICROTIR_OK:
        return "done";
    case MICROTIR_ERROR_NULL_POINTER:
        return "a pointer that must be set is NULL";
    case MICROTIR_ERROR_ARGUMENT_COUNT:
        return "too few or too many arguments";
    case MICROTIR_ERROR_ARGUMENT_KIND:
        return "an argument is of another kind";
    case MICROTIR_ERROR_ARGUMENT_RANGE:
        return "an integer argument is outside its declared range";
    case MICROTIR_ERROR_TENSOR_DTYPE:
        return "a tensor has elements of another type";
    case MICROTIR_ERROR_TENSOR_RANK:
        return "a tensor has another number of dimensions";
    case MICROTIR_ERROR_TENSOR_SHAPE:
        return "a tensor has another shape";
    case MICROTIR_ERROR_TENSOR_STRIDES:
        return "the elements of a tensor are not row-major, or have gaps";
    case MICROTIR_ERROR_TENSOR_ALIGNMENT:
        return "the data of a tensor is not aligned";
    case MICROTIR_ERROR_WORKSPACE_SIZE:
        return "the workspace has too few bytes";
    case MICROTIR_ERROR_FUNCTION_NOT_FOUND:
        return "there is no function of this name or index";
    case MICROTIR_ERROR_REGISTRY_FULL:
        return "the registry is full: raise MICROTIR_MAX_MODULES";
    case MICROTIR_ERROR_NAME_TAKEN:
        return "a registered module has a function of this name";
    case MICROTIR_ERROR_NO_MEMORY:
        return "the memory manager has no such block left";
    case MICROTIR_ERROR_BAD_FREE:
        return "this is no block of the memory manager, or not the last one of a stack";
    case MICROTIR_ERROR_MEMORY_LAYOUT:
        return "the memory is misaligned, too small or too large";
    case MICROTIR_ERROR_INDEX:
        return "there is no tensor or node of this number";
    case MICROTIR_ERROR_NOT_SET:
        return "an input, an output, the workspace, the state or the parameters are not set";
    case MICROTIR_ERROR_PARAMETERS:
        return "the parameters belong to another model, or are damaged";
    case MICROTIR_ERROR_DEVICE_STATE:
        return "the device is not in the state that this call needs";
    case MICROTIR_ERROR_STEP_COST:
        return "the next node costs more than a step may";
    case MICROTIR_ERROR_STATE:
        return "the state is not initialised, or not of this model";
    default:
        return "a status of a generated function";
    }
#else
    return status == MICROTIR_OK ? "done" : "failed";
#endif
}
