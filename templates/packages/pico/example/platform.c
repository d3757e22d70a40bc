/* platform.c: the platform of the application, from the Pico SDK. */
#include "platform.h"

#include <stdio.h>
#include <string.h>

#include "pico/stdlib.h"

/* The computer needs this long to see a board with USB, in milliseconds. */
#define MONITOR_WAIT 3000

void platform_init(void)
{
    stdio_init_all();
    sleep_ms(MONITOR_WAIT);
}

void platform_write(const uint8_t *bytes, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        putchar_raw(bytes[i]);
    }
}

int16_t platform_read(void)
{
    int byte = getchar_timeout_us(0);
    return (int16_t)(byte < 0 ? -1 : byte);
}

void platform_copy_constant(void *to, const void *from, uint32_t bytes)
{
    memcpy(to, from, bytes);
}

/* The linker script leaves no mark at the stack's end: it is not ours to paint. */
void platform_paint_stack(void)
{
}

uint32_t platform_stack_used(void)
{
    return 0;
}

/* Nobody takes the status; the SDK goes on serving USB meanwhile. */
void platform_exit(int16_t status)
{
    (void)status;
    for (;;) {
        sleep_ms(1000);
    }
}
