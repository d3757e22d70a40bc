/* What an application for microTVM's runtime brings, as little as programs of tests need. */
#include <stdlib.h>
#include <tvm/runtime/crt/platform.h>

void TVMPlatformAbort(tvm_crt_error_t code)
{
    (void)code;
    abort();
}

tvm_crt_error_t TVMPlatformMemoryAllocate(size_t num_bytes, DLDevice dev, void **out_ptr)
{
    (void)dev;
    *out_ptr = malloc(num_bytes);
    return *out_ptr == NULL ? kTvmErrorPlatformNoMemory : kTvmErrorNoError;
}

tvm_crt_error_t TVMPlatformMemoryFree(void *ptr, DLDevice dev)
{
    (void)dev;
    free(ptr);
    return kTvmErrorNoError;
}
