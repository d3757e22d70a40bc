/* config.h: what an application may change about the runtime.
 *
 * Define a macro on the compiler's command line, the same for every file, to change its default.
 * docs/runtime.md has the measured cost of each. A value that no part can work with is an error.
 */
#ifndef MICROTIR_CONFIG_H
#define MICROTIR_CONFIG_H

/* Default: 4. How many modules a registry holds, 1 to 255. Each costs one pointer of RAM per
 * registry; one more is refused with MICROTIR_ERROR_REGISTRY_FULL. */
#ifndef MICROTIR_MAX_MODULES
#define MICROTIR_MAX_MODULES 4
#endif

/* Default: 6. The largest rank of a tensor that microtir_tensor_copy() copies, 1 to 16. Each costs
 * eight bytes of stack during a copy; more are refused with MICROTIR_ERROR_TENSOR_RANK. */
#ifndef MICROTIR_MAX_RANK
#define MICROTIR_MAX_RANK 6
#endif

/* Default: 16. What the memory managers align allocations to, in bytes, a power of two from 8 to
 * 128. Each allocation of a stack takes a multiple of it. */
#ifndef MICROTIR_MEMORY_ALIGNMENT
#define MICROTIR_MEMORY_ALIGNMENT 16
#endif

/* Default: 1. Whether microtir_stack_free() finds out that a block is not the last one; 0 believes
 * its caller. Costs MICROTIR_MEMORY_ALIGNMENT bytes of memory per allocation. */
#ifndef MICROTIR_CHECK_STACK
#define MICROTIR_CHECK_STACK 1
#endif

/* Default: 1. Whether microtir_status_text() has a sentence for each status; 0 leaves one for all.
 * The sentences cost flash where the function is linked. */
#ifndef MICROTIR_STATUS_TEXTS
#define MICROTIR_STATUS_TEXTS 1
#endif

/* Default: 1. Whether packed functions check dtype, rank, shape, strides and alignment of tensors;
 * 0 checks only the number and kinds of arguments. Saves flash and some tens of instructions per
 * tensor and call; a wrong tensor is then read or written out of bounds. */
#ifndef MICROTIR_CHECK_TENSORS
#define MICROTIR_CHECK_TENSORS 1
#endif

/* Default: 1. Whether the graph executor checks, before a run, that every pointer is set; 0 saves
 * flash and some instructions per input and output. */
#ifndef MICROTIR_CHECK_GRAPH
#define MICROTIR_CHECK_GRAPH 1
#endif

/* Default: 1. Whether microtir_graph_set_parameters() computes the checksum of the parameters; 0
 * compares their header only, which takes no time. */
#ifndef MICROTIR_CHECK_PARAMETERS
#define MICROTIR_CHECK_PARAMETERS 1
#endif

/* Default: 1. Whether the device functions refuse calls out of order; 0 passes them on. */
#ifndef MICROTIR_CHECK_DEVICES
#define MICROTIR_CHECK_DEVICES 1
#endif

/* Default: 16. Entries in the table of microtir_crc32(): 0, 16 or 256. An entry takes four bytes of
 * flash; the more there are, the fewer instructions a byte takes. */
#ifndef MICROTIR_CRC_TABLE
#define MICROTIR_CRC_TABLE 16
#endif

/* Default: 2. What MICROTIR_LOG_ERROR() and the others pass on: 0 nothing, 1 errors, 2 warnings,
 * too, 3 information, too, 4 everything. What is not passed on takes no code and no text. */
#ifndef MICROTIR_LOG_LEVEL
#define MICROTIR_LOG_LEVEL 2
#endif

#if MICROTIR_MAX_MODULES < 1 || MICROTIR_MAX_MODULES > 255
#error "MICROTIR_MAX_MODULES must be from 1 to 255"
#endif
#if MICROTIR_MAX_RANK < 1 || MICROTIR_MAX_RANK > 16
#error "MICROTIR_MAX_RANK must be from 1 to 16"
#endif
#if MICROTIR_MEMORY_ALIGNMENT != 8 && MICROTIR_MEMORY_ALIGNMENT != 16 \
    && MICROTIR_MEMORY_ALIGNMENT != 32 && MICROTIR_MEMORY_ALIGNMENT != 64 \
    && MICROTIR_MEMORY_ALIGNMENT != 128
#error "MICROTIR_MEMORY_ALIGNMENT must be 8, 16, 32, 64 or 128"
#endif
#if MICROTIR_CRC_TABLE != 0 && MICROTIR_CRC_TABLE != 16 && MICROTIR_CRC_TABLE != 256
#error "MICROTIR_CRC_TABLE must be 0, 16 or 256"
#endif
#if MICROTIR_LOG_LEVEL < 0 || MICROTIR_LOG_LEVEL > 4
#error "MICROTIR_LOG_LEVEL must be from 0 to 4"
#endif

#endif /* MICROTIR_CONFIG_H */
