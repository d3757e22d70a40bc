/* Applications for microTVM's interfaces with a model that keeps a sum: 50 runs, then it forgets.
 *
 * STRUCTS, POOLS, PACKED, AOT or GRAPH says by which of them; all but the last have one instance, an
 * executor of a graph has its own. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tvmgen_default.h"

#if defined(AOT) || defined(GRAPH) || defined(PACKED)
#include <tvm/runtime/c_backend_api.h>
#include <tvm/runtime/c_runtime_api.h>
#include <tvm/runtime/crt/crt.h>
#include <tvm/runtime/crt/func_registry.h>
#include <tvm/runtime/crt/module.h>
#endif
#if defined(AOT)
#include <tvm/runtime/crt/aot_executor.h>

#include "memory.c"
#elif defined(GRAPH)
#include <tvm/runtime/crt/graph_executor.h>

#include "memory.c"
#endif

static float given[2], made[2];

static void expect(int holds, int line)
{
    if (!holds) {
        printf("line %d\n", line);
        exit(1);
    }
}
#define EXPECT(condition) expect(condition, __LINE__)

static void fill(int number)
{
    given[0] = (float)number;
    given[1] = (float)(3 - number);
}

static void print(void)
{
    printf("%d\n%d\n", (int)made[0], (int)made[1]);
}

#if defined(STRUCTS) || defined(POOLS)
static void run(void)
{
    struct tvmgen_default_inputs inputs = {given};
    struct tvmgen_default_outputs outputs = {made};
#if defined(POOLS)
    static unsigned char sram[TVMGEN_DEFAULT_SRAM_WORKSPACE_POOL_SIZE + 1]
            __attribute__((aligned(16)));
    struct tvmgen_default_workspace_pools pools = {sram};
    EXPECT(tvmgen_default_run(&inputs, &outputs, &pools) == 0);
#else
    EXPECT(tvmgen_default_run(&inputs, &outputs) == 0);
#endif
}

static void forget(void)
{
    EXPECT(tvmgen_default_reset() == 0);
}
#elif defined(PACKED)
int tvmgen_default_run(TVMValue *args, int *type_code, int num_args, TVMValue *out_value,
                       int *out_type_code, void *resource_handle);

static void run(void)
{
    static int64_t shape[] = {1, 2};
    DLTensor tensors[] = {
        {given, {kDLCPU, 0}, 2, {kDLFloat, 32, 1}, shape, NULL, 0},
        {made, {kDLCPU, 0}, 2, {kDLFloat, 32, 1}, shape, NULL, 0},
    };
    int kinds[] = {kTVMDLTensorHandle, kTVMDLTensorHandle};
    TVMValue args[2];
    args[0].v_handle = &tensors[0];
    args[1].v_handle = &tensors[1];
    EXPECT(tvmgen_default_run(args, kinds, 1, NULL, NULL, NULL) != 0); /* and nothing is kept */
    EXPECT(tvmgen_default_run(args, kinds, 2, NULL, NULL, NULL) == 0);
}

static void forget(void)
{
    EXPECT(tvmgen_default_reset() == 0);
}
#elif defined(AOT)
static TVMAotExecutor *executor;

static void run(void)
{
    if (executor == NULL) {
        static const DLDevice device = {kDLCPU, 0};
        TVMModuleHandle module = NULL;
        EXPECT(TVMPlatformInitialize() == 0 && TVMInitializeRuntime() == 0);
        EXPECT(TVMModCreateFromCModule(TVMSystemLibEntryPoint(), &module) == 0);
        EXPECT(TVMAotExecutor_Create(module, device, &executor, "default") == 0);
    }
    memcpy(executor->args[0].dl_tensor.data, given, sizeof given);
    EXPECT(TVMAotExecutor_Run(executor) == 0);
    memcpy(made, executor->args[1].dl_tensor.data, sizeof made);
}

static void forget(void)
{
    EXPECT(tvmgen_default_reset() == 0);
}
#elif defined(GRAPH)
static TVMGraphExecutor *executor, *other;

static void run_by(TVMGraphExecutor *by, float *to)
{
    static int64_t shape[] = {1, 2};
    DLTensor in = {given, {kDLCPU, 0}, 2, {kDLFloat, 32, 1}, shape, NULL, 0};
    DLTensor out = {to, {kDLCPU, 0}, 2, {kDLFloat, 32, 1}, shape, NULL, 0};
    TVMGraphExecutor_SetInput(by, "x", &in);
    TVMGraphExecutor_Run(by);
    EXPECT(TVMGraphExecutor_GetOutput(by, 0, &out) == 0);
}

static void run(void)
{
    static float ignored[2];
    if (executor == NULL) {
        static const DLDevice device = {kDLCPU, 0};
        TVMModuleHandle module = NULL;
        EXPECT(TVMPlatformInitialize() == 0 && TVMInitializeRuntime() == 0);
        EXPECT(TVMModCreateFromCModule(tvmgen_default_module(), &module) == 0);
        EXPECT(TVMGraphExecutor_Create("{}", module, &device, &executor) == 0);
        EXPECT(TVMGraphExecutor_Create("{}", module, &device, &other) == 0);
    }
    run_by(executor, made);
    run_by(other, ignored);
    run_by(other, ignored);
}

static void forget(void)
{
    EXPECT(TVMGraphExecutor_Reset(executor) == 0);
}
#endif

int main(void)
{
    for (int i = 0; i < 50; i++) {
        fill(i);
        run();
        print();
    }
    forget();
    for (int i = 0; i < 4; i++) {
        fill(i);
        run();
        print();
    }
    return 0;
}
