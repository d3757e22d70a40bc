/* cpu.h: the stack of a program with a linker script of this project. */
#ifndef CPU_H
#define CPU_H

#include <stdint.h>

extern uint8_t __stack_bottom[];

static inline uint8_t *cpu_stack_limit(void)
{
    return __stack_bottom;
}

static inline uint8_t *cpu_stack_pointer(void)
{
    uint8_t *pointer;
#if defined(__riscv)
    __asm volatile("mv %0, sp" : "=r"(pointer));
#else
    __asm volatile("mov %0, sp" : "=r"(pointer));
#endif
    return pointer;
}

#endif /* CPU_H */
