/* text.c: printing without printf, whose float formats need a heap on some C libraries. */
#include "text.h"

#include <string.h>

#include "platform.h"

void text_write(const char *text)
{
    platform_write((const uint8_t *)text, (uint32_t)strlen(text));
}

void text_unsigned(uint64_t value)
{
    uint8_t digits[20]; /* of 2^64 - 1 */
    uint8_t first = sizeof digits;
    do {
        first--;
        digits[first] = (uint8_t)('0' + (uint8_t)(value % 10));
        value /= 10;
    } while (value != 0);
    platform_write(digits + first, (uint32_t)(sizeof digits - first));
}

void text_signed(int64_t value)
{
    if (value < 0) {
        text_write("-");
        text_unsigned(0 - (uint64_t)value);
    } else {
        text_unsigned((uint64_t)value);
    }
}

/* Scales a positive number into [1, 10) and returns the power of ten that was taken out. */
static int16_t normalise(double *value)
{
    int16_t exponent = 0;
    while (*value >= 10.0) {
        *value /= 10.0;
        exponent++;
    }
    while (*value < 1.0) {
        *value *= 10.0;
        exponent--;
    }
    return exponent;
}

void text_real(double value)
{
    if (value != value) {
        text_write("nan");
        return;
    }
    if (value < 0.0) {
        text_write("-");
        value = -value;
    }
    if (value > 0.0 && value * 0.5 == value) { /* only infinity is its own half */
        text_write("inf");
        return;
    }
    int16_t exponent = value > 0.0 ? normalise(&value) : 0;
    uint32_t scaled = (uint32_t)(value * 1000000.0 + 0.5);
    if (scaled >= 10000000u) { /* 9.9999996 rounds up to the next power of ten */
        scaled /= 10u;
        exponent++;
    }
    text_unsigned(scaled / 1000000u);
    text_write(".");
    uint32_t fraction = scaled % 1000000u;
    for (uint32_t unit = 100000u; unit > 1u && fraction < unit; unit /= 10u) {
        text_write("0");
    }
    text_unsigned(fraction);
    text_write(exponent < 0 ? "e-" : "e+");
    text_unsigned((uint64_t)(exponent < 0 ? -exponent : exponent));
}
