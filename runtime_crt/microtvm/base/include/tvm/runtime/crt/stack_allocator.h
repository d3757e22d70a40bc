/* stack_allocator.h: microTVM's stack of memory blocks, given and taken back in reverse order.
 *
 * Generated code needs none; applications may keep using it for memory of their own. Compile
 * src/tvm_stack.c and the runtime's src/stack.c with it.
 */
#ifndef TVM_RUNTIME_CRT_STACK_ALLOCATOR_H_
#define TVM_RUNTIME_CRT_STACK_ALLOCATOR_H_

#include <stddef.h>
#include <stdint.h>

#include "microtir/memory.h"
#include "tvm/runtime/crt/error_codes.h"

#ifdef __cplusplus
extern "C" {
#endif

/* What memory and every block are aligned to; the runtime's macro changes it. */
#define TVM_RUNTIME_ALLOC_ALIGNMENT_BYTES MICROTIR_MEMORY_ALIGNMENT

typedef struct microtir_stack tvm_workspace_t;

/* Makes an empty stack of `workspace_size` bytes, less what aligns the first of them. */
tvm_crt_error_t StackMemoryManager_Init(tvm_workspace_t *tvm_runtime_workspace,
                                        uint8_t *g_aot_memory, size_t workspace_size);

/* Gives a block; kTvmErrorPlatformNoMemory where there is none left. */
tvm_crt_error_t StackMemoryManager_Allocate(tvm_workspace_t *tvm_runtime_workspace, int32_t nbytes,
                                            void **current_alloc);

/* Takes back the last block; kTvmErrorPlatformStackAllocBadFree for any other. */
tvm_crt_error_t StackMemoryManager_Free(tvm_workspace_t *tvm_runtime_workspace, void *ptr);

#ifdef __cplusplus
}
#endif

#endif /* TVM_RUNTIME_CRT_STACK_ALLOCATOR_H_ */
