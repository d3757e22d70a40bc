/* board.h: what one file of the board support asks of another. */
#ifndef BOARD_H
#define BOARD_H

#include <stdint.h>

/* The console: a serial port, semihosting, or a terminal. */
void console_init(void);
void console_write(uint8_t byte);
int16_t console_read(void); /* -1 if nothing has come */

/* Returns only where the status has gone out of this processor. */
void cpu_exit(int16_t status);

/* A 32 bit register of a peripheral. */
#define REGISTER(address) (*(volatile uint32_t *)(uintptr_t)(address))

#endif /* BOARD_H */
