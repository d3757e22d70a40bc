/* An application with a device: the interface of microtir. */
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "default.h"

static float given[6] = {-1.0f, 2.0f, 3.0f, 4.0f, -5.0f, 6.0f};
static float made[6];

static int32_t run(void *state)
{
    static DEFAULT_WORKSPACE(memory);
    const struct default_inputs inputs = {given};
    const struct default_outputs outputs = {made};
    const struct default_devices devices = {state};
    return default_run(&inputs, &outputs, memory, &devices);
}
