/* ticks.c: the cycle counter of the processor; only a program that serves needs it. */
#include <stdint.h>

#ifdef SERVER
#include "ticks.h"

void ticks_start(void)
{
}

uint32_t ticks_now(void)
{
    uint32_t cycles;
    __asm volatile("csrr %0, mcycle" : "=r"(cycles));
    return cycles;
}
#endif
