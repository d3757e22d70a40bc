/* Packed AOT: hooks of the platform over a stack allocator, DLTensors, a timer. */
#include <assert.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "dlpack/dlpack.h"
#include "tvm/runtime/c_backend_api.h"
#include "tvm/runtime/c_runtime_api.h"
#include "tvm/runtime/crt/logging.h"
#include "tvm/runtime/crt/stack_allocator.h"

#define WORKSPACE_SIZE (16 * 1024)

#ifdef __cplusplus
extern "C" {
#endif

int32_t tvmgen_default_run(TVMValue *args, int *type_code, int num_args, TVMValue *out_value,
                           int *out_type_code, void *resource_handle);

static uint8_t g_aot_memory[WORKSPACE_SIZE];
tvm_workspace_t app_workspace;

tvm_crt_error_t TVMPlatformMemoryAllocate(size_t num_bytes, DLDevice dev, void **out_ptr)
{
    (void)dev;
    return StackMemoryManager_Allocate(&app_workspace, (int32_t)num_bytes, out_ptr);
}

tvm_crt_error_t TVMPlatformMemoryFree(void *ptr, DLDevice dev)
{
    (void)dev;
    return StackMemoryManager_Free(&app_workspace, ptr);
}

void TVMPlatformAbort(tvm_crt_error_t code)
{
    fprintf(stderr, "TVMPlatformAbort: %d\n", code);
    exit(-1);
}

void TVMLogf(const char *msg, ...)
{
    va_list args;
    va_start(args, msg);
    vfprintf(stdout, msg, args);
    va_end(args);
}

static clock_t g_start;
static int g_timer_running = 0;

tvm_crt_error_t TVMPlatformTimerStart(void)
{
    if (g_timer_running) {
        return kTvmErrorPlatformTimerBadState;
    }
    g_timer_running = 1;
    g_start = clock();
    return kTvmErrorNoError;
}

tvm_crt_error_t TVMPlatformTimerStop(double *elapsed_time_seconds)
{
    if (!g_timer_running) {
        return kTvmErrorPlatformTimerBadState;
    }
    g_timer_running = 0;
    *elapsed_time_seconds = (double)(clock() - g_start) / (double)CLOCKS_PER_SEC;
    return kTvmErrorNoError;
}

tvm_crt_error_t TVMPlatformGenerateRandom(uint8_t *buffer, size_t num_bytes)
{
    for (size_t i = 0; i < num_bytes; i++) {
        buffer[i] = (uint8_t)rand();
    }
    return kTvmErrorNoError;
}

/* As demos before the common part of the runtime had it: the application has these itself. */
void *TVMBackendAllocWorkspace(int device_type, int device_id, uint64_t nbytes, int dtype_code_hint,
                               int dtype_bits_hint)
{
    void *ptr = NULL;
    DLDevice dev = {(DLDeviceType)device_type, device_id};
    (void)dtype_code_hint;
    (void)dtype_bits_hint;
    assert(nbytes > 0);
    tvm_crt_error_t err = TVMPlatformMemoryAllocate((size_t)nbytes, dev, &ptr);
    CHECK_EQ(err, kTvmErrorNoError, "TVMBackendAllocWorkspace(%d, %d) -> %d", device_type,
             device_id, (int)err);
    return ptr;
}

int TVMBackendFreeWorkspace(int device_type, int device_id, void *ptr)
{
    DLDevice dev = {(DLDeviceType)device_type, device_id};
    return (int)TVMPlatformMemoryFree(ptr, dev);
}

TVM_DLL int TVMFuncRegisterGlobal(const char *name, TVMFunctionHandle f, int override)
{
    (void)name;
    (void)f;
    (void)override;
    return 0;
}

#ifdef __cplusplus
}
#endif

int main(int argc, char **argv)
{
    (void)argc;
    (void)argv;
    StackMemoryManager_Init(&app_workspace, g_aot_memory, WORKSPACE_SIZE);

    int64_t shape_in[2] = {1, 6};
    int64_t shape_out[2][2] = {{1, 4}, {1, 6}};
    DLTensor tensors[4];
    TVMValue values[4];
    int typeids[4];
    void *data[4] = {NULL, NULL, NULL, NULL};
    DLDevice cpu = {kDLCPU, 0};

    for (int i = 0; i < 4; i++) {
        int64_t *shape = i < 2 ? shape_in : shape_out[i - 2];
        if (TVMPlatformMemoryAllocate((size_t)shape[1], cpu, &data[i]) != kTvmErrorNoError) {
            TVMPlatformAbort(kTvmErrorPlatformNoMemory);
        }
        tensors[i].data = data[i];
        tensors[i].device = cpu;
        tensors[i].ndim = 2;
        tensors[i].dtype.code = kDLInt;
        tensors[i].dtype.bits = 8;
        tensors[i].dtype.lanes = 1;
        tensors[i].shape = shape;
        tensors[i].strides = NULL;
        tensors[i].byte_offset = 0;
        values[i].v_handle = &tensors[i];
        typeids[i] = kTVMDLTensorHandle;
    }
    int8_t *left = (int8_t *)data[0], *right = (int8_t *)data[1];
    for (int i = 0; i < 6; i++) {
        left[i] = (int8_t)(i * 13);
        right[i] = (int8_t)(100 - i * 17);
    }
    TVMValue ret;
    int ret_type = kTVMNullptr;
    double elapsed_time = 0;
    TVMPlatformTimerStart();
    int32_t ret_val = tvmgen_default_run(values, typeids, 4, &ret, &ret_type, NULL);
    TVMPlatformTimerStop(&elapsed_time);
    if (ret_val != 0) {
        TVMLogf("Error: %d\n", (int)ret_val);
        TVMPlatformAbort(kTvmErrorPlatformCheckFailure);
    }
    for (int t = 2; t < 4; t++) {
        for (int64_t i = 0; i < tensors[t].shape[1]; i++) {
            TVMLogf("%d\n", ((int8_t *)tensors[t].data)[i]);
        }
    }
    for (int i = 3; i >= 0; i--) {
        TVMPlatformMemoryFree(data[i], cpu);
    }
    return elapsed_time < 0;
}
