/* packed.h: lets the host call a function of a module with arguments that it describes. */
#ifndef MICROTIR_HOST_PACKED_H
#define MICROTIR_HOST_PACKED_H

#include <stdint.h>

/* Calls the function `name` of the program's module.
 *
 *   data     address of each tensor
 *   ranks    of each argument; -1 for an integer
 *   numbers  extents of the tensors and values of the integers, one after another
 *   types    kind and number of bits of the elements of each argument */
int32_t microtir_host_call(const char *name, int32_t count, void *const *data,
                           const int32_t *ranks, const int64_t *numbers, const uint8_t *types);

#endif /* MICROTIR_HOST_PACKED_H */
