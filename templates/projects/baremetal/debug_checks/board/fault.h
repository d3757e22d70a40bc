/* fault.h: says what a fault of an Arm Cortex-M was and where. */
#ifndef FAULT_H
#define FAULT_H

#include <stdint.h>

#define FAULT_STACK_BYTES 512

/* What the processor stacks at least. */
#define FAULT_FRAME_BYTES 32

/* Faults are reported on a stack of their own: on the program's lies what they tell. */
extern uint8_t fault_stack[FAULT_STACK_BYTES];

/* Remembers the registers that the processor stacked; NULL if there was no room for them. */
void fault_note(const uint32_t *frame);

/* Prints the fault that was noted. */
void fault_describe(void);

#endif /* FAULT_H */
