/* startup.c: start of the program and faults of a RISC-V core in machine mode.
 *
 * The stack lies at the bottom of RAM, and the program below it is locked against writing by
 * physical memory protection: a stack that grows too far faults instead of changing anything.
 */
#include <stdint.h>

#include "board.h"
#include "cpu.h"
#include "text.h"

#ifdef SEMIHOSTING
#include "semihosting.h"
#endif

#define FAULT_STATUS 97

/* pmpcfg: locked, top of range, execute and read. */
#define PMP_READ_EXECUTE 0x8Du

#define MSTATUS_FS_INITIAL 0x2000u

extern uint8_t __code_start[];
extern uint8_t __code_end[];
extern uint32_t __data_start[];
extern uint32_t __data_end[];
extern const uint32_t __data_load[];
extern uint32_t __bss_start[];
extern uint32_t __bss_end[];

int main(void);
void start(void);
void start_program(void);
void trap(void);
void report_trap(const uint8_t *stack);

static uint8_t is_ending;

__attribute__((naked, section(".init"), used)) void start(void)
{
    __asm volatile(".option push\n\t"
                   ".option norelax\n\t"
                   "la gp, __global_pointer$\n\t"
                   ".option pop\n\t"
                   "la sp, __stack_top\n\t"
                   "la tp, __tls_base\n\t"
                   "la t0, trap\n\t"
                   "csrw mtvec, t0\n\t"
                   "j start_program");
}

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

static void protect_program(void)
{
    /* An entry covers the addresses from the one before it to its own. */
    __asm volatile("csrw pmpaddr0, %0" : : "r"((uintptr_t)__code_start >> 2));
    __asm volatile("csrw pmpaddr1, %0" : : "r"((uintptr_t)__code_end >> 2));
    __asm volatile("csrw pmpcfg0, %0" : : "r"(PMP_READ_EXECUTE << 8));
}

__attribute__((used)) void start_program(void)
{
#ifdef __riscv_flen
    __asm volatile("csrs mstatus, %0" : : "r"(MSTATUS_FS_INITIAL));
#endif
    protect_program();
    const uint32_t *from = __data_load;
    for (uint32_t *to = __data_start; to < __data_end; to++) {
        *to = *from;
        from++;
    }
    for (uint32_t *to = __bss_start; to < __bss_end; to++) {
        *to = 0;
    }
    cpu_exit((int16_t)main());
    for (;;) {
    }
}

__attribute__((used)) void report_trap(const uint8_t *stack)
{
    if (is_ending) { /* no debugger took the semihosting call */
        for (;;) {
        }
    }
    uint32_t cause;
    uint8_t *address;
    __asm volatile("csrr %0, mcause" : "=r"(cause));
    __asm volatile("csrr %0, mtval" : "=r"(address));
    if (stack < __stack_bottom && address < __stack_bottom && address >= __code_start) {
        text_write("fault: the stack is too small");
    } else {
        text_write("fault: a memory access or an instruction is not allowed");
    }
    text_write(", mcause ");
    text_unsigned(cause);
    text_write("\n");
    cpu_exit(FAULT_STATUS);
    for (;;) {
    }
}

/* The stack may be the reason of the trap: start again from its top. */
__attribute__((naked, aligned(4), used)) void trap(void)
{
    __asm volatile("mv a0, sp\n\t"
                   "la sp, __stack_top\n\t"
                   "j report_trap");
}
