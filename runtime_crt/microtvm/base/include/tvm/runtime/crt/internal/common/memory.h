/* memory.h: what microTVM's memory managers over those of the runtime have in common. */
#ifndef TVM_RUNTIME_CRT_INTERNAL_COMMON_MEMORY_H_
#define TVM_RUNTIME_CRT_INTERNAL_COMMON_MEMORY_H_

#include <stddef.h>
#include <stdint.h>

#include "microtir/memory.h"
#include "microtir/status.h"
#include "tvm/runtime/crt/error_codes.h"
#include "tvm/runtime/crt/stack_allocator.h"

static inline tvm_crt_error_t microtvm_code_of(int32_t status)
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
static inline uint32_t microtvm_bytes_of(size_t bytes)
{
#if SIZE_MAX > UINT32_MAX
    return bytes > UINT32_MAX ? UINT32_MAX : bytes & UINT32_MAX;
#else
    return bytes;
#endif
}

/* Bytes up to the first address that is aligned: applications declare plain arrays of bytes. */
static inline size_t microtvm_misalignment(const uint8_t *memory)
{
#ifdef __cplusplus /* which warns of casts of C in a header */
    const uintptr_t address = reinterpret_cast<uintptr_t>(memory);
#else
    const uintptr_t address = (uintptr_t)memory;
#endif
    const size_t rest = address % TVM_RUNTIME_ALLOC_ALIGNMENT_BYTES;
    return rest == 0u ? 0u : TVM_RUNTIME_ALLOC_ALIGNMENT_BYTES - rest;
}

#endif /* TVM_RUNTIME_CRT_INTERNAL_COMMON_MEMORY_H_ */
