/* parameters.h: the weights of a model as a file of their own, <name>.params.
 *
 *     offset  bytes
 *          0      4  "MTIP"
 *          4      4  identity: <NAME>_FINGERPRINT of the sources that the file belongs to
 *          8      4  size of the file
 *         12      4  CRC-32 of all bytes from 16 on
 *         16         weights, each at its alignment counted from the start of the file
 *
 * Numbers are little-endian. The file is read where it lies: in flash behind the program, in a
 * memory chip that the processor can address, or copied to RAM.
 */
#ifndef MICROTIR_PARAMETERS_H
#define MICROTIR_PARAMETERS_H

#include <stdint.h>

#include "microtir/config.h"

#ifdef __cplusplus
extern "C" {
#endif

#define MICROTIR_PARAMETERS_HEADER 16u /* bytes */

/* Checks that `file` is all of the parameters of the model with this identity, and undamaged where
 * MICROTIR_CHECK_PARAMETERS is set.
 *
 *   bytes     that can be read at `file`
 *   size      of the model's file: <NAME>_PARAMETERS_SIZE
 *   identity  <NAME>_PARAMETERS_IDENTITY */
int32_t microtir_parameters_check(const void *file, uint32_t bytes, uint32_t size,
                                  uint32_t identity);

#ifdef __cplusplus
}
#endif

#endif /* MICROTIR_PARAMETERS_H */
