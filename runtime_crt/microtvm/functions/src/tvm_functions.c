/* tvm_functions.c: functions by name as microTVM's runtime found them: those of a module, those
 * that the application registers, and the one that gives the system library.
 *
 * A handle of a module is its address; one of a function is the address of a pointer to it.
 */
#include <string.h>

#include "tvm/runtime/c_runtime_api.h"
#include "tvm/runtime/crt/func_registry.h"
#include "tvm/runtime/crt/module.h"

/* A program of several models may have none. */
#if defined(__GNUC__) && defined(__ELF__)
extern const TVMModule *TVMSystemLibEntryPoint(void) __attribute__((weak));
#define HAS_SYSTEM_LIB (TVMSystemLibEntryPoint != NULL)
#else
#define HAS_SYSTEM_LIB 1
#endif

/* Functions of the application; made by the first of them. */
static uint8_t memory[TVM_CRT_GLOBAL_FUNC_REGISTRY_SIZE_BYTES];
static TVMMutableFuncRegistry own;
static const char *last_error = "";
/* Of the application, which may write over its own. */
static char own_error[TVM_CRT_MAX_STRLEN_LAST_ERROR];

/* Handles have no const, though what they are handles of is constant. */
static void *handle_of(const void *object)
{
    return (void *)(uintptr_t)object;
}

static int failed(tvm_crt_error_t code, const char *text)
{
    last_error = text;
    return (int)code;
}

const char *TVMGetLastError(void)
{
    return last_error;
}

void TVMAPISetLastError(const char *msg)
{
    const size_t length = msg == NULL ? 0u : strlen(msg);
    const size_t kept = length < sizeof own_error ? length : sizeof own_error - 1u;
    if (msg != NULL && msg != own_error) {
        (void)memcpy(own_error, msg, kept);
    }
    own_error[kept] = '\0';
    last_error = own_error;
}

static int system_lib(TVMValue *args, int *type_codes, int num_args, TVMValue *out_ret_value,
                      int *out_ret_tcode, void *resource_handle)
{
    (void)args;
    (void)type_codes;
    (void)resource_handle;
    if (num_args != 0 || out_ret_value == NULL || out_ret_tcode == NULL) {
        return failed(kTvmErrorFunctionCallNumArguments, "runtime.SystemLib takes no argument");
    }
    if (!HAS_SYSTEM_LIB) {
        return failed(kTvmErrorFunctionNameNotFound, "the program has no system library");
    }
    out_ret_value->v_handle = handle_of(TVMSystemLibEntryPoint());
    *out_ret_tcode = kTVMModuleHandle;
    return (int)kTvmErrorNoError;
}

static const TVMBackendPackedCFunc give_system_lib = system_lib;

int TVMFuncRegisterGlobal(const char *name, TVMFunctionHandle f, int override)
{
    TVMBackendPackedCFunc function = NULL;
    tvm_crt_error_t code = kTvmErrorNoError;
    if (name == NULL || f == NULL) {
        return failed(kTvmErrorFunctionCallInvalidArg, "a function without name or address");
    }
    /* The handle that an application passes is the function's own address. */
    (void)memcpy(&function, &f, sizeof function);
    if (own.registry.names == NULL) {
        code = TVMMutableFuncRegistry_Create(&own, memory, sizeof memory);
    }
    if (code == kTvmErrorNoError) {
        code = TVMMutableFuncRegistry_Set(&own, name, function, override);
    }
    if (code == kTvmErrorFunctionAlreadyDefined) {
        return failed(code, "there is a function of this name");
    }
    return code == kTvmErrorNoError
            ? (int)code
            : failed(code, "TVM_CRT_GLOBAL_FUNC_REGISTRY_SIZE_BYTES has no room for a function");
}

int TVMFuncGetGlobal(const char *name, TVMFunctionHandle *out)
{
    if (name == NULL || out == NULL) {
        return failed(kTvmErrorFunctionCallInvalidArg, "a name or a place is NULL");
    }
    tvm_function_index_t index = 0;
    if (own.registry.names != NULL
        && TVMFuncRegistry_Lookup(&own.registry, name, &index) == kTvmErrorNoError) {
        *out = handle_of(&own.registry.funcs[index]);
        return (int)kTvmErrorNoError;
    }
    if (strcmp(name, "runtime.SystemLib") == 0) {
        *out = handle_of(&give_system_lib);
        return (int)kTvmErrorNoError;
    }
    return failed(kTvmErrorFunctionNameNotFound, "there is no global function of this name");
}

int TVMModCreateFromCModule(const TVMModule *mod, TVMModuleHandle *out_handle)
{
    if (mod == NULL || out_handle == NULL) {
        return failed(kTvmErrorFunctionCallInvalidArg, "a module or a place is NULL");
    }
    *out_handle = handle_of(mod);
    return (int)kTvmErrorNoError;
}

int TVMModGetFunction(TVMModuleHandle mod, const char *func_name, int query_imports,
                      TVMFunctionHandle *out)
{
    const TVMModule *const module = mod;
    tvm_function_index_t index = 0;
    (void)query_imports; /* modules import none */
    if (module == NULL || func_name == NULL || out == NULL) {
        return failed(kTvmErrorFunctionCallInvalidArg, "a module, a name or a place is NULL");
    }
    const tvm_crt_error_t code = TVMFuncRegistry_Lookup(module->registry, func_name, &index);
    if (code != kTvmErrorNoError) {
        return failed(code, "the module has no function of this name");
    }
    *out = handle_of(&module->registry->funcs[index]);
    return (int)kTvmErrorNoError;
}

int TVMFuncCall(TVMFunctionHandle func, TVMValue *arg_values, int *type_codes, int num_args,
                TVMValue *ret_val, int *ret_type_code)
{
    const TVMBackendPackedCFunc *const function = func;
    if (function == NULL) {
        return failed(kTvmErrorFunctionCallInvalidArg, "a function is NULL");
    }
    const int status = (*function)(arg_values, type_codes, num_args, ret_val, ret_type_code, NULL);
    if (status != 0) {
        last_error = "a function reported a failure";
    }
    return status;
}

int TVMModFree(TVMModuleHandle mod)
{
    (void)mod; /* it is constant */
    return (int)kTvmErrorNoError;
}

int TVMFuncFree(TVMFunctionHandle func)
{
    (void)func;
    return (int)kTvmErrorNoError;
}
