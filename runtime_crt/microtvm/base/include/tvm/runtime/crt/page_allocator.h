/* page_allocator.h: microTVM's manager of memory pages, given and taken back in any order.
 *
 * Generated code needs none. Compile src/tvm_pages.c and the runtime's src/pages.c with it.
 */
#ifndef TVM_RUNTIME_CRT_PAGE_ALLOCATOR_H_
#define TVM_RUNTIME_CRT_PAGE_ALLOCATOR_H_

#include <dlpack/dlpack.h>
#include <stddef.h>
#include <stdint.h>

#include "tvm/runtime/crt/error_codes.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct MemoryManagerInterface MemoryManagerInterface;

struct MemoryManagerInterface {
    tvm_crt_error_t (*Allocate)(MemoryManagerInterface *self, size_t num_bytes, DLDevice dev,
                                void **out_ptr);
    tvm_crt_error_t (*Free)(MemoryManagerInterface *self, void *ptr, DLDevice dev);
    int vleak_size; /* blocks that are out */
};

/* Makes a manager at the first address of `memory_pool` that is a multiple of
 * TVM_RUNTIME_ALLOC_ALIGNMENT_BYTES; the rest of the pool is its pages. */
tvm_crt_error_t PageMemoryManagerCreate(MemoryManagerInterface **manager, uint8_t *memory_pool,
                                        size_t memory_pool_size_bytes, size_t page_size_bytes_log2);

#ifdef __cplusplus
}
#endif

#endif /* TVM_RUNTIME_CRT_PAGE_ALLOCATOR_H_ */
