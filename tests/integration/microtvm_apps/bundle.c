/* The graph executor, as a bundle that is linked statically: pages, system library, by name. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <tvm/runtime/c_runtime_api.h>
#include <tvm/runtime/crt/crt.h>
#include <tvm/runtime/crt/graph_executor.h>
#include <tvm/runtime/crt/logging.h>
#include <tvm/runtime/crt/module.h>
#include <tvm/runtime/crt/packed_func.h>
#include <tvm/runtime/crt/page_allocator.h>

#define CRT_MEMORY_NUM_PAGES 64
#define CRT_MEMORY_PAGE_SIZE_LOG2 10

static uint8_t g_crt_memory[CRT_MEMORY_NUM_PAGES * (1 << CRT_MEMORY_PAGE_SIZE_LOG2)];
static MemoryManagerInterface *g_memory_manager;

#define TVM_CCALL(func)                                                               \
    do {                                                                              \
        tvm_crt_error_t ret = (tvm_crt_error_t)(func);                                \
        if (ret != kTvmErrorNoError) {                                                \
            fprintf(stderr, "%s: %d: error: %s\n", __FILE__, __LINE__, TVMGetLastError()); \
            exit((int)ret);                                                           \
        }                                                                             \
    } while (0)

#ifdef __cplusplus
extern "C" {
#endif

tvm_crt_error_t TVMPlatformMemoryAllocate(size_t num_bytes, DLDevice dev, void **out_ptr)
{
    return g_memory_manager->Allocate(g_memory_manager, num_bytes, dev, out_ptr);
}

tvm_crt_error_t TVMPlatformMemoryFree(void *ptr, DLDevice dev)
{
    return g_memory_manager->Free(g_memory_manager, ptr, dev);
}

void TVMLogf(const char *msg, ...)
{
    va_list args;
    va_start(args, msg);
    vfprintf(stderr, msg, args);
    va_end(args);
}

void __attribute__((noreturn)) TVMPlatformAbort(tvm_crt_error_t error_code)
{
    fprintf(stderr, "TVMPlatformAbort: %d\n", error_code);
    exit(-1);
}

size_t TVMPlatformFormatMessage(char *out_buf, size_t out_buf_size_bytes, const char *fmt,
                                va_list args)
{
    return (size_t)vsnprintf(out_buf, out_buf_size_bytes, fmt, args);
}

static void *tvm_runtime_create(const char *json_data, const char *params_data,
                                const uint64_t params_size)
{
    int64_t device_type = kDLCPU;
    int64_t device_id = 0;
    TVMByteArray params;
    params.data = params_data;
    params.size = (size_t)params_size;
    DLDevice dev;
    dev.device_type = (DLDeviceType)device_type;
    dev.device_id = (int32_t)device_id;

    TVM_CCALL(PageMemoryManagerCreate(&g_memory_manager, g_crt_memory, sizeof(g_crt_memory),
                                      CRT_MEMORY_PAGE_SIZE_LOG2));
    TVM_CCALL(TVMInitializeRuntime());
    TVMPackedFunc pf;
    TVMArgs args = TVMArgs_Create(NULL, NULL, 0);
    TVM_CCALL(TVMPackedFunc_InitGlobalFunc(&pf, "runtime.SystemLib", &args));
    TVM_CCALL(TVMPackedFunc_Call(&pf));
    TVMModuleHandle mod_syslib = TVMArgs_AsModuleHandle(&pf.ret_value, 0);

    TVMGraphExecutor *graph_executor = NULL;
    TVM_CCALL(TVMGraphExecutor_Create(json_data, mod_syslib, &dev, &graph_executor));
    TVM_CCALL(TVMGraphExecutor_LoadParams(graph_executor, params.data, (uint32_t)params.size));
    return graph_executor;
}

#ifdef __cplusplus
}
#endif

#include "blobs.h"

int main(void)
{
    int8_t left[6], right[6], probabilities[4], features[6];
    int64_t shape[2] = {1, 6};
    int64_t shape_out[2] = {1, 4};
    DLTensor input;
    memset(&input, 0, sizeof input);
    void *handle = tvm_runtime_create(build_graph_c_json, (const char *)build_params_c_bin,
                                      build_params_c_bin_len);
    TVMGraphExecutor *executor = (TVMGraphExecutor *)handle;
    for (int i = 0; i < 6; i++) {
        left[i] = (int8_t)(i * 13);
        right[i] = (int8_t)(100 - i * 17);
    }
    input.data = left;
    DLDevice dev = {kDLCPU, 0};
    input.device = dev;
    input.ndim = 2;
    DLDataType dtype = {kDLInt, 8, 1};
    input.dtype = dtype;
    input.shape = shape;
    input.strides = NULL;
    input.byte_offset = 0;
    TVMGraphExecutor_SetInput(executor, "serving_default_left:0", &input);
    input.data = right;
    TVMGraphExecutor_SetInput(executor, "serving_default_right:0", &input);
    TVMGraphExecutor_Run(executor);
    DLTensor output = input;
    output.data = probabilities;
    output.shape = shape_out;
    TVM_CCALL(TVMGraphExecutor_GetOutput(executor, 0, &output));
    output.data = features;
    output.shape = shape;
    TVM_CCALL(TVMGraphExecutor_GetOutput(executor, 1, &output));
    for (int i = 0; i < 4; i++) {
        printf("%d\n", probabilities[i]);
    }
    for (int i = 0; i < 6; i++) {
        printf("%d\n", features[i]);
    }
    TVM_CCALL(TVMGraphExecutor_Release(&executor));
    return g_memory_manager->vleak_size;
}
