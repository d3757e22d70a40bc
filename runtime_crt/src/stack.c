#include <stddef.h>

#include "microtir/memory.h"
#include "microtir/status.h"

#define ALIGNMENT ((uint32_t)MICROTIR_MEMORY_ALIGNMENT)
#if MICROTIR_CHECK_STACK
#define HEADER ALIGNMENT /* before each block: where the one before it begins, twice */
#else
#define HEADER ((uint32_t)0)
#endif

int32_t microtir_stack_init(struct microtir_stack *stack, void *memory, uint32_t bytes)
{
    if (stack == NULL || memory == NULL) {
        return MICROTIR_ERROR_NULL_POINTER;
    }
    if ((uintptr_t)memory % ALIGNMENT != 0u) {
        return MICROTIR_ERROR_MEMORY_LAYOUT;
    }
    stack->memory = memory;
    stack->bytes = bytes;
    stack->used = 0;
    stack->last = 0;
    stack->peak = 0;
    return MICROTIR_OK;
}

int32_t microtir_stack_allocate(struct microtir_stack *stack, uint32_t bytes, void **block)
{
    if (stack == NULL || block == NULL) {
        return MICROTIR_ERROR_NULL_POINTER;
    }
    /* Whole alignments: a block of no bytes takes one, so that no two have the same address. */
    const uint32_t room = (stack->bytes - stack->used) / ALIGNMENT;
    const uint32_t units = bytes == 0u ? 1u : (bytes - 1u) / ALIGNMENT + 1u;
    if (room < units + HEADER / ALIGNMENT) {
        return MICROTIR_ERROR_NO_MEMORY;
    }
    const uint32_t start = stack->used;
    stack->used = start + HEADER + units * ALIGNMENT;
#if MICROTIR_CHECK_STACK
    /* Which block is the last is known outside of the memory: in it headers of old blocks remain,
     * also inside of a new one. */
    uint32_t *const header = (uint32_t *)(void *)(stack->memory + start);
    header[0] = stack->last;
    header[1] = ~stack->last;
#endif
    stack->last = start;
    if (stack->used > stack->peak) {
        stack->peak = stack->used;
    }
    *block = stack->memory + start + HEADER;
    return MICROTIR_OK;
}

int32_t microtir_stack_free(struct microtir_stack *stack, const void *block)
{
    if (stack == NULL || block == NULL) {
        return MICROTIR_ERROR_NULL_POINTER;
    }
    /* An address below the memory wraps round to a large distance. */
    const uintptr_t offset = (uintptr_t)block - (uintptr_t)stack->memory;
    if (offset >= stack->used || offset % ALIGNMENT != 0u) {
        return MICROTIR_ERROR_BAD_FREE;
    }
    uint32_t start = (uint32_t)offset;
#if MICROTIR_CHECK_STACK
    if (start < HEADER) {
        return MICROTIR_ERROR_BAD_FREE;
    }
    start -= HEADER;
    const uint32_t *const header = (const uint32_t *)(const void *)(stack->memory + start);
    if (start != stack->last || header[0] != ~header[1] || header[0] > start) {
        return MICROTIR_ERROR_BAD_FREE;
    }
    stack->last = header[0];
#endif
    stack->used = start;
    return MICROTIR_OK;
}
