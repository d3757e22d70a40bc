/* console.c: prints through a debugger or an emulator; slow, but needs no wire. */
#include "board.h"
#include "semihosting.h"

void console_init(void)
{
}

void console_write(uint8_t byte)
{
    semihosting_call(SEMIHOSTING_WRITE_BYTE, &byte);
}

int16_t console_read(void)
{
    return -1; /* a read would wait for the debugger's user */
}
