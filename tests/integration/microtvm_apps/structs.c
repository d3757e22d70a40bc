/* An application for microTVM's C interface: structs of inputs and outputs, hooks, a timer. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <tvm/runtime/c_runtime_api.h>
#include <tvm/runtime/crt/crt.h>
#include <tvm/runtime/crt/logging.h>

#include "tvmgen_default.h"

static int8_t input_data[TVMGEN_DEFAULT_IMAGE_SIZE];
static int8_t output_data[TVMGEN_DEFAULT_SCORES_SIZE];
static int is_running;

void TVMLogf(const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    vprintf(fmt, args);
    va_end(args);
}

void TVMPlatformAbort(tvm_crt_error_t error)
{
    TVMLogf("TVMPlatformAbort: 0x%08x\n", (unsigned int)error);
    exit(1);
}

tvm_crt_error_t TVMPlatformInitialize(void)
{
    return kTvmErrorNoError;
}

tvm_crt_error_t TVMPlatformTimerStart(void)
{
    if (is_running) {
        return kTvmErrorPlatformTimerBadState;
    }
    is_running = 1;
    return kTvmErrorNoError;
}

tvm_crt_error_t TVMPlatformTimerStop(double *elapsed_time_seconds)
{
    is_running = 0;
    *elapsed_time_seconds = 0.0;
    return kTvmErrorNoError;
}

int main(void)
{
    struct tvmgen_default_inputs inputs = {
        .image = input_data,
    };
    struct tvmgen_default_outputs outputs = {
        .scores = output_data,
    };
    double elapsed = 1.0;
    size_t i;

    CHECK_EQ(TVMInitializeRuntime(), kTvmErrorNoError, "runtime");
    TVMPlatformInitialize();
    for (i = 0; i < sizeof(input_data); i++) {
        input_data[i] = (int8_t)(11 * i);
    }
    TVMPlatformTimerStart();
    if (tvmgen_default_run(&inputs, &outputs) != 0) {
        TVMPlatformAbort(kTvmErrorPlatformCheckFailure);
    }
    TVMPlatformTimerStop(&elapsed);
    LOG_INFO("not printed at this level\n");
    for (i = 0; i < sizeof(output_data); i++) {
        TVMLogf("%d\n", output_data[i]);
    }
    return 0;
}
