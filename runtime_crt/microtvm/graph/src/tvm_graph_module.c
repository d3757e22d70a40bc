/* tvm_graph_module.c: the graph executor as a module. */
#include <stddef.h>

#include "microtir/graph.h"
#include "tvm/runtime/crt/executor_module.h"
#include "tvm/runtime/crt/graph_executor.h"
#include "tvm/runtime/crt/graph_executor_module.h"

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

/* Views of inputs and outputs that were asked for: the executor itself needs none. */
static DLTensor views[TVM_CRT_MAX_ARGS];
static int64_t shapes[TVM_CRT_MAX_ARGS][TVM_CRT_MAX_NDIM];

static uint8_t code_of(uint8_t element)
{
    switch (element) {
    case MICROTIR_ELEMENT_SIGNED:
        return (uint8_t)kDLInt;
    case MICROTIR_ELEMENT_FLOAT:
        return (uint8_t)kDLFloat;
    case MICROTIR_ELEMENT_BOOL:
        return (uint8_t)kDLBool;
    default:
        return (uint8_t)kDLUInt;
    }
}

static DLTensor *view(void *executor, int number)
{
    void *data = NULL;
    const struct microtir_tensor_type *const type = tvm_graph_port(executor, number, &data);
    if (number >= TVM_CRT_MAX_ARGS || type->rank > TVM_CRT_MAX_NDIM) {
        return NULL;
    }
    DLTensor *const tensor = &views[number];
    tensor->data = data;
    tensor->device.device_type = kDLCPU;
    tensor->ndim = type->rank;
    tensor->dtype.code = code_of(type->dtype.element);
    tensor->dtype.bits = type->dtype.bits;
    tensor->dtype.lanes = 1;
    tensor->shape = shapes[number];
    for (int32_t i = 0; i < type->rank; i++) {
        shapes[number][i] = type->shape[i];
    }
    return tensor;
}

static DLTensor *input(void *executor, int index)
{
    return view(executor, index);
}

static DLTensor *output(void *executor, int index)
{
    return view(executor, index + count_inputs(executor));
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

static struct tvm_executor model = {NULL,  count_inputs, count_outputs, find_input,
                                    input, output,       load,          run};

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
