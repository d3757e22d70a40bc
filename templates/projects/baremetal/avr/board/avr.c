/* avr.c: serial port and end of the program on an AVR.
 *
 * Variables lie at the bottom of RAM and the stack grows down towards them, as avr-libc's start-up
 * arranges it; link.ld checks that the stack has its bytes. Emulators take the exit status from
 * GPIOR0 when the processor sleeps with interrupts off.
 */
#include <avr/interrupt.h>
#include <avr/io.h>
#include <avr/sleep.h>

#include "board.h"

#define BAUD 115200UL

static uint8_t has_written;

void console_init(void)
{
    UBRR0 = (uint16_t)((F_CPU + BAUD * 4UL) / (BAUD * 8UL) - 1UL);
    UCSR0A = (uint8_t)(1u << U2X0);
    UCSR0B = (uint8_t)((1u << TXEN0) | (1u << RXEN0));
    UCSR0C = (uint8_t)(3u << UCSZ00);
}

void console_write(uint8_t byte)
{
    while (!(UCSR0A & (1u << UDRE0))) {
    }
    UCSR0A |= (uint8_t)(1u << TXC0); /* writing a one clears it */
    UDR0 = byte;
    has_written = 1;
}

int16_t console_read(void)
{
    return (UCSR0A & (1u << RXC0)) ? (int16_t)UDR0 : (int16_t)-1;
}

void cpu_exit(int16_t status)
{
    while (has_written && !(UCSR0A & (1u << TXC0))) { /* the last byte is still on its way */
    }
    GPIOR0 = (uint8_t)status;
    cli();
    SMCR = (uint8_t)((1u << SM1) | (1u << SE)); /* power down */
    sleep_cpu();
}
