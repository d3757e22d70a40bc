/* ticks.c: timer 1 counts cycles of the processor; only a program that serves needs it. */
#include <stdint.h>

#ifdef SERVER
#include <avr/interrupt.h>
#include <avr/io.h>

#include "ticks.h"

static volatile uint16_t wraps;

ISR(TIMER1_OVF_vect)
{
    wraps++;
}

void ticks_start(void)
{
    TCCR1A = 0;
    TCCR1B = (uint8_t)(1u << CS10);
    TIMSK1 = (uint8_t)(1u << TOIE1);
    sei();
}

uint32_t ticks_now(void)
{
    for (;;) {
        uint16_t before = wraps;
        uint16_t count = TCNT1;
        if (before == wraps) {
            return ((uint32_t)before << 16) + count;
        }
    }
}
#endif
