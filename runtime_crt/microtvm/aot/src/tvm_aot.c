/* tvm_aot.c: microTVM's executor of a model that is found in a module. */
#include <stdint.h>
#include <string.h>

#include "tvm/runtime/crt/aot_executor.h"
#include "tvm/runtime/crt/packed_func.h"

#define MAIN_SUFFIX "___tvm_main__"

#define NAME_PREFIX "tvmgen_"
#define METADATA "get_c_metadata"

/* Gets the description of the model, which is the result of a function of the module: that of one
 * model by its name, else the only one. */
static int find_metadata(TVMAotExecutor *executor, const char *module_name)
{
    char name[TVM_CRT_MAX_STRLEN_FUNCTION_NAME] = METADATA;
    TVMPackedFunc describe;
    const TVMArgs none = TVMArgs_Create(NULL, NULL, 0);
    if (module_name != NULL) {
        const size_t length = strlen(module_name);
        const size_t before = sizeof NAME_PREFIX - 1u;
        if (before + length + sizeof METADATA + 1u > sizeof name) {
            return (int)kTvmErrorFunctionNameNotFound;
        }
        (void)memcpy(name, NAME_PREFIX, before);
        (void)memcpy(&name[before], module_name, length);
        (void)memcpy(&name[before + length], "_" METADATA, sizeof METADATA + 1u);
    }
    int status = TVMPackedFunc_InitModuleFunc(&describe, executor->module_handle, name, &none);
    if (status == 0) {
        status = TVMPackedFunc_Call(&describe);
    }
    if (status == 0) {
        executor->metadata = describe.ret_value.values[0].v_handle;
    }
    return status;
}

static int make_tensors(TVMAotExecutor *executor, const struct TVMTensorInfo *infos, int64_t count)
{
    for (int64_t i = 0; i < count; i++) {
        const int status =
                TVMNDArray_Empty((int32_t)infos[i].num_shape, infos[i].shape, infos[i].dtype,
                                 executor->device, &executor->args[executor->num_args]);
        if (status != 0) {
            return status;
        }
        executor->num_args++;
    }
    return 0;
}

static int init(TVMAotExecutor *executor, const char *module_name)
{
    void *args = NULL;
    int status = find_metadata(executor, module_name);
    if (status != 0) {
        return status;
    }
    const TVMMetadata *const metadata = executor->metadata;
    const size_t count = (size_t)(metadata->num_inputs + metadata->num_outputs);
    if (count > (size_t)TVM_CRT_MAX_ARGS) {
        return (int)kTvmErrorFunctionCallNumArguments;
    }
    status = (int)TVMPlatformMemoryAllocate(count * sizeof *executor->args, executor->device,
                                            &args);
    if (status == 0) {
        executor->args = args;
        status = make_tensors(executor, metadata->inputs, metadata->num_inputs);
    }
    return status != 0 ? status
                       : make_tensors(executor, metadata->outputs, metadata->num_outputs);
}

int TVMAotExecutor_Create(TVMModuleHandle module_handle, const DLDevice device,
                          TVMAotExecutor **executor, const char *module_name)
{
    void *block = NULL;
    if (module_handle == NULL || executor == NULL || device.device_type != kDLCPU) {
        return (int)kTvmErrorExecutorModuleBadContext;
    }
    const tvm_crt_error_t code = TVMPlatformMemoryAllocate(sizeof **executor, device, &block);
    if (code != kTvmErrorNoError) {
        return (int)code;
    }
    TVMAotExecutor *const made = memset(block, 0, sizeof **executor);
    made->module_handle = module_handle;
    made->device = device;
    const int status = init(made, module_name);
    if (status != 0) {
        (void)TVMAotExecutor_Release(made, device);
        return status;
    }
    *executor = made;
    return 0;
}

int TVMAotExecutor_Release(TVMAotExecutor *executor, const DLDevice device)
{
    while (executor->num_args > 0) {
        const int status = TVMNDArray_Release(&executor->args[executor->num_args - 1]);
        if (status != 0) {
            return status;
        }
        executor->num_args--;
    }
    if (executor->args != NULL) {
        const tvm_crt_error_t code = TVMPlatformMemoryFree(executor->args, device);
        if (code != kTvmErrorNoError) {
            return (int)code;
        }
        executor->args = NULL;
    }
    return (int)TVMPlatformMemoryFree(executor, device);
}

int TVMAotExecutor_GetNumInputs(TVMAotExecutor *executor)
{
    return (int)executor->metadata->num_inputs;
}

int TVMAotExecutor_GetNumOutputs(TVMAotExecutor *executor)
{
    return (int)executor->metadata->num_outputs;
}

int TVMAotExecutor_GetInputIndex(TVMAotExecutor *executor, const char *name)
{
    for (int i = 0; i < (int)executor->metadata->num_inputs; i++) {
        if (strcmp(executor->metadata->inputs[i].name, name) == 0) {
            return i;
        }
    }
    return -1;
}

int TVMAotExecutor_GetInputName(TVMAotExecutor *executor, int index, const char **name)
{
    if (index < 0 || index >= (int)executor->metadata->num_inputs) {
        return (int)kTvmErrorExecutorModuleNoSuchInput;
    }
    *name = executor->metadata->inputs[index].name;
    return 0;
}

int TVMAotExecutor_Run(TVMAotExecutor *executor)
{
    char name[TVM_CRT_MAX_STRLEN_FUNCTION_NAME];
    const size_t length = strlen(executor->metadata->mod_name);
    TVMValue values[TVM_CRT_MAX_ARGS];
    uint32_t kinds[TVM_CRT_MAX_ARGS];
    TVMPackedFunc run;

    if (length + sizeof MAIN_SUFFIX > sizeof name) {
        return (int)kTvmErrorFunctionNameNotFound;
    }
    (void)memcpy(name, executor->metadata->mod_name, length);
    (void)memcpy(&name[length], MAIN_SUFFIX, sizeof MAIN_SUFFIX);
    for (int64_t i = 0; i < executor->num_args; i++) {
        values[i].v_handle = &executor->args[i].dl_tensor;
        kinds[i] = (uint32_t)kTVMDLTensorHandle;
    }
    const TVMArgs args = TVMArgs_Create(values, kinds, (uint32_t)executor->num_args);
    const int status = TVMPackedFunc_InitModuleFunc(&run, executor->module_handle, name, &args);
    return status != 0 ? status : TVMPackedFunc_Call(&run);
}
