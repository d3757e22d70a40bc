/* An application in the style of microTVM's demo for Ethos-U: it reserves the driver itself. */
#include <stdio.h>
#include <tvm/runtime/crt/crt.h>
#include <tvm/runtime/crt/stack_allocator.h>

#include "ethosu_driver.h"
#include "tvmgen_npu.h"

int failure;
int nothing_free;

static uint8_t g_aot_memory[TVMGEN_NPU_WORKSPACE_SIZE];
static float input[TVMGEN_NPU_X_SIZE / sizeof(float)];
static float output[TVMGEN_NPU_Y_SIZE / sizeof(float)];

int main(void)
{
    tvm_crt_error_t (*const initialize)(void) = TVMInitializeRuntime;
    tvm_workspace_t app_workspace;
    if (initialize() != kTvmErrorNoError
        || StackMemoryManager_Init(&app_workspace, g_aot_memory, sizeof g_aot_memory) != 0) {
        return 1;
    }
    for (int i = 0; i < 24; i++) {
        input[i] = (float)(i - 12) * 0.5f;
    }
    struct tvmgen_npu_inputs inputs = {
        .x = input,
    };
    struct tvmgen_npu_outputs outputs = {
        .y = output,
    };
    struct ethosu_driver *driver = ethosu_reserve_driver();
    struct tvmgen_npu_devices devices = {
        .ethos_u = driver,
    };
    printf("%d\n", (int)tvmgen_npu_run(&inputs, &outputs, &devices));
    for (int i = 0; i < 24; i++) {
        printf("%g%c", (double)output[i], i < 23 ? ' ' : '\n');
    }
    failure = -7;
    printf("%d\n", (int)tvmgen_npu_run(&inputs, &outputs, &devices));
    ethosu_release_driver(driver);
    devices.ethos_u = NULL;
    printf("%d\n", (int)tvmgen_npu_run(&inputs, &outputs, &devices));
    return 0;
}
