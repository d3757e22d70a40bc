#include <stddef.h>

#include "microtir/memory.h"
#include "microtir/status.h"

#define ALIGNMENT ((uint32_t)MICROTIR_MEMORY_ALIGNMENT)
#define ENTRY ((uint32_t)2) /* bytes of pages->lengths per page */

int32_t microtir_pages_init(struct microtir_pages *pages, void *memory, uint32_t bytes,
                            uint32_t page_bytes)
{
    if (pages == NULL || memory == NULL) {
        return MICROTIR_ERROR_NULL_POINTER;
    }
    if (page_bytes < ALIGNMENT || (page_bytes & (page_bytes - 1u)) != 0u
        || (uintptr_t)memory % ALIGNMENT != 0u) {
        return MICROTIR_ERROR_MEMORY_LAYOUT;
    }
    /* The table comes first; what aligns the pages behind it is less than an alignment. */
    const uint32_t spent = ALIGNMENT - 1u;
    const uint32_t count = bytes > spent ? (bytes - spent) / (page_bytes + ENTRY) : 0u;
    if (count == 0u || count > MICROTIR_MAX_PAGES) {
        return MICROTIR_ERROR_MEMORY_LAYOUT;
    }
    const uint32_t table = count * ENTRY;
    pages->lengths = memory;
    pages->first = (uint8_t *)memory + (table + spent) / ALIGNMENT * ALIGNMENT;
    pages->page_bytes = page_bytes;
    pages->page_count = count;
    pages->used = 0;
    pages->peak = 0;
    for (uint32_t i = 0; i < count; i++) {
        pages->lengths[i] = 0;
    }
    return MICROTIR_OK;
}

/* First page of the first free run of `wanted` pages, or page_count if there is none. */
static uint32_t free_run(const struct microtir_pages *pages, uint32_t wanted)
{
    uint32_t run = 0;
    uint32_t i = 0;
    while (i < pages->page_count && run < wanted) {
        if (pages->lengths[i] == 0u) {
            run++;
            i++;
        } else {
            run = 0;
            i += pages->lengths[i];
        }
    }
    return run == wanted ? i - run : pages->page_count;
}

int32_t microtir_pages_allocate(struct microtir_pages *pages, uint32_t bytes, void **block)
{
    if (pages == NULL || block == NULL) {
        return MICROTIR_ERROR_NULL_POINTER;
    }
    const uint32_t rest = bytes % pages->page_bytes;
    const uint32_t whole = bytes / pages->page_bytes;
    const uint32_t wanted = rest != 0u || whole == 0u ? whole + 1u : whole;
    const uint32_t page = free_run(pages, wanted);
    if (page == pages->page_count) {
        return MICROTIR_ERROR_NO_MEMORY;
    }
    pages->lengths[page] = (uint16_t)wanted;
    pages->used += wanted;
    if (pages->used > pages->peak) {
        pages->peak = pages->used;
    }
    *block = pages->first + page * pages->page_bytes;
    return MICROTIR_OK;
}

int32_t microtir_pages_free(struct microtir_pages *pages, const void *block)
{
    if (pages == NULL || block == NULL) {
        return MICROTIR_ERROR_NULL_POINTER;
    }
    /* An address below the first page wraps round to a large distance. */
    const uintptr_t distance = (uintptr_t)block - (uintptr_t)pages->first;
    const uint64_t bytes = (uint64_t)pages->page_count * pages->page_bytes;
    if ((uint64_t)distance >= bytes) {
        return MICROTIR_ERROR_BAD_FREE;
    }
    const uint32_t offset = (uint32_t)distance;
    const uint32_t page = offset / pages->page_bytes;
    if (offset % pages->page_bytes != 0u || pages->lengths[page] == 0u) {
        return MICROTIR_ERROR_BAD_FREE;
    }
    pages->used -= pages->lengths[page];
    pages->lengths[page] = 0;
    return MICROTIR_OK;
}
