/* platform.cpp: the platform of the application, from Arduino's own functions. */
#include "platform.h"

#include <Arduino.h>
#include <string.h>
#if defined(__AVR__)
#include <avr/sleep.h>
#endif

/* A board with USB of its own waits this long for the serial monitor, in milliseconds. */
static const unsigned long MONITOR_WAIT = 3000;

void platform_init(void)
{
    Serial.begin(115200);
    while (!Serial && millis() < MONITOR_WAIT) {
    }
}

void platform_write(const uint8_t *bytes, uint32_t count)
{
    Serial.write(bytes, static_cast<size_t>(count));
}

int16_t platform_read(void)
{
    return static_cast<int16_t>(Serial.read());
}

void platform_copy_constant(void *to, const void *from, uint32_t bytes)
{
#if defined(__AVR__)
    memcpy_P(to, from, static_cast<size_t>(bytes));
#else
    memcpy(to, from, static_cast<size_t>(bytes));
#endif
}

/* A core may keep a heap or the stacks of tasks below the stack: it is not ours to paint. */
void platform_paint_stack(void)
{
}

uint32_t platform_stack_used(void)
{
    return 0;
}

void platform_exit(int16_t status)
{
    Serial.flush();
#if defined(__AVR__)
    /* Emulators take the exit status from here when the processor sleeps with interrupts off. */
    GPIOR0 = static_cast<uint8_t>(status);
    cli();
    set_sleep_mode(SLEEP_MODE_PWR_DOWN);
    sleep_enable();
    sleep_cpu();
#else
    (void)status;
#endif
    for (;;) {
        delay(1000);
    }
}
