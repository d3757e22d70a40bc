/* checksum.h: CRC-32 as in zlib, Ethernet and PNG. */
#ifndef MICROTIR_CHECKSUM_H
#define MICROTIR_CHECKSUM_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The checksum of `bytes` bytes that follow those whose checksum is `before`; 0 for none. */
uint32_t microtir_crc32(uint32_t before, const void *data, uint32_t bytes);

#ifdef __cplusplus
}
#endif

#endif /* MICROTIR_CHECKSUM_H */
