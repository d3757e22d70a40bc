/* An application for a board, which has no operating system; only the console is the project's. */
#include <tvm/runtime/c_runtime_api.h>
#include <tvm/runtime/crt/logging.h>
#include <tvm/runtime/crt/stack_allocator.h>

#include "platform.h"
#include "tvmgen_default.h"

static uint8_t g_aot_memory[1024] __attribute__((aligned(TVM_RUNTIME_ALLOC_ALIGNMENT_BYTES)));
static tvm_workspace_t app_workspace;

void TVMLogf(const char *fmt, ...)
{
    uint32_t length = 0;
    while (fmt[length] != '\0') {
        length++;
    }
    platform_write((const uint8_t *)fmt, length);
}

void TVMPlatformAbort(tvm_crt_error_t error)
{
    platform_exit((int16_t)(error & 0xff) + 1);
    for (;;) {
    }
}

tvm_crt_error_t TVMPlatformMemoryAllocate(size_t num_bytes, DLDevice dev, void **out_ptr)
{
    (void)dev;
    return StackMemoryManager_Allocate(&app_workspace, (int32_t)num_bytes, out_ptr);
}

static void TVMLogNumber(int value)
{
    char digits[6] = "    \n";
    int place = 3, rest = value < 0 ? -value : value;
    do {
        digits[place--] = (char)('0' + rest % 10);
        rest /= 10;
    } while (rest > 0);
    if (value < 0) {
        digits[place] = '-';
    }
    TVMLogf(digits);
}

int main(void)
{
    struct tvmgen_default_inputs inputs;
    struct tvmgen_default_outputs outputs;
    const DLDevice device = {kDLCPU, 0};
    int i;

    platform_init();
    CHECK_EQ(StackMemoryManager_Init(&app_workspace, g_aot_memory, sizeof(g_aot_memory)), 0);
    CHECK_EQ(TVMPlatformMemoryAllocate(TVMGEN_DEFAULT_IMAGE_SIZE, device, &inputs.image), 0);
    CHECK_EQ(TVMPlatformMemoryAllocate(TVMGEN_DEFAULT_SCORES_SIZE, device, &outputs.scores), 0);
    for (i = 0; i < TVMGEN_DEFAULT_IMAGE_SIZE; i++) {
        ((int8_t *)inputs.image)[i] = (int8_t)(11 * i);
    }
    CHECK_EQ(tvmgen_default_run(&inputs, &outputs), 0);
    for (i = 0; i < TVMGEN_DEFAULT_SCORES_SIZE; i++) {
        TVMLogNumber(((int8_t *)outputs.scores)[i]);
    }
    platform_exit(0);
    return 0;
}
