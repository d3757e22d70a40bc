/* tvm_registry.c: functions by name, of generated code and of applications. */
#include <stdint.h>
#include <string.h>

#include "tvm/runtime/crt/func_registry.h"

#define COUNT_BYTES 2u
/* What an entry is taken to need: a name of ten characters, its final zero, and an address. */
#define ENTRY_BYTES (11u + sizeof(TVMBackendPackedCFunc))

static uint32_t count_of(const TVMFuncRegistry *reg)
{
    return (uint8_t)reg->names[0] + ((uint32_t)(uint8_t)reg->names[1] << 8);
}

uint16_t TVMFuncRegistry_GetNumFuncs(const TVMFuncRegistry *reg)
{
    return (uint16_t)count_of(reg);
}

int TVMFuncRegistry_SetNumFuncs(const TVMFuncRegistry *reg, const uint16_t num_funcs)
{
    uint8_t *const count = (uint8_t *)(uintptr_t)reg->names; /* the application's, if it may */
    count[0] = (uint8_t)(num_funcs & 0xffu);
    count[1] = (uint8_t)(num_funcs >> 8);
    return (int)kTvmErrorNoError;
}

const char *TVMFuncRegistry_Get0thFunctionName(const TVMFuncRegistry *reg)
{
    return reg->names + COUNT_BYTES;
}

tvm_crt_error_t TVMFuncRegistry_Lookup(const TVMFuncRegistry *reg, const char *name,
                                       tvm_function_index_t *function_index)
{
    const char *entry = reg->names + COUNT_BYTES;
    for (uint32_t i = 0; i < count_of(reg); i++) {
        if (strcmp(entry, name) == 0) {
            *function_index = (tvm_function_index_t)i;
            return kTvmErrorNoError;
        }
        entry += strlen(entry) + 1u;
    }
    return kTvmErrorFunctionNameNotFound;
}

/* Where the address of a function lies: in a buffer of an application not aligned, so that it is
 * copied, and nothing tells the compiler otherwise. */
static uint8_t *place_of(const TVMFuncRegistry *reg, tvm_function_index_t index)
{
    const uintptr_t table = (uintptr_t)reg->funcs;
    return (uint8_t *)(table + index * sizeof(TVMBackendPackedCFunc));
}

tvm_crt_error_t TVMFuncRegistry_GetByIndex(const TVMFuncRegistry *reg,
                                           tvm_function_index_t function_index,
                                           TVMBackendPackedCFunc *out_func)
{
    if (function_index >= count_of(reg)) {
        return kTvmErrorFunctionIndexInvalid;
    }
    (void)memcpy(out_func, place_of(reg, function_index), sizeof *out_func);
    return kTvmErrorNoError;
}

/* Names begin at the start of the buffer, behind their number; addresses lie at its end. It is divided
 * as microTVM did, so that as many functions fit. */
tvm_crt_error_t TVMMutableFuncRegistry_Create(TVMMutableFuncRegistry *reg, uint8_t *buffer,
                                              size_t buffer_size_bytes)
{
    const size_t pointer = sizeof(TVMBackendPackedCFunc);
    if (buffer_size_bytes < ENTRY_BYTES) {
        return kTvmErrorBufferTooSmall;
    }
    const size_t fitting = buffer_size_bytes / ENTRY_BYTES;
    const size_t functions = fitting > UINT16_MAX ? UINT16_MAX : fitting;
    const uintptr_t table = (uintptr_t)buffer + (buffer_size_bytes - functions * pointer);
    buffer[0] = 0;
    buffer[1] = 0;
    reg->registry.names = (const char *)buffer;
    reg->registry.funcs = (const TVMBackendPackedCFunc *)table;
    reg->max_functions = functions;
    return kTvmErrorNoError;
}

static void set_function(TVMMutableFuncRegistry *reg, tvm_function_index_t index,
                         TVMBackendPackedCFunc func)
{
    (void)memcpy(place_of(&reg->registry, index), &func, sizeof func);
}

tvm_crt_error_t TVMMutableFuncRegistry_Set(TVMMutableFuncRegistry *reg, const char *name,
                                           TVMBackendPackedCFunc func, int override)
{
    char *const names = (char *)(uintptr_t)reg->registry.names;
    const uint32_t count = count_of(&reg->registry);
    tvm_function_index_t index = 0;
    if (TVMFuncRegistry_Lookup(&reg->registry, name, &index) == kTvmErrorNoError) {
        if (override == 0) {
            return kTvmErrorFunctionAlreadyDefined;
        }
        set_function(reg, index, func);
        return kTvmErrorNoError;
    }
    const size_t room = (size_t)((uintptr_t)reg->registry.funcs - (uintptr_t)names);
    size_t end = COUNT_BYTES;
    for (uint32_t i = 0; i < count; i++) {
        end += strlen(&names[end]) + 1u;
    }
    const size_t bytes = strlen(name) + 1u;
    if (count >= reg->max_functions || bytes > room - end) {
        return kTvmErrorFunctionRegistryFull;
    }
    (void)memcpy(&names[end], name, bytes);
    set_function(reg, (tvm_function_index_t)count, func);
    names[0] = (char)((count + 1u) & 0xffu);
    names[1] = (char)((count + 1u) >> 8);
    return kTvmErrorNoError;
}
