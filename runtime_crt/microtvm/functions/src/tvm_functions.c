/* tvm_functions.c: functions by name as microTVM's runtime found them: those of a module, those
 * that the application registers, and the one that gives the system library.
 *
 * A handle of a module is its address; one of a function is the address of a pointer to it.
 */
#include <string.h>

#include "tvm/runtime/c_runtime_api.h"
#include "tvm/runtime/crt/func_registry.h"
#include "tvm/runtime/crt/module.h"

/* As many as microTVM's table of TVM_CRT_GLOBAL_FUNC_REGISTRY_SIZE_BYTES held, at 16 bytes each. */
#define MAX_FUNCTIONS ((TVM_CRT_GLOBAL_FUNC_REGISTRY_SIZE_BYTES + 15) / 16)

/* A program of several models may have none. */
#if defined(__GNUC__) && defined(__ELF__)
extern const TVMModule *TVMSystemLibEntryPoint(void) __attribute__((weak));
#define HAS_SYSTEM_LIB (TVMSystemLibEntryPoint != NULL)
#else
#define HAS_SYSTEM_LIB 1
#endif

struct registered {
    const char *name;
    TVMBackendPackedCFunc function;
};

static struct registered functions[MAX_FUNCTIONS];
static uint32_t function_count;
static const char *last_error = "";

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
    last_error = msg != NULL ? msg : "";
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

static struct registered *find(const char *name)
{
    for (uint32_t i = 0; i < function_count; i++) {
        if (strcmp(functions[i].name, name) == 0) {
            return &functions[i];
        }
    }
    return NULL;
}

int TVMFuncRegisterGlobal(const char *name, TVMFunctionHandle f, int override)
{
    if (name == NULL || f == NULL) {
        return failed(kTvmErrorFunctionCallInvalidArg, "a function without name or address");
    }
    struct registered *place = find(name);
    if (place != NULL && override == 0) {
        return failed(kTvmErrorFunctionAlreadyDefined, "there is a function of this name");
    }
    if (place == NULL) {
        if (function_count == (uint32_t)MAX_FUNCTIONS) {
            return failed(kTvmErrorFunctionRegistryFull, "there is no place for another function");
        }
        place = &functions[function_count];
        function_count++;
        place->name = name;
    }
    /* The handle that an application passes is the function's own address. */
    (void)memcpy(&place->function, &f, sizeof place->function);
    return (int)kTvmErrorNoError;
}

int TVMFuncGetGlobal(const char *name, TVMFunctionHandle *out)
{
    if (name == NULL || out == NULL) {
        return failed(kTvmErrorFunctionCallInvalidArg, "a name or a place is NULL");
    }
    const struct registered *const own = find(name);
    if (own != NULL) {
        *out = handle_of(&own->function);
        return (int)kTvmErrorNoError;
    }
    if (strcmp(name, "runtime.SystemLib") == 0) {
        *out = handle_of(&give_system_lib);
        return (int)kTvmErrorNoError;
    }
    return failed(kTvmErrorFunctionNameNotFound, "there is no global function of this name");
}

tvm_crt_error_t TVMFuncRegistry_Lookup(const TVMFuncRegistry *reg, const char *name,
                                       tvm_function_index_t *function_index)
{
    const uint32_t low = (uint8_t)reg->names[0];
    const uint32_t high = (uint8_t)reg->names[1];
    const uint32_t count = low + (high << 8);
    const char *entry = reg->names + 2;
    for (uint32_t i = 0; i < count; i++) {
        if (strcmp(entry, name) == 0) {
            *function_index = (tvm_function_index_t)i;
            return kTvmErrorNoError;
        }
        entry += strlen(entry) + 1u;
    }
    return kTvmErrorFunctionNameNotFound;
}

tvm_crt_error_t TVMFuncRegistry_GetByIndex(const TVMFuncRegistry *reg,
                                           tvm_function_index_t function_index,
                                           TVMBackendPackedCFunc *out_func)
{
    const uint32_t count = (uint8_t)reg->names[0] + ((uint32_t)(uint8_t)reg->names[1] << 8);
    if (function_index >= count) {
        return kTvmErrorFunctionIndexInvalid;
    }
    *out_func = reg->funcs[function_index];
    return kTvmErrorNoError;
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
