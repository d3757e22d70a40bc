/* An application that sets its buffers once and fills them again before each run. */
#include "refilled.h"

#include <tvm/runtime/crt/graph_executor.h>
#include <tvm/runtime/crt/graph_executor_module.h>

#include "blobs.h"

static const DLDevice cpu = {kDLCPU, 0};

/* A file of weights in memory that is used for something else later. */
static void load(TVMGraphExecutor *executor)
{
    void *copy = malloc(sizeof params_blob);
    memcpy(copy, params_blob, sizeof params_blob);
    EXPECT(TVMGraphExecutor_LoadParams(executor, copy, sizeof params_blob) == 0);
    memset(copy, 0x77, sizeof params_blob);
    free(copy);
}

static void by_executor(void)
{
    TVMGraphExecutor *executor = NULL;
    TVMModuleHandle module = NULL;
    float image[20], result[20];
    char odd[81], odd_result[81];
    DLTensor in = tensor_at(image), out = tensor_at(result);

    EXPECT(TVMModCreateFromCModule(TVMSystemLibEntryPoint(), &module) == 0);
    EXPECT(TVMGraphExecutor_Create("{}", module, &cpu, &executor) == 0);
    load(executor);
    TVMGraphExecutor_SetInput(executor, "image", &in);
    memset(&in, 0x33, sizeof in); /* the tensor itself is not kept */
    for (int factor = 3; factor <= 7; factor += 4) {
        fill(image, factor);
        TVMGraphExecutor_Run(executor);
        EXPECT(TVMGraphExecutor_GetOutput(executor, 0, &out) == 0);
        print(result);
    }
    in = tensor_at(odd + 1);
    TVMGraphExecutor_SetInput(executor, "image", &in);
    out = tensor_at(odd_result + 1);
    for (int factor = 3; factor <= 7; factor += 4) {
        fill(odd + 1, factor);
        TVMGraphExecutor_Run(executor);
        EXPECT(TVMGraphExecutor_GetOutput(executor, 0, &out) == 0);
        print(odd_result + 1);
    }
    extents[0] = 5;
    extents[1] = 1; /* 25 elements */
    EXPECT(TVMGraphExecutor_GetOutput(executor, 0, &out) == kTvmErrorFunctionCallInvalidArg);
    extents[0] = 4; /* 20 elements, in another shape */
    EXPECT(TVMGraphExecutor_GetOutput(executor, 0, &out) == STRICT_CODE);
    extents[0] = 1;
    extents[1] = 4;
    out.ndim = 3;
    EXPECT(TVMGraphExecutor_GetOutput(executor, 0, &out) == kTvmErrorFunctionCallInvalidArg);
    EXPECT(TVMGraphExecutor_Release(&executor) == 0 && manager->vleak_size == 0);
}

static TVMModuleHandle executor;

static TVMValue call(const char *name, TVMValue *values, uint32_t *codes, uint32_t count)
{
    TVMPackedFunc function;
    const TVMArgs args = TVMArgs_Create(values, codes, count);
    if (executor == NULL) {
        EXPECT(TVMPackedFunc_InitGlobalFunc(&function, name, &args) == 0);
    } else {
        EXPECT(TVMPackedFunc_InitModuleFunc(&function, executor, name, &args) == 0);
    }
    EXPECT(TVMPackedFunc_Call(&function) == 0);
    return function.ret_value.values[0];
}

/* Tensors that functions give are those that a run uses: their data may be replaced. */
static void by_name(void)
{
    float image[20], result[20];
    DLTensor in = tensor_at(image), *out;
    TVMValue values[4];
    uint32_t create[] = {kTVMStr, kTVMModuleHandle, kTVMArgInt, kTVMArgInt};
    uint32_t set[] = {kTVMStr, kTVMDLTensorHandle}, get[] = {kTVMArgInt}, load_params[] = {kTVMBytes};
    TVMByteArray params = {(const char *)params_blob, sizeof params_blob};

    EXPECT(TVMGraphExecutorModule_Register() == 0);
    values[0].v_str = "{}";
    values[1] = call("runtime.SystemLib", NULL, NULL, 0);
    values[2].v_int64 = kDLCPU;
    values[3].v_int64 = 0;
    executor = call("tvm.graph_executor.create", values, create, 4).v_handle;
    values[0].v_handle = &params;
    call("load_params", values, load_params, 1);
    values[0].v_str = "image";
    values[1].v_handle = &in;
    call("set_input", values, set, 2);
    for (int factor = 3; factor <= 7; factor += 4) {
        fill(image, factor);
        call("run", NULL, NULL, 0);
    }
    values[0].v_int64 = 0;
    out = call("get_output", values, get, 1).v_handle;
    print(out->data);
    /* What came out goes in again, where it lies. */
    in.data = out->data;
    values[0].v_str = "image";
    call("set_input", values, set, 2);
    call("run", NULL, NULL, 0);
    print(out->data);
    /* The application's own memory for an output, then the same for both. */
    out->data = result;
    in.data = image;
    call("set_input", values, set, 2);
    call("run", NULL, NULL, 0);
    print(result);
    in.data = result;
    call("set_input", values, set, 2);
    call("run", NULL, NULL, 0);
    print(result);
}

int main(void)
{
    char text[] = "an error of the application";
    EXPECT(TVMPlatformInitialize() == 0 && TVMInitializeRuntime() == 0);
    by_executor();
    by_name();
    TVMAPISetLastError(text);
    memset(text, 'x', sizeof text - 1);
    EXPECT(strcmp(TVMGetLastError(), "an error of the application") == 0);
    return 0;
}
