/* An application with a device: the interface of microTVM. */
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "tvmgen_default.h"

static float given[6] = {-1.0f, 2.0f, 3.0f, 4.0f, -5.0f, 6.0f};
static float made[6];

static int32_t run(void *state)
{
    struct tvmgen_default_inputs inputs = {given};
    struct tvmgen_default_outputs outputs = {made};
    struct tvmgen_default_devices devices = {state};
    return tvmgen_default_run(&inputs, &outputs, &devices);
}
