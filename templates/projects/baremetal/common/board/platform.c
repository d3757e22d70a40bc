/* platform.c: the platform of the application, from the parts of this board. */
#include "platform.h"

#include <string.h>

#include "board.h"

void platform_init(void)
{
    console_init();
}

void platform_write(const uint8_t *bytes, uint32_t count)
{
    while (count != 0) {
        console_write(*bytes);
        bytes++;
        count--;
    }
}

int16_t platform_read(void)
{
    return console_read();
}

void platform_copy_constant(void *to, const void *from, uint32_t bytes)
{
#if defined(__AVR__)
    memcpy_P(to, from, (size_t)bytes);
#else
    memcpy(to, from, (size_t)bytes);
#endif
}

void platform_exit(int16_t status)
{
    cpu_exit(status);
    for (;;) {
    }
}
