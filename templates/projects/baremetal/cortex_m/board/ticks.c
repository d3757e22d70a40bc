/* ticks.c: the system timer counts cycles of the processor; only a program that serves needs it. */
#include <stdint.h>

#ifdef SERVER
#include "board.h"
#include "ticks.h"

#define SYST_CSR REGISTER(0xE000E010u)
#define SYST_RVR REGISTER(0xE000E014u)
#define SYST_CVR REGISTER(0xE000E018u)

#define TIMER_BITS 24
#define TIMER_MAX ((1u << TIMER_BITS) - 1u)

void systick_handler(void);

static volatile uint32_t wraps;

void systick_handler(void)
{
    wraps++;
}

void ticks_start(void)
{
    SYST_RVR = TIMER_MAX;
    SYST_CVR = 0;
    SYST_CSR = 7u; /* on, with interrupts, at the processor's clock */
}

uint32_t ticks_now(void)
{
    for (;;) {
        uint32_t before = wraps;
        uint32_t count = TIMER_MAX - SYST_CVR; /* it counts down */
        if (before == wraps) {
            return (before << TIMER_BITS) + count;
        }
    }
}
#endif
