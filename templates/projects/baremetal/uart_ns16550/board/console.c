/* console.c: a 16550 UART; divisor and format are as the machine's reset left them. */
#include "board.h"

#define UART_REGISTER(number) (*(volatile uint8_t *)(uintptr_t)(UART_BASE + (number)))
#define UART_DATA UART_REGISTER(0u)
#define UART_LINE_STATUS UART_REGISTER(5u)

#define LINE_DATA_READY 0x01u
#define LINE_TX_EMPTY 0x20u

void console_init(void)
{
}

void console_write(uint8_t byte)
{
    while (!(UART_LINE_STATUS & LINE_TX_EMPTY)) {
    }
    UART_DATA = byte;
}

int16_t console_read(void)
{
    if (!(UART_LINE_STATUS & LINE_DATA_READY)) {
        return -1;
    }
    return (int16_t)UART_DATA;
}
