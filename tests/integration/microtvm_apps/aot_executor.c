/* An application that runs a model by microTVM's AOT executor, and has tensors of its own. */
#include <stdio.h>
#include <string.h>
#include <tvm/runtime/c_backend_api.h>
#include <tvm/runtime/c_runtime_api.h>
#include <tvm/runtime/crt/aot_executor.h>
#include <tvm/runtime/crt/crt.h>
#include <tvm/runtime/crt/func_registry.h>
#include <tvm/runtime/crt/internal/common/ndarray.h>
#include <tvm/runtime/crt/packed_func.h>

#include "memory.c"

static const DLDevice device = {kDLCPU, 0};
static const DLDataType int8 = {kDLInt, 8, 1};

static void expect(int holds, int line)
{
    if (!holds) {
        printf("line %d\n", line);
        exit(1);
    }
}
#define EXPECT(condition) expect(condition, __LINE__)

tvm_crt_error_t TVMPlatformGenerateRandom(uint8_t *buffer, size_t num_bytes)
{
    memset(buffer, 7, num_bytes);
    return kTvmErrorNoError;
}

/* An array as microTVM wrote it: 2 x 3 bytes, from an odd address on. */
static void arrays(void)
{
    static const tvm_index_t shape[] = {2, 3}, flat[] = {6}, more[] = {7}, huge[] = {1 << 30, 64};
    static char file[1 + 56 + 6];
    const uint64_t words[] = {kTVMNDArrayMagic, 0, 1, 0};
    const char *from = file + 1;
    TVMNDArray array, view, loaded;

    EXPECT(TVMNDArray_Empty(2, shape, int8, device, &array) == 0);
    EXPECT(array.dl_tensor.shape != shape && array.dl_tensor.shape[1] == 3);
    EXPECT(TVMNDArray_DataSizeBytes(&array) == 6 && ((int8_t *)array.dl_tensor.data)[5] == 0);
    EXPECT(TVMNDArray_RandomFill(&array) == 0 && ((int8_t *)array.dl_tensor.data)[5] == 7);
    EXPECT(TVMNDArray_CreateView(&array, flat, 1, int8, &view) == 0);
    EXPECT(view.dl_tensor.data == array.dl_tensor.data && view.dl_tensor.ndim == 1);
    EXPECT(TVMNDArray_CreateView(&array, more, 1, int8, &loaded) != 0);
    EXPECT(TVMNDArray_Empty(2, huge, int8, device, &loaded) == kTvmErrorPlatformNoMemory);
    EXPECT(TVMNDArray_Create(TVM_CRT_MAX_NDIM + 1, shape, int8, device, &loaded)
           == kTvmErrorFunctionCallInvalidArg);
    EXPECT(TVMNDArray_Release(&view) == 0);

    memcpy(file + 1, words, 24); /* magic, reserved, device */
    file[25] = 2;                /* ndim */
    file[30] = 8;                /* bits; the code of int is 0 */
    file[31] = 1;                /* lanes */
    file[33] = 2;
    file[41] = 3;
    file[49] = 6; /* bytes */
    memcpy(file + 57, "\1\2\3\4\5\6", 6);
    EXPECT(TVMNDArray_Load(&loaded, &from) == 0 && from == file + sizeof file);
    EXPECT(memcmp(loaded.dl_tensor.data, "\1\2\3\4\5\6", 6) == 0);
    EXPECT(TVMDeviceCopyDataFromTo(&loaded.dl_tensor, &array.dl_tensor, NULL) == 0);
    EXPECT(((int8_t *)array.dl_tensor.data)[5] == 6 && TVMSynchronize(kDLCPU, 0, NULL) == 0);
    TVMNDArray_IncrementReference(&loaded);
    TVMNDArray_IncrementReference(&loaded);
    EXPECT(TVMNDArray_Release(&loaded) == 0 && loaded.dl_tensor.data != NULL);
    EXPECT(TVMNDArray_Release(&loaded) == 0 && loaded.dl_tensor.data == NULL);
    file[49] = 5;
    from = file + 1;
    EXPECT(TVMNDArray_Load(&loaded, &from) != 0 && from == file + 1);
    EXPECT(TVMNDArray_Release(&array) == 0);
    EXPECT(manager->vleak_size == 0);
}

static int task(int task_id, TVMParallelGroupEnv *env, void *cdata)
{
    return task_id == 0 && env->num_task == 1 ? *(int *)cdata : -1;
}

static int first(TVMValue *args, int *type_codes, int num_args, TVMValue *out_ret_value,
                 int *out_ret_tcode, void *resource_handle)
{
    (void)args;
    (void)type_codes;
    (void)num_args;
    (void)out_ret_value;
    (void)out_ret_tcode;
    (void)resource_handle;
    return 1;
}

static int second(TVMValue *args, int *type_codes, int num_args, TVMValue *out_ret_value,
                  int *out_ret_tcode, void *resource_handle)
{
    return 1 + first(args, type_codes, num_args, out_ret_value, out_ret_tcode, resource_handle);
}

