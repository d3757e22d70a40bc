/* status.h: what the functions of the runtime return. */
#ifndef MICROTIR_STATUS_H
#define MICROTIR_STATUS_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Statuses of the runtime end at -101: those of generated functions lie between -1 and -100, and a
 * packed function may return either. */
enum microtir_status {
    MICROTIR_OK = 0,                          /* done */
    MICROTIR_ERROR_NULL_POINTER = -101,       /* a pointer that must be set is NULL */
    MICROTIR_ERROR_ARGUMENT_COUNT = -102,     /* too few or too many arguments */
    MICROTIR_ERROR_ARGUMENT_KIND = -103,      /* a tensor where an integer is due, or the like */
    MICROTIR_ERROR_ARGUMENT_RANGE = -104,     /* an integer outside its declared range */
    MICROTIR_ERROR_TENSOR_DTYPE = -105,       /* elements of another type */
    MICROTIR_ERROR_TENSOR_RANK = -106,        /* another number of dimensions */
    MICROTIR_ERROR_TENSOR_SHAPE = -107,       /* another extent */
    MICROTIR_ERROR_TENSOR_STRIDES = -108,     /* not row-major, or with gaps */
    MICROTIR_ERROR_TENSOR_ALIGNMENT = -109,   /* the data is not aligned */
    MICROTIR_ERROR_WORKSPACE_SIZE = -110,     /* the workspace has too few bytes */
    MICROTIR_ERROR_FUNCTION_NOT_FOUND = -111, /* no function of this name or index */
    MICROTIR_ERROR_REGISTRY_FULL = -112,      /* raise MICROTIR_MAX_MODULES */
    MICROTIR_ERROR_NAME_TAKEN = -113,         /* a registered module has a function of this name */
    MICROTIR_ERROR_NO_MEMORY = -114,          /* the manager's memory has no such block left */
    MICROTIR_ERROR_BAD_FREE = -115,           /* not a block of this manager, or not the last one */
    MICROTIR_ERROR_MEMORY_LAYOUT = -116,      /* memory misaligned, too small or too large */
    MICROTIR_ERROR_INDEX = -117,              /* no tensor or node of this number */
    MICROTIR_ERROR_NOT_SET = -118,            /* an input, output or workspace is missing */
    MICROTIR_ERROR_PARAMETERS = -119,         /* parameters of another model, or damaged */
    MICROTIR_ERROR_DEVICE_STATE = -120,       /* a device function out of order */
    MICROTIR_ERROR_STEP_COST = -121,          /* the next node costs more than a step may */
    MICROTIR_ERROR_STATE = -122               /* a state of another model, or not initialised */
};

/* The meaning of a status as a sentence; never NULL. */
const char *microtir_status_text(int32_t status);

#ifdef __cplusplus
}
#endif

#endif /* MICROTIR_STATUS_H */
