/* platform.c: the platform of the application, from the standard C library. */
#include "platform.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void platform_init(void)
{
}

void platform_write(const uint8_t *bytes, uint32_t count)
{
    (void)fwrite(bytes, 1, (size_t)count, stdout);
}

int16_t platform_read(void)
{
    (void)fflush(stdout);
    return (int16_t)getchar();
}

void platform_copy_constant(void *to, const void *from, uint32_t bytes)
{
    memcpy(to, from, (size_t)bytes);
}

/* The stack is the operating system's, and not ours to paint. */
void platform_paint_stack(void)
{
}

uint32_t platform_stack_used(void)
{
    return 0;
}

void platform_exit(int16_t status)
{
    exit(status);
}
