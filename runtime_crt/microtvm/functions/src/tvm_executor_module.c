/* tvm_executor_module.c: an executor as a module whose functions are found by name. */
#include "tvm/runtime/crt/executor_module.h"

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "tvm/runtime/metadata_types.h"

/* The one executor; NULL until it is made. */
static const struct tvm_executor *current;

/* Both names of what may be the place of a result are set, or neither. */
static int give(TVMValue *place, int *code_place, TVMValue value, int code)
{
    if (place != NULL && code_place != NULL) {
        *place = value;
        *code_place = code;
    }
    return (int)kTvmErrorNoError;
}

static int give_number(TVMValue *place, int *code_place, int64_t number)
{
    TVMValue value;
    value.v_int64 = number;
    return give(place, code_place, value, (int)kTVMArgInt);
}

static int give_tensor(TVMValue *place, int *code_place, DLTensor *tensor)
{
    TVMValue value;
    value.v_handle = tensor;
    return give(place, code_place, value, (int)kTVMNDArrayHandle);
}

static int give_nothing(TVMValue *place, int *code_place, int status)
{
    TVMValue value;
    value.v_handle = NULL;
    (void)give(place, code_place, value, (int)kTVMNullptr);
    return status;
}

/* 0 if there is an executor, and as many arguments as a function takes. */
static int checked(const TVMValue *args, const int *codes, int count, int expected)
{
    if (current == NULL) {
        return (int)kTvmErrorExecutorModuleBadContext;
    }
    if (count != expected) {
        return (int)kTvmErrorFunctionCallNumArguments;
    }
    return expected > 0 && (args == NULL || codes == NULL)
            ? (int)kTvmErrorFunctionCallInvalidArg
            : (int)kTvmErrorNoError;
}

/* The number of an input that an argument names or numbers. */
static int input_number(const TVMValue *args, const int *codes, int *index)
{
    if (codes[0] == (int)kTVMStr && args[0].v_str != NULL) {
        *index = current->find_input(current->executor, args[0].v_str);
    } else if (codes[0] == (int)kTVMArgInt) {
        const int64_t number = args[0].v_int64;
        *index = number >= 0 && number < current->count_inputs(current->executor) ? (int)number
                                                                                  : -1;
    } else {
        return (int)kTvmErrorFunctionCallWrongArgType;
    }
    return (int)(*index < 0 ? kTvmErrorExecutorModuleNoSuchInput : kTvmErrorNoError);
}

static int get_input(TVMValue *args, int *codes, int count, TVMValue *result, int *result_code,
                     void *resource)
{
    int index = 0;
    int status = checked(args, codes, count, 1);
    (void)resource;
    if (status == 0) {
        status = input_number(args, codes, &index);
    }
    return status != 0 ? status
                       : give_tensor(result, result_code,
                                     current->input(current->executor, index));
}

static int get_input_index(TVMValue *args, int *codes, int count, TVMValue *result,
                           int *result_code, void *resource)
{
    int index = 0;
    int status = checked(args, codes, count, 1);
    (void)resource;
    if (status == 0) {
        status = input_number(args, codes, &index);
    }
    return status != 0 ? status : give_number(result, result_code, index);
}

static int get_input_name(TVMValue *args, int *codes, int count, TVMValue *result,
                          int *result_code, void *resource)
{
    TVMValue value;
    int index = 0;
    int status = checked(args, codes, count, 1);
    (void)resource;
    if (status == 0) {
        status = input_number(args, codes, &index);
    }
    if (status != 0) {
        return status;
    }
    value.v_str = current->input_name(current->executor, index);
    return give(result, result_code, value, (int)kTVMStr);
}

/* Name, shape and type of an input; the next call writes the same struct. */
static int get_input_info(TVMValue *args, int *codes, int count, TVMValue *result,
                          int *result_code, void *resource)
{
    static struct TVMTensorInfo info;
    TVMValue value;
    int index = 0;
    int status = checked(args, codes, count, 1);
    (void)resource;
    if (status == 0) {
        status = input_number(args, codes, &index);
    }
    if (status != 0) {
        return status;
    }
    const DLTensor *const tensor = current->input(current->executor, index);
    info.name = current->input_name(current->executor, index);
    info.shape = tensor->shape;
    info.num_shape = tensor->ndim;
    info.dtype = tensor->dtype;
    value.v_handle = &info;
    return give(result, result_code, value, (int)kTVMOpaqueHandle);
}

