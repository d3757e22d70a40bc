/* What an application for microTVM's runtime defines: memory, a log, and what stops it. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <tvm/runtime/crt/logging.h>
#include <tvm/runtime/crt/page_allocator.h>
#include <tvm/runtime/crt/platform.h>
#include <tvm/runtime/crt/stack_allocator.h>

static uint8_t memory[1 << 15] __attribute__((aligned(TVM_RUNTIME_ALLOC_ALIGNMENT_BYTES)));
static MemoryManagerInterface *manager;

tvm_crt_error_t TVMPlatformInitialize(void)
{
    return PageMemoryManagerCreate(&manager, memory, sizeof memory, 8);
}

tvm_crt_error_t TVMPlatformMemoryAllocate(size_t num_bytes, DLDevice dev, void **out_ptr)
{
    const tvm_crt_error_t code = manager->Allocate(manager, num_bytes, dev, out_ptr);
    if (code == kTvmErrorNoError) {
        memset(*out_ptr, 0xa5, num_bytes);
    }
    return code;
}

tvm_crt_error_t TVMPlatformMemoryFree(void *ptr, DLDevice dev)
{
    return manager->Free(manager, ptr, dev);
}

void TVMPlatformAbort(tvm_crt_error_t code)
{
    printf("stopped: 0x%03x\n", (unsigned int)code);
    exit(9);
}

void TVMLogf(const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    (void)vfprintf(stderr, fmt, args);
    va_end(args);
}