/* Functions by name in memory of the application, at odd addresses, too. */
static void registries(void)
{
    static uint8_t buffer[80];
    TVMMutableFuncRegistry functions;
    TVMBackendPackedCFunc found = NULL;
    tvm_function_index_t index = 9;
    char name[] = "first";
    int i;

    EXPECT(TVMMutableFuncRegistry_Create(&functions, buffer, 8) == kTvmErrorBufferTooSmall);
    EXPECT(TVMMutableFuncRegistry_Create(&functions, buffer + 1, sizeof buffer - 2) == 0);
    EXPECT(TVMMutableFuncRegistry_Set(&functions, name, first, 0) == 0);
    name[0] = 'x'; /* names are copied */
    EXPECT(TVMMutableFuncRegistry_Set(&functions, "second", first, 0) == 0);
    EXPECT(TVMMutableFuncRegistry_Set(&functions, "second", second, 0)
           == kTvmErrorFunctionAlreadyDefined);
    EXPECT(TVMMutableFuncRegistry_Set(&functions, "second", second, 1) == 0);
    EXPECT(TVMFuncRegistry_Lookup(&functions.registry, "second", &index) == 0 && index == 1);
    EXPECT(TVMFuncRegistry_GetByIndex(&functions.registry, index, &found) == 0);
    EXPECT(found(NULL, NULL, 0, NULL, NULL, NULL) == 2);
    EXPECT(TVMFuncRegistry_Lookup(&functions.registry, "first", &index) == 0 && index == 0);
    for (i = 0; i < 3; i++) {
        name[0] = (char)('a' + i);
        if (TVMMutableFuncRegistry_Set(&functions, name, first, 0) != 0) {
            break;
        }
    }
    EXPECT(i > 0 && i < 3);
    EXPECT(TVMMutableFuncRegistry_Set(&functions, "more", first, 0)
           == kTvmErrorFunctionRegistryFull);
    EXPECT(TVMFuncRegistry_Lookup(&functions.registry, "first", &index) == 0 && index == 0);
}

static void backend(void)
{
    static const tvm_index_t shape[] = {4};
    int result = 5;
    DLTensor tensor;
    TVMArrayHandle handle = &tensor;
    TVMFunctionHandle function = NULL;
    void *block = TVMBackendAllocWorkspace(kDLCPU, 0, 100, kDLInt, 8);

    EXPECT(block != NULL && TVMBackendFreeWorkspace(kDLCPU, 0, block) == 0);
    EXPECT(TVMBackendParallelLaunch(task, &result, 4) == 5);
    EXPECT(TVMBackendRegisterSystemLibSymbol("own", (void *)&first) == 0);
    EXPECT(TVMFuncGetGlobal("own", &function) == 0);
    EXPECT(TVMArrayAlloc(shape, 1, kDLFloat, 32, 1, kDLCPU, 0, &handle) == 0);
    EXPECT(tensor.shape[0] == 4 && ((float *)tensor.data)[3] == 0.0f);
    EXPECT(TVMArrayFree(handle) == 0 && tensor.data == NULL);
    EXPECT(TVMDeviceAllocDataSpace(device, 5, 16, int8, &block) == 0);
    EXPECT(TVMDeviceFreeDataSpace(device, block) == 0);
    EXPECT(manager->vleak_size == 0);
}

int main(void)
{
    TVMAotExecutor *executor = NULL;
    TVMModuleHandle module = NULL;
    TVMFunctionHandle function = NULL;
    const DLDevice other = {kDLExtDev, 0};
    const char *name = NULL;
    int8_t *image;
    int i, run;

    EXPECT(TVMPlatformInitialize() == 0 && TVMInitializeRuntime() == 0);
    arrays();
    registries();
    backend();
    EXPECT(TVMModCreateFromCModule(TVMSystemLibEntryPoint(), &module) == 0);
    EXPECT(TVMModGetFunction(module, "tvmgen_default_run", 0, &function) == 0);
    EXPECT(TVMAotExecutor_Create(module, other, &executor, "default")
           == kTvmErrorExecutorModuleBadContext);
    EXPECT(TVMAotExecutor_Create(module, device, &executor, "other") != 0);
    EXPECT(TVMAotExecutor_Create(module, device, &executor, NULL) == 0);
    EXPECT(TVMAotExecutor_Release(executor, device) == 0);
    EXPECT(TVMAotExecutor_Create(module, device, &executor, "default") == 0);
    EXPECT(TVMAotExecutor_GetNumInputs(executor) == 1);
    EXPECT(TVMAotExecutor_GetNumOutputs(executor) == 1 && executor->num_args == 2);
    EXPECT(TVMAotExecutor_GetInputIndex(executor, "picture") == -1);
    EXPECT(TVMAotExecutor_GetInputIndex(executor, "image") == 0);
    EXPECT(TVMAotExecutor_GetInputName(executor, 1, &name) == kTvmErrorExecutorModuleNoSuchInput);
    EXPECT(TVMAotExecutor_GetInputName(executor, 0, &name) == 0 && strcmp(name, "image") == 0);
    EXPECT(strcmp(executor->metadata->outputs[0].name, "scores") == 0);
    EXPECT(executor->metadata->inputs[0].num_shape == 4);
    image = executor->args[0].dl_tensor.data;
    for (i = 0; i < 12; i++) {
        image[i] = (int8_t)(11 * i);
    }
    for (run = 0; run < 2; run++) {
        EXPECT(TVMAotExecutor_Run(executor) == 0);
    }
    for (i = 0; i < 5; i++) {
        printf("%d\n", ((int8_t *)executor->args[1].dl_tensor.data)[i]);
    }
    executor->args[0].dl_tensor.ndim = 3;
    EXPECT(TVMAotExecutor_Run(executor) != 0);
    EXPECT(TVMAotExecutor_Release(executor, device) == 0 && manager->vleak_size == 0);
    return 0;
}
