/* tvm_packed_func.c: packed functions with their arguments. */
#include "tvm/runtime/crt/packed_func.h"

#include <string.h>

TVMArgs TVMArgs_Create(TVMValue *values, uint32_t *tcodes, uint32_t values_count)
{
    TVMArgs args;
    if (values_count > (uint32_t)TVM_CRT_MAX_ARGS) {
        TVMPlatformAbort(kTvmErrorFunctionCallNumArguments);
    }
    (void)memset(&args, 0, sizeof args);
    for (uint32_t i = 0; i < values_count; i++) {
        args.values[i] = values[i];
        args.tcodes[i] = (int)tcodes[i];
    }
    args.values_count = values_count;
    return args;
}

TVMModuleHandle TVMArgs_AsModuleHandle(const TVMArgs *args, size_t index)
{
    if (index >= args->values_count || args->tcodes[index] != (int)kTVMModuleHandle) {
        TVMPlatformAbort(kTvmErrorFunctionCallWrongArgType);
    }
    return args->values[index].v_handle;
}

int TVMPackedFunc_Call(TVMPackedFunc *pf)
{
    pf->ret_value.values_count = 1;
    pf->ret_value.tcodes[0] = (int)kTVMNullptr;
    return TVMFuncCall(pf->fexec, pf->args.values, pf->args.tcodes, (int)pf->args.values_count,
                       pf->ret_value.values, pf->ret_value.tcodes);
}

void TVMPackedFunc_SetArgs(TVMPackedFunc *pf, const TVMArgs *args)
{
    pf->args = *args;
}

static int init(TVMPackedFunc *pf, const char *name, const TVMArgs *args)
{
    const size_t length = strlen(name);
    (void)memset(pf, 0, sizeof *pf);
    if (length >= sizeof pf->name) {
        return (int)kTvmErrorFunctionNameNotFound;
    }
    (void)memcpy(pf->name, name, length + 1u);
    pf->Call = TVMPackedFunc_Call;
    pf->SetArgs = TVMPackedFunc_SetArgs;
    TVMPackedFunc_SetArgs(pf, args);
    return (int)kTvmErrorNoError;
}

int TVMPackedFunc_InitGlobalFunc(TVMPackedFunc *pf, const char *name, const TVMArgs *args)
{
    const int code = init(pf, name, args);
    return code != (int)kTvmErrorNoError ? code : TVMFuncGetGlobal(name, &pf->fexec);
}

int TVMPackedFunc_InitModuleFunc(TVMPackedFunc *pf, TVMModuleHandle module, const char *name,
                                 const TVMArgs *args)
{
    const int code = init(pf, name, args);
    return code != (int)kTvmErrorNoError ? code : TVMModGetFunction(module, name, 0, &pf->fexec);
}
