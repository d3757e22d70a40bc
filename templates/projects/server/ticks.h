/* ticks.h: a clock that counts up, of a rate that the board has; starts over behind its end. */
#ifndef TICKS_H
#define TICKS_H

#include <stdint.h>

void ticks_start(void);
uint32_t ticks_now(void);

#endif /* TICKS_H */
