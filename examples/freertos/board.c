/* board.c: vectors of the Arm MPS2 with a Cortex-M4F (AN386), as QEMU emulates it. */
#include <stdint.h>
#include <stdlib.h>

extern uint32_t __stack[];
void _start(void); /* of newlib: clears variables and calls main */
void SVC_Handler(void);
void PendSV_Handler(void);
void SysTick_Handler(void);

static void reset(void)
{
    *(volatile uint32_t *)0xE000ED88u |= 0xFu << 20; /* CPACR: the FPU is on */
    __asm volatile("dsb\n\tisb" : : : "memory");
    _start();
}

static void fault(void)
{
    _Exit(3);
}

__attribute__((section(".vectors"), used)) static const struct {
    void *stack;
    void (*handlers[15])(void);
} vectors = {
    __stack,
    {reset, fault, fault, fault, fault, fault, 0, 0, 0, 0, SVC_Handler, fault, 0, PendSV_Handler,
     SysTick_Handler},
};
