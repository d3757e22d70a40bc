/* cpu.h: RISC-V, 32 bit, machine mode. */
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
    __asm volatile("mv %0, sp" : "=r"(pointer));
    return pointer;
}

#endif /* CPU_H */
