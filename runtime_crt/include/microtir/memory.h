/* memory.h: two managers of memory that the caller provides; there is no heap behind them.
 *
 * A stack gives blocks back in the reverse order, and takes no time; pages give them back in any
 * order, and searching for a block takes time. Models need neither: their workspace is planned.
 */
#ifndef MICROTIR_MEMORY_H
#define MICROTIR_MEMORY_H

#include <stdint.h>

#include "microtir/config.h"

#ifdef __cplusplus
extern "C" {
#endif

/* --- a stack --- */

struct microtir_stack {
    uint8_t *memory; /* aligned to MICROTIR_MEMORY_ALIGNMENT */
    uint32_t bytes;  /* of the memory */
    uint32_t used;   /* by blocks, from the start of the memory */
    uint32_t peak;   /* the most that was ever used */
    uint32_t last;   /* where the last block begins, if microtir_stack_free() checks that */
};

/* Makes an empty stack of `bytes` bytes at `memory`, which is aligned to
 * MICROTIR_MEMORY_ALIGNMENT. */
int32_t microtir_stack_init(struct microtir_stack *stack, void *memory, uint32_t bytes);

/* Gives a block of at least `bytes` bytes. */
int32_t microtir_stack_allocate(struct microtir_stack *stack, uint32_t bytes, void **block);

/* Takes back the block that was given last. */
int32_t microtir_stack_free(struct microtir_stack *stack, const void *block);

/* --- pages --- */

#define MICROTIR_MAX_PAGES 65535u /* of one manager; more is refused */

struct microtir_pages {
    uint16_t *lengths;   /* at the start of a block its number of pages, elsewhere 0 */
    uint8_t *first;      /* page, aligned to MICROTIR_MEMORY_ALIGNMENT */
    uint32_t page_bytes; /* of one page */
    uint32_t page_count;
    uint32_t used; /* pages */
    uint32_t peak; /* the most pages that were ever used */
};

/* Divides `bytes` bytes at `memory`, which is aligned to MICROTIR_MEMORY_ALIGNMENT, into pages. A
 * page takes two bytes more than itself.
 *
 *   page_bytes  a power of two, at least MICROTIR_MEMORY_ALIGNMENT */
int32_t microtir_pages_init(struct microtir_pages *pages, void *memory, uint32_t bytes,
                            uint32_t page_bytes);

/* Gives the first free run of pages that holds `bytes` bytes. */
int32_t microtir_pages_allocate(struct microtir_pages *pages, uint32_t bytes, void **block);

/* Takes a block back. */
int32_t microtir_pages_free(struct microtir_pages *pages, const void *block);

#ifdef __cplusplus
}
#endif

#endif /* MICROTIR_MEMORY_H */
