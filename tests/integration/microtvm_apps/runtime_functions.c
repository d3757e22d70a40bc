/* Firmware that uses the runtime's functions around a model: streams, memory by shape, arrays of
 * bytes, and the registry of the system library. */
#include <stdio.h>
#include <string.h>
#include <tvm/runtime/c_backend_api.h>
#include <tvm/runtime/c_runtime_api.h>
#include <tvm/runtime/crt/crt.h>
#include <tvm/runtime/crt/func_registry.h>
#include <tvm/runtime/crt/module.h>

#include "memory.c"

#define EXPECT(condition)                          \
    do {                                           \
        if (!(condition)) {                        \
            printf("line %d\n", __LINE__);         \
            return 1;                              \
        }                                          \
    } while (0)

static int check_memory(void)
{
    const int64_t shape[2] = {3, 5}, negative[1] = {-1};
    DLDevice cpu;
    DLDataType floats;
    TVMByteArray *array = NULL;
    void *data = NULL, *bytes = NULL;

    cpu.device_type = kDLCPU;
    cpu.device_id = 0;
    floats.code = kDLFloat;
    floats.bits = 32;
    floats.lanes = 1;
    EXPECT(TVMDeviceAllocDataSpaceWithScope(cpu, 2, shape, floats, NULL, &data) == 0);
    memset(data, 1, 3 * 5 * 4);
    EXPECT(TVMDeviceAllocDataSpaceWithScope(cpu, 1, negative, floats, NULL, &bytes) != 0);
    EXPECT(TVMDeviceAllocDataSpaceWithScope(cpu, 1, NULL, floats, NULL, &bytes) != 0);
    EXPECT(manager->vleak_size == 1 && TVMDeviceFreeDataSpace(cpu, data) == 0);
    EXPECT(TVMPlatformMemoryAllocate(sizeof *array, cpu, (void **)&array) == kTvmErrorNoError);
    EXPECT(TVMPlatformMemoryAllocate(8, cpu, &bytes) == kTvmErrorNoError);
    array->data = (const char *)bytes;
    array->size = 8;
    EXPECT(TVMByteArrayFree(array) == 0 && manager->vleak_size == 0);
    return 0;
}

static int check_registry(const TVMFuncRegistry *registry)
{
    static uint8_t room[64];
    TVMMutableFuncRegistry own;
    const char *name = TVMFuncRegistry_Get0thFunctionName(registry);
    tvm_function_index_t found;
    uint16_t i;

    for (i = 0; i < TVMFuncRegistry_GetNumFuncs(registry); i++) {
        EXPECT(TVMFuncRegistry_Lookup(registry, name, &found) == kTvmErrorNoError && found == i);
        name += strlen(name) + 1;
    }
    EXPECT(i > 0 && TVMFuncRegistry_Lookup(registry, "none", &found) != kTvmErrorNoError);
    EXPECT(sizeof room / kTvmAverageFuncEntrySizeBytes > 1);
    EXPECT(TVMMutableFuncRegistry_Create(&own, room, sizeof room) == kTvmErrorNoError);
    EXPECT(TVMFuncRegistry_GetNumFuncs(&own.registry) == 0);
    EXPECT(TVMFuncRegistry_SetNumFuncs(&own.registry, 0x123) == 0);
    EXPECT(TVMFuncRegistry_GetNumFuncs(&own.registry) == 0x123);
    return 0;
}

int main(void)
{
    TVMStreamHandle stream = &manager;

    EXPECT(TVMPlatformInitialize() == kTvmErrorNoError);
    EXPECT(TVMInitializeRuntime() == kTvmErrorNoError);
    EXPECT(TVMStreamCreate(kDLCPU, 0, &stream) == 0 && stream == NULL);
    EXPECT(TVMSetStream(kDLCPU, 0, stream) == 0 && TVMSynchronize(kDLCPU, 0, stream) == 0);
    EXPECT(TVMStreamFree(kDLCPU, 0, stream) == 0);
    return check_memory() || check_registry(TVMSystemLibEntryPoint()->registry);
}
