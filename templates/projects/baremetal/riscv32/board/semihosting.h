/* semihosting.h: calls to a debugger or an emulator ("RISC-V Semihosting", RISC-V International). */
#ifndef SEMIHOSTING_H
#define SEMIHOSTING_H

#include <stdint.h>

#define SEMIHOSTING_WRITE_BYTE 0x03u
#define SEMIHOSTING_EXIT_EXTENDED 0x20u

/* Reason of a program that ended by itself: the exit status follows it. */
#define SEMIHOSTING_APPLICATION_EXIT 0x20026u

/* The call is known by the two instructions around ebreak. All three are uncompressed and lie in
 * one page, which the alignment ensures. Never inlined: one copy is enough. */
__attribute__((noinline)) static void semihosting_call(uint32_t operation, const void *argument)
{
    register uint32_t a0 __asm("a0") = operation;
    register const void *a1 __asm("a1") = argument;
    __asm volatile(".option push\n\t"
                   ".option norvc\n\t"
                   ".balign 16\n\t"
                   "slli x0, x0, 0x1f\n\t"
                   "ebreak\n\t"
                   "srai x0, x0, 7\n\t"
                   ".option pop"
                   : "+r"(a0)
                   : "r"(a1)
                   : "memory");
}

#endif /* SEMIHOSTING_H */