static int get_num_inputs(TVMValue *args, int *codes, int count, TVMValue *result,
                          int *result_code, void *resource)
{
    const int status = checked(args, codes, count, 0);
    (void)resource;
    return status != 0 ? status
                       : give_number(result, result_code,
                                     current->count_inputs(current->executor));
}

static int get_num_outputs(TVMValue *args, int *codes, int count, TVMValue *result,
                           int *result_code, void *resource)
{
    const int status = checked(args, codes, count, 0);
    (void)resource;
    return status != 0 ? status
                       : give_number(result, result_code,
                                     current->count_outputs(current->executor));
}

static int get_output(TVMValue *args, int *codes, int count, TVMValue *result, int *result_code,
                      void *resource)
{
    const int status = checked(args, codes, count, 1);
    (void)resource;
    if (status != 0) {
        return status;
    }
    if (codes[0] != (int)kTVMArgInt) {
        return (int)kTvmErrorFunctionCallWrongArgType;
    }
    if (args[0].v_int64 < 0 || args[0].v_int64 >= current->count_outputs(current->executor)) {
        return (int)kTvmErrorFunctionCallInvalidArg;
    }
    return give_tensor(result, result_code,
                       current->output(current->executor, (int)args[0].v_int64));
}

static int load_params(TVMValue *args, int *codes, int count, TVMValue *result, int *result_code,
                       void *resource)
{
    const int status = checked(args, codes, count, 1);
    (void)resource;
    if (status != 0) {
        return status;
    }
    if (current->load == NULL) {
        return (int)kTvmErrorFunctionCallNotImplemented;
    }
    if (codes[0] != (int)kTVMBytes || args[0].v_handle == NULL) {
        return (int)kTvmErrorFunctionCallWrongArgType;
    }
    return give_nothing(result, result_code,
                        current->load(current->executor, args[0].v_handle));
}

static int run(TVMValue *args, int *codes, int count, TVMValue *result, int *result_code,
               void *resource)
{
    const int status = checked(args, codes, count, 0);
    (void)resource;
    return status != 0 ? status
                       : give_nothing(result, result_code, current->run(current->executor));
}

static int set_input(TVMValue *args, int *codes, int count, TVMValue *result, int *result_code,
                     void *resource)
{
    int index = 0;
    int status = checked(args, codes, count, 2);
    (void)resource;
    if (status == 0) {
        status = input_number(args, codes, &index);
    }
    if (status != 0) {
        return status;
    }
    if ((codes[1] != (int)kTVMDLTensorHandle && codes[1] != (int)kTVMNDArrayHandle)
        || args[1].v_handle == NULL) {
        return (int)kTvmErrorFunctionCallWrongArgType;
    }
    return give_nothing(result, result_code,
                        current->set_input(current->executor, index, args[1].v_handle));
}

static int not_there(TVMValue *args, int *codes, int count, TVMValue *result, int *result_code,
                     void *resource)
{
    (void)args;
    (void)codes;
    (void)count;
    (void)result;
    (void)result_code;
    (void)resource;
    return (int)kTvmErrorFunctionCallNotImplemented;
}

static const TVMBackendPackedCFunc functions[] = {
        get_input,  get_input_index, get_input_info, get_num_inputs, get_num_outputs,
        get_output, load_params,     run,            set_input,      not_there,
        get_input_name,
};
static const char names[] = "\013\000get_input\000get_input_index\000get_input_info\000"
                            "get_num_inputs\000get_num_outputs\000get_output\000load_params\000"
                            "run\000set_input\000share_params\000get_input_name\000";
static const TVMFuncRegistry registry = {names, functions};
static const TVMModule module = {&registry, NULL};

tvm_crt_error_t tvm_executor_register(const char *name, TVMBackendPackedCFunc create)
{
    TVMFunctionHandle handle = NULL;
    (void)memcpy(&handle, &create, sizeof handle);
    return (tvm_crt_error_t)TVMFuncRegisterGlobal(name, handle, 0);
}

int tvm_executor_is_made(void)
{
    return current != NULL;
}

int tvm_executor_give_module(const struct tvm_executor *made, TVMValue *out_ret_value,
                             int *out_ret_tcode)
{
    TVMModuleHandle handle = NULL;
    const int status = TVMModCreateFromCModule(&module, &handle);
    if (status == 0) {
        TVMValue value;
        current = made;
        value.v_handle = handle;
        (void)give(out_ret_value, out_ret_tcode, value, (int)kTVMModuleHandle);
    }
    return status;
}
