/* tvm_graph_module.c: the graph executor as a module. */
#include <stddef.h>

#include "microtir/graph.h"
#include "tvm/runtime/crt/executor_module.h"
#include "tvm/runtime/crt/graph_executor.h"
#include "tvm/runtime/crt/graph_executor_module.h"
#include "tvm/runtime/crt/internal/graph_executor/graph_executor.h"

static int count_inputs(void *executor)
{
    return TVMGraphExecutor_GetNumInputs(executor);
}

static int count_outputs(void *executor)
{
    return TVMGraphExecutor_GetNumOutputs(executor);
}

static int find_input(void *executor, const char *name)
{
    return TVMGraphExecutor_GetInputIndex(executor, name);
}

static DLTensor *input(void *executor, int index)
{
    return tvm_graph_tensor(executor, index);
}

static DLTensor *output(void *executor, int index)
{
    return tvm_graph_tensor(executor, index + count_inputs(executor));
}

static int set_input(void *executor, int index, const DLTensor *given)
{
    return tvm_graph_set_input(executor, index, given);
}

static int load(void *executor, const TVMByteArray *params)
{
    const uint32_t size = (uint32_t)params->size;
    return (size_t)size != params->size ? (int)kTvmErrorFunctionCallInvalidArg
                                        : TVMGraphExecutor_LoadParams(executor, params->data, size);
}

static int run(void *executor)
{
    TVMGraphExecutor_Run(executor);
    return (int)kTvmErrorNoError;
}

static const char *input_name(void *executor, int index)
{
    const TVMGraphExecutor *const made = executor;
    return made->nodes[made->input_nodes[index]].name;
}

static struct tvm_executor model = {NULL,  count_inputs, count_outputs, find_input, input_name,
                                    input, output,       set_input,     load,       run};

static int create(TVMValue *args, int *codes, int count, TVMValue *result, int *result_code,
                  void *resource)
{
    TVMGraphExecutor *made = NULL;
    (void)resource;
    if (tvm_executor_is_made()) {
        return (int)kTvmErrorExecutorModuleAlreadyCreated;
    }
    if (count != 4 || args == NULL || codes == NULL) {
        return (int)kTvmErrorFunctionCallNumArguments;
    }
    if (codes[0] != (int)kTVMStr || codes[1] != (int)kTVMModuleHandle
        || codes[2] != (int)kTVMArgInt || codes[3] != (int)kTVMArgInt) {
        return (int)kTvmErrorFunctionCallWrongArgType;
    }
    if (args[2].v_int64 != (int64_t)kDLCPU || args[3].v_int64 != 0) {
        return (int)kTvmErrorExecutorModuleBadContext;
    }
    const DLDevice device = {kDLCPU, 0};
    const int status = TVMGraphExecutor_Create(args[0].v_str, args[1].v_handle, &device, &made);
    if (status != 0) {
        return status;
    }
    model.executor = made;
    return tvm_executor_give_module(&model, result, result_code);
}

tvm_crt_error_t TVMGraphExecutorModule_Register(void)
{
    return tvm_executor_register("tvm.graph_executor.create", create);
}
