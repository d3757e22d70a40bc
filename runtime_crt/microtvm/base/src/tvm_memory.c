/* tvm_memory.c: microTVM's memory managers over those of the runtime. */
#include <stddef.h>
#include <stdint.h>

#include "microtir/memory.h"
#include "microtir/status.h"
#include "tvm/runtime/crt/page_allocator.h"
#include "tvm/runtime/crt/stack_allocator.h"

static tvm_crt_error_t code_of(int32_t status)
{
    if (status == MICROTIR_OK) {
        return kTvmErrorNoError;
    }
    if (status == MICROTIR_ERROR_NO_MEMORY) {
        return kTvmErrorPlatformNoMemory;
    }
    if (status == MICROTIR_ERROR_BAD_FREE) {
        return kTvmErrorPlatformStackAllocBadFree;
    }
    return kTvmErrorPlatformCheckFailure;
}

/* The runtime counts in 32 bits: more than that is never there. */
static uint32_t bytes_of(size_t bytes)
{
#if SIZE_MAX > UINT32_MAX
    return bytes > UINT32_MAX ? UINT32_MAX : (uint32_t)bytes;
#else
    return (uint32_t)bytes;
#endif
}

/* Bytes up to the first address that is aligned: applications declare plain arrays of bytes. */
static size_t misalignment(const uint8_t *memory)
{
    const size_t rest = (size_t)((uintptr_t)memory % TVM_RUNTIME_ALLOC_ALIGNMENT_BYTES);
    return rest == 0u ? 0u : TVM_RUNTIME_ALLOC_ALIGNMENT_BYTES - rest;
}

tvm_crt_error_t StackMemoryManager_Init(tvm_workspace_t *tvm_runtime_workspace,
                                        uint8_t *g_aot_memory, size_t workspace_size)
{
    const size_t lost = misalignment(g_aot_memory);
    if (g_aot_memory == NULL || workspace_size < lost) {
        return g_aot_memory == NULL ? kTvmErrorPlatformCheckFailure : kTvmErrorPlatformNoMemory;
    }
    return code_of(microtir_stack_init(tvm_runtime_workspace, g_aot_memory + lost,
                                       bytes_of(workspace_size - lost)));
}

tvm_crt_error_t StackMemoryManager_Allocate(tvm_workspace_t *tvm_runtime_workspace, int32_t nbytes,
                                            void **current_alloc)
{
    if (nbytes < 0) {
        return kTvmErrorPlatformNoMemory;
    }
    return code_of(microtir_stack_allocate(tvm_runtime_workspace, (uint32_t)nbytes, current_alloc));
}

tvm_crt_error_t StackMemoryManager_Free(tvm_workspace_t *tvm_runtime_workspace, void *ptr)
{
    return code_of(microtir_stack_free(tvm_runtime_workspace, ptr));
}

/* A manager of pages with microTVM's face; `face` is the first member, so that a pointer to it is
 * one to the manager. */
struct manager {
    MemoryManagerInterface face;
    struct microtir_pages pages;
};

static tvm_crt_error_t allocate(MemoryManagerInterface *self, size_t num_bytes, DLDevice dev,
                                void **out_ptr)
{
    struct manager *const manager = (struct manager *)(void *)self;
    const tvm_crt_error_t code =
            code_of(microtir_pages_allocate(&manager->pages, bytes_of(num_bytes), out_ptr));
    (void)dev;
    if (code == kTvmErrorNoError) {
        self->vleak_size++;
    }
    return code;
}

static tvm_crt_error_t release(MemoryManagerInterface *self, void *ptr, DLDevice dev)
{
    struct manager *const manager = (struct manager *)(void *)self;
    const tvm_crt_error_t code = code_of(microtir_pages_free(&manager->pages, ptr));
    (void)dev;
    if (code == kTvmErrorNoError) {
        self->vleak_size--;
    }
    return code;
}

tvm_crt_error_t PageMemoryManagerCreate(MemoryManagerInterface **manager, uint8_t *memory_pool,
                                        size_t memory_pool_size_bytes, size_t page_size_bytes_log2)
{
    const size_t own = (sizeof(struct manager) + TVM_RUNTIME_ALLOC_ALIGNMENT_BYTES - 1u)
            / TVM_RUNTIME_ALLOC_ALIGNMENT_BYTES * TVM_RUNTIME_ALLOC_ALIGNMENT_BYTES;
    const size_t lost = misalignment(memory_pool);
    tvm_crt_error_t code;

    if (manager == NULL || memory_pool == NULL || page_size_bytes_log2 > 30u) {
        return kTvmErrorPlatformCheckFailure;
    }
    if (memory_pool_size_bytes <= lost + own) {
        return kTvmErrorPlatformNoMemory;
    }
    struct manager *const made = (struct manager *)(void *)(memory_pool + lost);
    code = code_of(microtir_pages_init(&made->pages, memory_pool + lost + own,
                                       bytes_of(memory_pool_size_bytes - lost - own),
                                       (uint32_t)1 << page_size_bytes_log2));
    if (code == kTvmErrorNoError) {
        made->face.Allocate = allocate;
        made->face.Free = release;
        made->face.vleak_size = 0;
        *manager = &made->face;
    }
    return code;
}
