/* start.c: what is the same on every processor: variables, main, the end. */
#include "start.h"

#include "board.h"
#include "text.h"

#ifdef SEMIHOSTING
#include "semihosting.h"
#endif

#ifdef DEBUG_CHECKS
#include "fault.h"
#endif

#define FAULT_STATUS 97

extern uint32_t __data_start[];
extern uint32_t __data_end[];
extern const uint32_t __data_load[];
extern uint32_t __bss_start[];
extern uint32_t __bss_end[];

/* Memories besides that of .data whose values are copied; the linker script has the table. */
struct copy {
    uint32_t *to;
    const uint32_t *from;
    uint32_t bytes;
};
extern const struct copy __copies_start[];
extern const struct copy __copies_end[];

int main(void);

static uint8_t is_ending;

void cpu_exit(int16_t status)
{
    is_ending = 1;
#ifdef SEMIHOSTING
    const uint32_t block[2] = {SEMIHOSTING_APPLICATION_EXIT, (uint32_t)status};
    semihosting_call(SEMIHOSTING_EXIT_EXTENDED, block);
#else
    (void)status;
#endif
}

static void stop(int16_t status)
{
    cpu_exit(status);
    for (;;) {
    }
}

static void copy_words(uint32_t *to, const uint32_t *from, uint32_t bytes)
{
    for (uint32_t i = 0; i < bytes / sizeof *to; i++) {
        to[i] = from[i];
    }
}

void start_main(void)
{
    const uintptr_t end = (uintptr_t)__data_end;
    copy_words(__data_start, __data_load, (uint32_t)(end - (uintptr_t)__data_start));
    for (const struct copy *copy = __copies_start; copy < __copies_end; copy++) {
        copy_words(copy->to, copy->from, copy->bytes);
    }
    for (uint32_t *to = __bss_start; to < __bss_end; to++) {
        *to = 0;
    }
    stop((int16_t)main());
}

void end_with_fault(uint32_t is_stack_overflow, const char *register_name, uint32_t value)
{
    if (is_ending) { /* no debugger took the semihosting call */
        for (;;) {
        }
    }
    text_write("fault: ");
    if (is_stack_overflow) {
        text_write("the stack is too small");
    } else {
        text_write("a memory access or an instruction is not allowed");
    }
    text_write(register_name);
    text_unsigned(value);
    text_write("\n");
#ifdef DEBUG_CHECKS
    fault_describe();
#endif
    stop(FAULT_STATUS);
}
