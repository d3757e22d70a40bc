/* tvm_pages.c: microTVM's manager of memory pages over that of the runtime. */
#include <stddef.h>
#include <stdint.h>

#include "tvm/runtime/crt/internal/common/memory.h"
#include "tvm/runtime/crt/page_allocator.h"

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
            microtvm_code_of(microtir_pages_allocate(&manager->pages, microtvm_bytes_of(num_bytes), out_ptr));
    (void)dev;
    if (code == kTvmErrorNoError) {
        self->vleak_size++;
    }
    return code;
}

static tvm_crt_error_t release(MemoryManagerInterface *self, void *ptr, DLDevice dev)
{
    struct manager *const manager = (struct manager *)(void *)self;
    const tvm_crt_error_t code = microtvm_code_of(microtir_pages_free(&manager->pages, ptr));
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
    const size_t lost = microtvm_misalignment(memory_pool);
    tvm_crt_error_t code;

    if (manager == NULL || memory_pool == NULL || page_size_bytes_log2 > 30u) {
        return kTvmErrorPlatformCheckFailure;
    }
    if (memory_pool_size_bytes <= lost + own) {
        return kTvmErrorPlatformNoMemory;
    }
    struct manager *const made = (struct manager *)(void *)(memory_pool + lost);
    code = microtvm_code_of(microtir_pages_init(&made->pages, memory_pool + lost + own,
                                       microtvm_bytes_of(memory_pool_size_bytes - lost - own),
                                       (uint32_t)1 << page_size_bytes_log2));
    if (code == kTvmErrorNoError) {
        made->face.Allocate = allocate;
        made->face.Free = release;
        made->face.vleak_size = 0;
        *manager = &made->face;
    }
    return code;
}
