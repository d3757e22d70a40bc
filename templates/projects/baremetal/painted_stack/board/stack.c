/* stack.c: how deep the stack went, by a pattern below it. */
#include "cpu.h"
#include "platform.h"

#define PATTERN 0xC5u

/* Bytes below the stack pointer that are not painted, since the painting itself may use them; they
 * count as used by whatever is called. */
#define OWN_FRAME 32u

static uint8_t *painted_from;

void platform_paint_stack(void)
{
    volatile uint8_t *byte = cpu_stack_limit();
    volatile uint8_t *end = cpu_stack_pointer() - OWN_FRAME;
    painted_from = cpu_stack_pointer();
    while (byte < end) {
        *byte = PATTERN;
        byte++;
    }
}

uint32_t platform_stack_used(void)
{
    const volatile uint8_t *byte = cpu_stack_limit();
    while (byte < painted_from && *byte == PATTERN) {
        byte++;
    }
    return (uint32_t)(painted_from - byte);
}
