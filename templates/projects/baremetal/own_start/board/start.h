/* start.h: from the first instruction to main, and to the end. */
#ifndef START_H
#define START_H

#include <stdint.h>

/* Fills the variables, runs main and ends with its status. */
void start_main(void);

/* Ends a program that did what is not allowed, with a register that says more. */
void end_with_fault(uint32_t is_stack_overflow, const char *register_name, uint32_t value);

#endif /* START_H */
