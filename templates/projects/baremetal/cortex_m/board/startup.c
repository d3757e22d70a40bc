/* startup.c: vectors, start of the program and faults of an Arm Cortex-M.
 *
 * The stack lies at the bottom of RAM. What lies below is no memory on most boards, so that a
 * stack that grows too far faults instead of changing variables. Where the core has a stack limit
 * register (Armv8-M Mainline) it says the same. Where reads and writes below RAM are ignored,
 * STACK_GUARD_LOG2 asks for a region of that size without access in the MPU of an Armv7-M.
 */
#include <stdint.h>

#include "board.h"
#include "cpu.h"
#include "start.h"

#ifdef DEBUG_CHECKS
#include <stddef.h>

#include "fault.h"
#endif

#if defined(__ARM_ARCH_8M_MAIN__) || defined(__ARM_ARCH_8_1M_MAIN__)
#define HAS_STACK_LIMIT 1
#endif

#if !defined(__ARM_ARCH_6M__) && !defined(__ARM_ARCH_8M_BASE__)
#define HAS_FAULT_STATUS 1
#endif

#define SCB_SHCSR REGISTER(0xE000ED24u)
#define SCB_CFSR REGISTER(0xE000ED28u)
#define SCB_CPACR REGISTER(0xE000ED88u)
#define MPU_CTRL REGISTER(0xE000ED94u)
#define MPU_RNR REGISTER(0xE000ED98u)
#define MPU_RBAR REGISTER(0xE000ED9Cu)
#define MPU_RASR REGISTER(0xE000EDA0u)

/* Stacking for an exception failed, or the stack limit was met: only an overflow does that. */
#define CFSR_MSTKERR (1u << 4)
#define CFSR_STKERR (1u << 12)
#define CFSR_STKOF (1u << 20)

extern uint32_t __stack_top[];

void reset_handler(void);
void fault_handler(void);
void systick_handler(void) __attribute__((weak, alias("fault_handler")));
void report_fault(const uint8_t *stack);

static void guard_stack(void)
{
#if defined(HAS_STACK_LIMIT)
    __asm volatile("msr msplim, %0" : : "r"(__stack_bottom));
#elif defined(STACK_GUARD_LOG2)
    const uint32_t execute_never = 1u << 28;
    MPU_RNR = 0;
    MPU_RBAR = (uint32_t)(uintptr_t)__stack_bottom - (1u << STACK_GUARD_LOG2);
    MPU_RASR = execute_never | ((STACK_GUARD_LOG2 - 1u) << 1) | 1u;
    SCB_SHCSR |= 1u << 16; /* MemManage faults are handled as such */
    MPU_CTRL = 5u;         /* on; everything else keeps its default access */
    __asm volatile("dsb\n\tisb" : : : "memory");
#endif
}

void reset_handler(void)
{
#if defined(__ARM_FP) || defined(__ARM_FEATURE_MVE)
    SCB_CPACR |= 0xFu << 20;
    __asm volatile("dsb\n\tisb" : : : "memory");
#endif
    guard_stack();
    start_main();
}

__attribute__((used)) void report_fault(const uint8_t *stack)
{
    uint32_t is_overflow = stack <= __stack_bottom;
#ifdef HAS_FAULT_STATUS
    is_overflow |= SCB_CFSR & (CFSR_MSTKERR | CFSR_STKERR | CFSR_STKOF);
#endif
#ifdef DEBUG_CHECKS
    const uint32_t is_there = stack + FAULT_FRAME_BYTES <= (const uint8_t *)__stack_top;
    fault_note(is_there && !is_overflow ? (const uint32_t *)(uintptr_t)stack : NULL);
#endif
#ifdef HAS_FAULT_STATUS
    end_with_fault(is_overflow, ", CFSR ", SCB_CFSR);
#else
    end_with_fault(is_overflow, ", stack ", (uint32_t)(uintptr_t)stack);
#endif
}

/* The stack may be the reason of the fault: start again from its top, or on another one where what
 * the processor left on it is reported. */
__attribute__((naked, used)) void fault_handler(void)
{
    __asm volatile(
#ifdef HAS_STACK_LIMIT
        "movs r0, #0\n\t"
        "msr msplim, r0\n\t"
#endif
        "mrs r0, msp\n\t"
#ifdef DEBUG_CHECKS
        "ldr r1, =fault_stack + 512\n\t"
#else
        "ldr r1, =__stack_top\n\t"
#endif
        "mov sp, r1\n\t"
        "ldr r1, =report_fault\n\t"
        "bx r1\n\t"
        ".ltorg");
}

typedef void (*handler)(void);

/* Only faults are expected, and the timer where a program uses it: see ticks.c. */
__attribute__((section(".vectors"), used)) static const struct {
    void *stack;
    handler reset;
    handler exceptions[14];
} vectors = {
    __stack_top,
    reset_handler,
    {fault_handler, fault_handler, fault_handler, fault_handler, fault_handler, fault_handler,
     fault_handler, fault_handler, fault_handler, fault_handler, fault_handler, fault_handler,
     fault_handler, systick_handler},
};
