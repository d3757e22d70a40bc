/* semihosting.h: calls to a debugger or an emulator ("Semihosting for AArch32 and AArch64", Arm). */
#ifndef SEMIHOSTING_H
#define SEMIHOSTING_H

#include <stdint.h>

#define SEMIHOSTING_WRITE_BYTE 0x03u
#define SEMIHOSTING_EXIT_EXTENDED 0x20u

/* Reason of a program that ended by itself: the exit status follows it. */
#define SEMIHOSTING_APPLICATION_EXIT 0x20026u

static inline void semihosting_call(uint32_t operation, const void *argument)
{
    register uint32_t r0 __asm("r0") = operation;
    register const void *r1 __asm("r1") = argument;
    __asm volatile("bkpt 0xab" : "+r"(r0) : "r"(r1) : "memory");
}

#endif /* SEMIHOSTING_H */
