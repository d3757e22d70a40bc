/* Interface c with declared workspace pools, as on a board with a camera and two memories. */
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <tvm/runtime/c_runtime_api.h>
#include <tvm/runtime/crt/error_codes.h>
#include <tvm/runtime/crt/logging.h>
#include <tvm/runtime/crt/platform.h>
#include <tvmgen_default.h>

#define SECTION(name) __attribute__((section(name), aligned(16)))

#ifdef __cplusplus
extern "C" {
#endif

SECTION(".bss.dtcm") static uint8_t dtcm[TVMGEN_DEFAULT_DTCM_WORKSPACE_POOL_SIZE];
SECTION(".bss.sram") static uint8_t sram[TVMGEN_DEFAULT_SRAM_WORKSPACE_POOL_SIZE];

static int8_t left[TVMGEN_DEFAULT_SERVING_DEFAULT_LEFT_0_SIZE];
static int8_t right[TVMGEN_DEFAULT_SERVING_DEFAULT_RIGHT_0_SIZE];
static int8_t probabilities[TVMGEN_DEFAULT_STATEFULPARTITIONEDCALL_0_SIZE];
static int8_t features[TVMGEN_DEFAULT_STATEFULPARTITIONEDCALL_1_SIZE];

void TVMLogf(const char *msg, ...)
{
    va_list args;
    va_start(args, msg);
    vprintf(msg, args);
    va_end(args);
}

void __attribute__((noreturn)) TVMPlatformAbort(tvm_crt_error_t error)
{
    TVMLogf("TVMPlatformAbort: 0x%08x\n", (unsigned int)error);
    for (;;) {
    }
}

#ifdef __cplusplus
}
#endif

int main(void)
{
    struct tvmgen_default_inputs inputs;
    struct tvmgen_default_outputs outputs;
    struct tvmgen_default_workspace_pools pools;
    int32_t ret_val;

    inputs.serving_default_left_0 = left;
    inputs.serving_default_right_0 = right;
    outputs.StatefulPartitionedCall_0 = probabilities;
    outputs.StatefulPartitionedCall_1 = features;
    pools.dtcm = dtcm;
    pools.sram = sram;
    for (size_t i = 0; i < sizeof left; i++) {
        left[i] = (int8_t)(i * 13);
        right[i] = (int8_t)(100 - (int)i * 17);
    }
    ret_val = tvmgen_default_run(&inputs, &outputs, &pools);
    CHECK_EQ(ret_val, 0, "tvmgen_default_run failed: %d", ret_val);
    for (size_t i = 0; i < sizeof probabilities; i++) {
        TVMLogf("%d\n", probabilities[i]);
    }
    for (size_t i = 0; i < sizeof features; i++) {
        TVMLogf("%d\n", features[i]);
    }
    return 0;
}
