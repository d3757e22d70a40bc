/* platform.c: the platform of the application, from Zephyr. */
#include "platform.h"

#include <string.h>
#include <zephyr/device.h>
#include <zephyr/devicetree.h>
#include <zephyr/drivers/uart.h>
#include <zephyr/kernel.h>
#if defined(CONFIG_SEMIHOST)
#include <zephyr/arch/common/semihost.h>
#endif

static const struct device *const console = DEVICE_DT_GET(DT_CHOSEN(zephyr_console));

/* How deep the main thread's stack was when it was asked for. */
static uintptr_t depth;

void platform_init(void)
{
}

/* printk() would put a carriage return before each line feed. */
void platform_write(const uint8_t *bytes, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        uart_poll_out(console, bytes[i]);
    }
}

int16_t platform_read(void)
{
    unsigned char byte;
    return uart_poll_in(console, &byte) == 0 ? (int16_t)byte : (int16_t)-1;
}

void platform_copy_constant(void *to, const void *from, uint32_t bytes)
{
    memcpy(to, from, bytes);
}

/* Zephyr painted the stack when it started the thread: what was used before counts, too, if it was
 * deeper than the models go. */
void platform_paint_stack(void)
{
    volatile uint8_t here = 0;
    const struct k_thread *thread = k_current_get();
    depth = thread->stack_info.start + thread->stack_info.size - (uintptr_t)&here;
}

uint32_t platform_stack_used(void)
{
    struct k_thread *thread = k_current_get();
    size_t unused = 0;
    if (k_thread_stack_space_get(thread, &unused) != 0) {
        return 0;
    }
    uintptr_t used = thread->stack_info.size - unused;
    return used > depth ? (uint32_t)(used - depth) : 0;
}

void platform_exit(int16_t status)
{
#if defined(CONFIG_SEMIHOST)
    /* Zephyr's list of operations leaves out SYS_EXIT_EXTENDED, whose reason 0x20026 is the
     * application's own exit. */
    uintptr_t block[] = {0x20026u, (uintptr_t)status};
    (void)semihost_exec((enum semihost_instr)0x20, block);
#else
    (void)status;
#endif
    k_sleep(K_FOREVER);
}
