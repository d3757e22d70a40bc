#include "microtir/parameters.h"

#include <stddef.h>

#include "microtir/checksum.h"
#include "microtir/status.h"

static uint32_t number_at(const uint8_t *bytes)
{
    return (uint32_t)bytes[0] | ((uint32_t)bytes[1] << 8) | ((uint32_t)bytes[2] << 16)
           | ((uint32_t)bytes[3] << 24);
}

int32_t microtir_parameters_check(const void *file, uint32_t bytes, uint32_t size,
                                  uint32_t identity)
{
    const uint32_t magic = 0x5049544du; /* "MTIP" */
    const uint8_t *const header = file;
    if (file == NULL) {
        return MICROTIR_ERROR_NULL_POINTER;
    }
    if (size < MICROTIR_PARAMETERS_HEADER || bytes < size) {
        return MICROTIR_ERROR_PARAMETERS;
    }
    /* The code reads weights up to the size that it was generated with, whatever the file says. */
    if (number_at(header) != magic || number_at(header + 4) != identity
        || number_at(header + 8) != size) {
        return MICROTIR_ERROR_PARAMETERS;
    }
#if MICROTIR_CHECK_PARAMETERS
    const uint32_t rest = size - MICROTIR_PARAMETERS_HEADER;
    if (microtir_crc32(0, header + MICROTIR_PARAMETERS_HEADER, rest) != number_at(header + 12)) {
        return MICROTIR_ERROR_PARAMETERS;
    }
#endif
    return MICROTIR_OK;
}
