/* console.c: the UART of Nordic's nRF51, 8N1. */
#include "board.h"

#define UART_STARTRX REGISTER(UART_BASE + 0x000u)
#define UART_STARTTX REGISTER(UART_BASE + 0x008u)
#define UART_RXDRDY REGISTER(UART_BASE + 0x108u)
#define UART_TXDRDY REGISTER(UART_BASE + 0x11Cu)
#define UART_ENABLE REGISTER(UART_BASE + 0x500u)
#define UART_PSELTXD REGISTER(UART_BASE + 0x50Cu)
#define UART_PSELRXD REGISTER(UART_BASE + 0x514u)
#define UART_RX REGISTER(UART_BASE + 0x518u)
#define UART_TX REGISTER(UART_BASE + 0x51Cu)
#define UART_BAUDRATE REGISTER(UART_BASE + 0x524u)

#define ENABLED 4u

void console_init(void)
{
    UART_PSELTXD = UART_TXD;
    UART_PSELRXD = UART_RXD;
    UART_BAUDRATE = UART_BAUD;
    UART_ENABLE = ENABLED;
    UART_STARTTX = 1;
    UART_STARTRX = 1;
}

void console_write(uint8_t byte)
{
    UART_TXDRDY = 0;
    UART_TX = byte;
    while (!UART_TXDRDY) {
    }
}

int16_t console_read(void)
{
    if (!UART_RXDRDY) {
        return -1;
    }
    UART_RXDRDY = 0; /* before the byte is taken, or the next one could be lost */
    return (int16_t)(UART_RX & 0xFFu);
}
