/* console.c: the UART of Arm's Cortex-M System Design Kit, 8N1. */
#include "board.h"

#define UART_DATA REGISTER(UART_BASE)
#define UART_STATE REGISTER(UART_BASE + 0x04u)
#define UART_CTRL REGISTER(UART_BASE + 0x08u)
#define UART_BAUDDIV REGISTER(UART_BASE + 0x10u)

#define STATE_TX_FULL 1u
#define STATE_RX_FULL 2u
#define CTRL_TX_AND_RX 3u

void console_init(void)
{
    UART_BAUDDIV = UART_DIVIDER; /* clock / baud, at least 16 */
    UART_CTRL = CTRL_TX_AND_RX;
}

void console_write(uint8_t byte)
{
    while (UART_STATE & STATE_TX_FULL) {
    }
    UART_DATA = byte;
}

int16_t console_read(void)
{
    if (!(UART_STATE & STATE_RX_FULL)) {
        return -1;
    }
    return (int16_t)(UART_DATA & 0xFFu);
}
