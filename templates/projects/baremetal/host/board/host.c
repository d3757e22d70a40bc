/* host.c: the console is the terminal, the end is the process's. */
#include <stdio.h>
#include <stdlib.h>

#include "board.h"
#include "platform.h"

void console_init(void)
{
}

void console_write(uint8_t byte)
{
    putchar(byte);
}

int16_t console_read(void)
{
    fflush(stdout);
    int byte = getchar();
    if (byte == EOF) { /* nothing will ever come: who asks again and again would never end */
        exit(EXIT_FAILURE);
    }
    return (int16_t)byte;
}

void cpu_exit(int16_t status)
{
    exit(status);
}

/* The operating system's pages below the stack are not ours to paint. */
void platform_paint_stack(void)
{
}

uint32_t platform_stack_used(void)
{
    return 0;
}
