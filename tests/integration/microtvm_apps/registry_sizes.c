/* Registries in buffers of every size from none to three functions, at every alignment. */
#include <stdio.h>
#include <string.h>
#include <tvm/runtime/crt/func_registry.h>

#define ENTRY (TVM_AVERAGE_FUNCTION_NAME_STRLEN_BYTES + 1u + (unsigned int)sizeof(void *))
#define EXPECT(condition)                                     \
    do {                                                      \
        if (!(condition)) {                                   \
            printf("%u + %u: %s\n", at, size, #condition);   \
            return 1;                                         \
        }                                                     \
    } while (0)

static int called(TVMValue *args, int *codes, int count, TVMValue *result, int *kind, void *resource)
{
    (void)args;
    (void)codes;
    (void)count;
    (void)result;
    (void)kind;
    (void)resource;
    return 7;
}

static int check(uint8_t *buffer, unsigned int at, unsigned int size)
{
    static const char letters[] = "abcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyz";
    const unsigned int functions = size / ENTRY;
    const unsigned int room = size - functions * (unsigned int)sizeof(void *) - 2u;
    TVMMutableFuncRegistry own;
    TVMBackendPackedCFunc found = NULL;
    tvm_function_index_t index = 100;
    char name[64];
    const int code = (int)TVMMutableFuncRegistry_Create(&own, buffer, size);

    if (functions == 0u) {
        EXPECT(code == (int)kTvmErrorBufferTooSmall);
        return 0;
    }
    EXPECT(code == (int)kTvmErrorNoError && own.max_functions == functions);
    memcpy(name, letters, room);
    name[room] = 0; /* and its zero: a byte too many */
    EXPECT(TVMMutableFuncRegistry_Set(&own, name, called, 0) == kTvmErrorFunctionRegistryFull);
    EXPECT(TVMFuncRegistry_Lookup(&own.registry, name, &index) == kTvmErrorFunctionNameNotFound);
    /* All but the last have names of two letters; that of the last one just fits. */
    for (unsigned int i = 0; i < functions; i++) {
        const unsigned int length = i + 1u < functions ? 2u : room - (functions - 1u) * 3u - 1u;
        memcpy(name, &letters[i], length);
        name[length] = 0;
        EXPECT(TVMMutableFuncRegistry_Set(&own, name, called, 0) == kTvmErrorNoError);
        EXPECT(TVMFuncRegistry_Lookup(&own.registry, name, &index) == kTvmErrorNoError);
        EXPECT(index == i);
        EXPECT(TVMFuncRegistry_GetByIndex(&own.registry, index, &found) == kTvmErrorNoError);
        EXPECT(found(NULL, NULL, 0, NULL, NULL, NULL) == 7);
    }
    EXPECT(TVMMutableFuncRegistry_Set(&own, "z", called, 0) == kTvmErrorFunctionRegistryFull);
    return 0;
}

int main(void)
{
    static uint8_t memory[4u * ENTRY];
    for (unsigned int at = 0; at < sizeof(void *); at++) {
        for (unsigned int size = 0; size <= 3u * ENTRY; size++) {
            if (check(memory + at, at, size) != 0) {
                return 1;
            }
        }
    }
    return 0;
}
