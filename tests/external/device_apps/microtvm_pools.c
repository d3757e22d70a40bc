/* An application with a device: the interface of microTVM, with a pool. */
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "tvmgen_default.h"

static float given[6] = {-1.0f, 2.0f, 3.0f, 4.0f, -5.0f, 6.0f};
static float made[6];

static int32_t run(void *state)
{
    static uint8_t sram[TVMGEN_DEFAULT_WORKSPACE_SIZE] __attribute__((aligned(16)));
    struct tvmgen_default_inputs inputs = {given};
    struct tvmgen_default_outputs outputs = {made};
    struct tvmgen_default_workspace_pools pools = {sram};
    struct tvmgen_default_devices devices = {.my_npu = state};
    return tvmgen_default_run(&inputs, &outputs, &pools, &devices);
}
