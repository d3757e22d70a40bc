/* Start-up of test programs on emulated Arm boards: no C library, exit status and text pass
 * through semihosting. */
#include <stdint.h>

#define COPROCESSORS (*(volatile uint32_t *)0xE000ED88u)
#define FAULT_STATUS 97

int main(void);
void put(const char *text);
void reset(void);
void fault(void);

extern uint32_t stack_top, data_load, data_start, data_end, bss_start, bss_end;

static void semihost(int operation, const void *argument)
{
    register int r0 __asm("r0") = operation;
    register const void *r1 __asm("r1") = argument;
    __asm volatile("bkpt 0xab" : "+r"(r0) : "r"(r1) : "memory");
}

void put(const char *text)
{
    semihost(0x04, text);
}

static void quit(uint32_t status)
{
    const uint32_t arguments[2] = {0x20026u, status};
    for (;;) {
        semihost(0x20, arguments);
    }
}

void reset(void)
{
    COPROCESSORS |= 0xFu << 20;
    __asm volatile("dsb\nisb");
    for (uint32_t *from = &data_load, *to = &data_start; to < &data_end;) {
        *to++ = *from++;
    }
    for (uint32_t *to = &bss_start; to < &bss_end;) {
        *to++ = 0;
    }
    quit((uint32_t)main());
}

void fault(void)
{
    put("fault\n");
    quit(FAULT_STATUS);
}

__attribute__((section(".vectors"), used)) static const void *const vectors[7] = {
    &stack_top, reset, fault, fault, fault, fault, fault,
};
