/* platform.h: what the application asks of the board. */
#ifndef PLATFORM_H
#define PLATFORM_H

#include <stdint.h>

/* On AVR a constant lies in RAM unless it is placed in flash, where ordinary loads cannot reach
 * it: the samples are declared with PLATFORM_CONSTANT and read with platform_copy_constant. */
#if defined(__AVR__)
#include <avr/pgmspace.h>
#define PLATFORM_CONSTANT const PROGMEM
#else
#define PLATFORM_CONSTANT const
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* Sets up clock and console; called once, first. */
void platform_init(void);

/* Sends bytes to the console; returns when they are on their way. */
void platform_write(const uint8_t *bytes, uint32_t count);

/* The next byte from the console, or -1 if none has come. */
int16_t platform_read(void);

/* Copies from a PLATFORM_CONSTANT to RAM. */
void platform_copy_constant(void *to, const void *from, uint32_t bytes);

/* Fills the unused part of the stack with a pattern. */
void platform_paint_stack(void);

/* Bytes of stack that calls have used since it was painted, by the function that painted it;
 * 0 where the board cannot tell. */
uint32_t platform_stack_used(void);

/* Ends the program. An emulator ends with this status; a board stops. */
void platform_exit(int16_t status);

#ifdef __cplusplus
}
#endif

#endif /* PLATFORM_H */
