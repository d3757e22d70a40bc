/* startup.c: start of the program and faults of a RISC-V core in machine mode.
 *
 * The stack lies at the bottom of RAM, and the program below it is locked against writing by
 * physical memory protection: a stack that grows too far faults instead of changing anything.
 */
#include <stdint.h>

#include "cpu.h"
#include "start.h"

/* pmpcfg: locked, top of range, execute and read. */
#define PMP_READ_EXECUTE 0x8Du

#define MSTATUS_FS_INITIAL 0x2000u

extern uint8_t __code_start[];
extern uint8_t __code_end[];

void start(void);
void start_program(void);
void trap(void);
void report_trap(const uint8_t *stack);

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
    start_main();
}

__attribute__((used)) void report_trap(const uint8_t *stack)
{
    uint32_t cause;
    const uint8_t *address;
    __asm volatile("csrr %0, mcause" : "=r"(cause));
    __asm volatile("csrr %0, mtval" : "=r"(address));
    uint32_t is_below = address < __stack_bottom && address >= __code_start;
    end_with_fault(stack < __stack_bottom && is_below, ", mcause ", cause);
}

/* The stack may be the reason of the trap: start again from its top. */
__attribute__((naked, aligned(4), used)) void trap(void)
{
    __asm volatile("mv a0, sp\n\t"
                   "la sp, __stack_top\n\t"
                   "j report_trap");
}
