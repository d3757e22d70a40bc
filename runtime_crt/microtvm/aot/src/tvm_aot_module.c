/* tvm_aot_module.c: the AOT executor as a module. */
#include <string.h>

#include "microtir/status.h"
#include "tvm/runtime/crt/aot_executor.h"
#include "tvm/runtime/crt/aot_executor_module.h"
#include "tvm/runtime/crt/executor_module.h"
#include "tvm/runtime/crt/packed_arguments.h"

static int count_inputs(void *executor)
{
    return TVMAotExecutor_GetNumInputs(executor);
}

static int count_outputs(void *executor)
{
    return TVMAotExecutor_GetNumOutputs(executor);
}

static int find_input(void *executor, const char *name)
{
    return TVMAotExecutor_GetInputIndex(executor, name);
}

static DLTensor *input(void *executor, int index)
{
    TVMAotExecutor *const made = executor;
    return &made->args[index].dl_tensor;
}

static DLTensor *output(void *executor, int index)
{
    return input(executor, index + count_inputs(executor));
}

/* microTVM's module had none, and computers with TVM copied to the tensor of get_input(). */
static int set_input(void *executor, int index, const DLTensor *given)
{
    TVMAotExecutor *const made = executor;
    if (tvm_tensor_check(given, &made->metadata->inputs[index]) != MICROTIR_OK) {
        return (int)kTvmErrorFunctionCallInvalidArg;
    }
    TVMNDArray *const own = &made->args[index];
    if (given->data != own->dl_tensor.data) {
        (void)memcpy(own->dl_tensor.data, given->data, (size_t)TVMNDArray_DataSizeBytes(own));
    }
    return (int)kTvmErrorNoError;
}

static int run(void *executor)
{
    return TVMAotExecutor_Run(executor);
}

static const char *input_name(void *executor, int index)
{
    const char *name = NULL;
    (void)TVMAotExecutor_GetInputName(executor, index, &name);
    return name;
}

static struct tvm_executor model = {NULL,  count_inputs, count_outputs, find_input, input_name,
                                    input, output,       set_input,     NULL,       run};

static int create(TVMValue *args, int *codes, int count, TVMValue *result, int *result_code,
                  void *resource)
{
    TVMAotExecutor *made = NULL;
    (void)resource;
    if (tvm_executor_is_made()) {
        return (int)kTvmErrorExecutorModuleAlreadyCreated;
    }
    /* Versions of microTVM before 0.9 gave no name of the model. */
    if ((count != 2 && count != 3) || args == NULL || codes == NULL) {
        return (int)kTvmErrorFunctionCallNumArguments;
    }
    if (codes[0] != (int)kTVMModuleHandle || codes[1] != (int)kDLDevice
        || (count == 3 && codes[2] != (int)kTVMStr)) {
        return (int)kTvmErrorFunctionCallWrongArgType;
    }
    const char *const name = count == 3 ? args[2].v_str : NULL;
    const int status = TVMAotExecutor_Create(args[0].v_handle, args[1].v_device, &made, name);
    if (status != 0) {
        return status;
    }
    model.executor = made;
    return tvm_executor_give_module(&model, result, result_code);
}

tvm_crt_error_t TVMAotExecutorModule_Register(void)
{
    return tvm_executor_register("tvm.aot_executor.create", create);
}
