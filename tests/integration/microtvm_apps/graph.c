/* An application that runs the graph executor, as the bundle of microTVM's examples did. */
#include <stdio.h>
#include <string.h>
#include <tvm/runtime/c_runtime_api.h>
#include <tvm/runtime/crt/crt.h>
#include <tvm/runtime/crt/graph_executor.h>
#include <tvm/runtime/crt/packed_func.h>

#include "blobs.h"
#include "memory.c"

static int check(int status, int line)
{
    if (status != 0) {
        printf("line %d: 0x%03x %s\n", line, (unsigned int)status, TVMGetLastError());
        exit(1);
    }
    return status;
}
#define CALL(call) check((int)(call), __LINE__)

int main(int argc, char **argv)
{
    int8_t image[12], scores[5];
    int64_t shapes[2][4] = {{1, 3, 4, 1}, {1, 5, 0, 0}};
    DLDevice device = {kDLCPU, 0};
    DLTensor in = {image, {kDLCPU, 0}, 4, {kDLInt, 8, 1}, shapes[0], NULL, 0};
    DLTensor out = {scores, {kDLCPU, 0}, 2, {kDLInt, 8, 1}, shapes[1], NULL, 0};
    TVMByteArray params = {(const char *)params_blob, sizeof params_blob};
    TVMGraphExecutor *executor = NULL;
    TVMPackedFunc function;
    TVMArgs none = TVMArgs_Create(NULL, NULL, 0);
    int i, run;

    CALL(TVMPlatformInitialize());
    CALL(TVMInitializeRuntime());
    CALL(TVMPackedFunc_InitGlobalFunc(&function, "runtime.SystemLib", &none));
    CALL(TVMPackedFunc_Call(&function));
    TVMModuleHandle module = TVMArgs_AsModuleHandle(&function.ret_value, 0);
    CALL(TVMGraphExecutor_Create(graph_json, module, &device, &executor));
    CALL(TVMGraphExecutor_LoadParams(executor, params.data, (uint32_t)params.size));
    CALL(TVMGraphExecutor_GetNumInputs(executor) != 1);
    CALL(TVMGraphExecutor_GetNumOutputs(executor) != 1);
    CALL(TVMGraphExecutor_GetInputIndex(executor, "image"));
    CALL(TVMGraphExecutor_GetInputIndex(executor, "picture") != -1);
    CALL(TVMGraphExecutor_GetOutput(executor, 1, &out) == 0);
    for (i = 0; i < 12; i++) {
        image[i] = (int8_t)(11 * i);
    }
    if (argc > 1) { /* what microTVM passed over in silence */
        if (strcmp(argv[1], "shape") == 0) {
            shapes[0][1] = 4;
        }
        TVMGraphExecutor_SetInput(executor, strcmp(argv[1], "name") == 0 ? "picture" : "image",
                                  &in);
    }
    TVMGraphExecutor_SetInput(executor, "image", &in);
    for (run = 0; run < 2; run++) {
        TVMGraphExecutor_Run(executor);
        CALL(TVMGraphExecutor_GetOutput(executor, 0, &out));
    }
    memset(image, 0, sizeof image);
    for (i = 0; i < 5; i++) {
        printf("%d\n", scores[i]);
    }
    CALL(TVMGraphExecutor_Release(&executor));
    CALL(executor != NULL || manager->vleak_size != 0);
    return 0;
}
