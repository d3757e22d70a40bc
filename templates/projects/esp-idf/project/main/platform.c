/* platform.c: the platform of the application, from the C library of the ESP-IDF. */
#include "platform.h"

#include <stdio.h>
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
    return (int16_t)getchar();
}

void platform_copy_constant(void *to, const void *from, uint32_t bytes)
{
    memcpy(to, from, (size_t)bytes);
}

/* A task's stack is the operating system's, and not ours to paint. */
void platform_paint_stack(void)
{
}

uint32_t platform_stack_used(void)
{
    return 0;
}

/* The main task ends when app_main() returns; nobody takes its status. */
void platform_exit(int16_t status)
{
    (void)status;
    (void)fflush(stdout);
}
