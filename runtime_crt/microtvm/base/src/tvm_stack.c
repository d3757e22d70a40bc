/* tvm_stack.c: microTVM's stack of memory blocks over that of the runtime. */
#include <stddef.h>
#include <stdint.h>

#include "tvm/runtime/crt/internal/common/memory.h"
#include "tvm/runtime/crt/stack_allocator.h"

tvm_crt_error_t StackMemoryManager_Init(tvm_workspace_t *tvm_runtime_workspace,
                                        uint8_t *g_aot_memory, size_t workspace_size)
{
    const size_t lost = microtvm_misalignment(g_aot_memory);
    if (g_aot_memory == NULL || workspace_size < lost) {
        return g_aot_memory == NULL ? kTvmErrorPlatformCheckFailure : kTvmErrorPlatformNoMemory;
    }
    return microtvm_code_of(microtir_stack_init(tvm_runtime_workspace, g_aot_memory + lost,
                                       microtvm_bytes_of(workspace_size - lost)));
}

tvm_crt_error_t StackMemoryManager_Allocate(tvm_workspace_t *tvm_runtime_workspace, int32_t nbytes,
                                            void **current_alloc)
{
    if (nbytes < 0) {
        return kTvmErrorPlatformNoMemory;
    }
    return microtvm_code_of(microtir_stack_allocate(tvm_runtime_workspace, (uint32_t)nbytes, current_alloc));
}

tvm_crt_error_t StackMemoryManager_Free(tvm_workspace_t *tvm_runtime_workspace, void *ptr)
{
    return microtvm_code_of(microtir_stack_free(tvm_runtime_workspace, ptr));
}
