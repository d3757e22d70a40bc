/* cpu.h: AVR. */
#ifndef CPU_H
#define CPU_H

#include <avr/io.h>
#include <stdint.h>

/* Where the variables end; avr-libc would start a heap there, and this program has none. */
extern uint8_t __heap_start[];

static inline uint8_t *cpu_stack_limit(void)
{
    return __heap_start;
}

static inline uint8_t *cpu_stack_pointer(void)
{
    return (uint8_t *)(uintptr_t)SP;
}

#endif /* CPU_H */
