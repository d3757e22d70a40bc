/* config.h: what an application may change about the runtime.
 *
 * Define a macro on the compiler's command line, the same for every file, to change its default.
 */
#ifndef MICROTIR_CONFIG_H
#define MICROTIR_CONFIG_H

/* Default: 4. How many modules a registry holds. Each costs one pointer of RAM per registry. */
#ifndef MICROTIR_MAX_MODULES
#define MICROTIR_MAX_MODULES 4
#endif

/* Default: 1. Whether microtir_status_text() has a sentence for each status; 0 leaves one for all.
 * The sentences cost about 600 bytes of flash where the function is linked. */
#ifndef MICROTIR_STATUS_TEXTS
#define MICROTIR_STATUS_TEXTS 1
#endif

/* Default: 1. Whether packed functions check dtype, rank, shape, strides and alignment of tensors;
 * 0 checks only the number and kinds of arguments. Saves about 200 bytes of flash and some tens of
 * instructions per tensor and call; a wrong tensor is then read or written out of bounds. */
#ifndef MICROTIR_CHECK_TENSORS
#define MICROTIR_CHECK_TENSORS 1
#endif

#endif /* MICROTIR_CONFIG_H */
