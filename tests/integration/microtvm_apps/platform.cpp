// The platform of a board in C++: what microTVM's runtime asks an application for.
#include <cstdarg>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <tvm/runtime/crt/logging.h>
#include <tvm/runtime/crt/platform.h>
#include <tvm/runtime/crt/stack_allocator.h>

namespace {

class Arena {
public:
    tvm_crt_error_t start() { return StackMemoryManager_Init(&stack_, memory_, sizeof memory_); }

    tvm_crt_error_t take(std::size_t bytes, void **out)
    {
        return StackMemoryManager_Allocate(&stack_, static_cast<std::int32_t>(bytes), out);
    }

    tvm_crt_error_t give_back(void *block) { return StackMemoryManager_Free(&stack_, block); }

private:
    tvm_workspace_t stack_;
    std::uint8_t memory_[1 << 15];
};

Arena arena;

} // namespace

tvm_crt_error_t TVMPlatformInitialize()
{
    return arena.start();
}

tvm_crt_error_t TVMPlatformMemoryAllocate(size_t num_bytes, DLDevice, void **out_ptr)
{
    return arena.take(num_bytes, out_ptr);
}

tvm_crt_error_t TVMPlatformMemoryFree(void *ptr, DLDevice)
{
    return arena.give_back(ptr);
}

void TVMPlatformAbort(tvm_crt_error_t code)
{
    std::fprintf(stderr, "stopped: %d\n", static_cast<int>(code));
    std::exit(9);
}

size_t TVMPlatformFormatMessage(char *out_buf, size_t out_buf_size_bytes, const char *fmt,
                                va_list args)
{
    return static_cast<size_t>(std::vsnprintf(out_buf, out_buf_size_bytes, fmt, args));
}

tvm_crt_error_t TVMPlatformGenerateRandom(uint8_t *buffer, size_t num_bytes)
{
    for (size_t i = 0; i < num_bytes; i++) {
        buffer[i] = static_cast<uint8_t>(std::rand());
    }
    return kTvmErrorNoError;
}

extern "C" void TVMLogf(const char *msg, ...)
{
    char line[128];
    va_list args;
    va_start(args, msg);
    (void)TVMPlatformFormatMessage(line, sizeof line, msg, args);
    va_end(args);
    std::fputs(line, stderr);
}
