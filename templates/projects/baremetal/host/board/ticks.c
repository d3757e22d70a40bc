/* ticks.c: processor time of the process; only a program that serves needs it. */
#include <stdint.h>

#ifdef SERVER
#include <time.h>

#include "ticks.h"

void ticks_start(void)
{
}

uint32_t ticks_now(void)
{
    return (uint32_t)clock();
}
#endif
