/* c_runtime_api.h: the types of microTVM's runtime that applications name. */
#ifndef TVM_RUNTIME_C_RUNTIME_API_H_
#define TVM_RUNTIME_C_RUNTIME_API_H_

#include <dlpack/dlpack.h>
#include <stddef.h>
#include <stdint.h>

#include "tvm/runtime/crt/defaults.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Marks functions that a shared library offers, also where -fvisibility=hidden hides all others. */
#ifndef TVM_DLL
#if defined(__EMSCRIPTEN__)
#define TVM_DLL __attribute__((used, visibility("default")))
#elif defined(__GNUC__) && !defined(_WIN32)
#define TVM_DLL __attribute__((visibility("default")))
#else
#define TVM_DLL
#endif
#endif

#ifndef TVM_WEAK
#if defined(__GNUC__)
#define TVM_WEAK __attribute__((weak))
#define TVM_ATTRIBUTE_UNUSED __attribute__((unused))
#else
#define TVM_WEAK
#define TVM_ATTRIBUTE_UNUSED
#endif
#endif

/* The version of TVM whose interface this is. */
#define TVM_VERSION "0.18.0"

typedef int64_t tvm_index_t;

/* Kinds of devices besides those of DLPack. */
typedef enum {
    kDLAOCL = 32,
    kDLSDAccel = 33,
    kOpenGL = 34,
    kDLMicroDev = 35,
    TVMDeviceExtType_End = 36
} TVMDeviceExtType;

/* Kinds of arguments of a packed function; those below 4 are DLDataTypeCode. */
typedef enum {
    kTVMArgInt = kDLInt,
    kTVMArgFloat = kDLFloat,
    kTVMOpaqueHandle = 3,
    kTVMNullptr = 4,
    kTVMDataType = 5,
    kDLDevice = 6,
    kTVMDLTensorHandle = 7,
    kTVMObjectHandle = 8,
    kTVMModuleHandle = 9,
    kTVMPackedFuncHandle = 10,
    kTVMStr = 11,
    kTVMBytes = 12,
    kTVMNDArrayHandle = 13,
    kTVMObjectRValueRefArg = 14,
    kTVMArgBool = 15,
    kTVMExtBegin = 16, /* from here on there are none */
    kTVMNNVMFirst = 16,
    kTVMNNVMLast = 20,
    kTVMExtReserveEnd = 64,
    kTVMExtEnd = 128
} TVMArgTypeCode;

typedef DLTensor *TVMArrayHandle;

/* One argument of a packed function; its kind says which member holds. */
typedef union {
    int64_t v_int64;
    double v_float64;
    void *v_handle;
    const char *v_str;
    DLDataType v_type;
    DLDevice v_device;
} TVMValue;

typedef struct {
    const char *data;
    size_t size;
} TVMByteArray;

/* What functions and modules are known by. */
typedef void *TVMFunctionHandle;
typedef void *TVMModuleHandle;
typedef void *TVMRetValueHandle;
typedef void *TVMObjectHandle;

/* Functions of TVM's runtime on a computer; a TVMBackendPackedCFunc is what is called here. */
typedef int (*TVMPackedCFunc)(TVMValue *args, int *type_codes, int num_args, TVMRetValueHandle ret,
                              void *resource_handle);
typedef void (*TVMPackedCFuncFinalizer)(void *resource_handle);
typedef int (*TVMExtensionFuncDeclarer)(TVMFunctionHandle register_func_handle);

/* The functions below are there where code was generated with a system library, or for the graph
 * executor. Those that return int return 0, or a code of error_codes.h. */

/* A sentence about the last failure of one of them, or a copy of what the application set, cut to
 * TVM_CRT_MAX_STRLEN_LAST_ERROR bytes. */
TVM_DLL const char *TVMGetLastError(void);
TVM_DLL void TVMAPISetLastError(const char *msg);

/* Registers a TVMBackendPackedCFunc of the application under a name, which is copied; another one of
 * this name is replaced only with `override`. */
TVM_DLL int TVMFuncRegisterGlobal(const char *name, TVMFunctionHandle f, int override);

/* Finds a function that was registered, or "runtime.SystemLib", which gives the system library. */
TVM_DLL int TVMFuncGetGlobal(const char *name, TVMFunctionHandle *out);

/* Finds a function of a module. */
TVM_DLL int TVMModGetFunction(TVMModuleHandle mod, const char *func_name, int query_imports,
                              TVMFunctionHandle *out);

/* Calls a function that one of these found, and returns what it returns. */
TVM_DLL int TVMFuncCall(TVMFunctionHandle func, TVMValue *arg_values, int *type_codes, int num_args,
                        TVMValue *ret_val, int *ret_type_code);

/* There is nothing to free. */
TVM_DLL int TVMModFree(TVMModuleHandle mod);
TVM_DLL int TVMFuncFree(TVMFunctionHandle func);

/* Fills the tensor *out with shape and zeros in memory of TVMPlatformMemoryAllocate(). */
TVM_DLL int TVMArrayAlloc(const tvm_index_t *shape, int ndim, int dtype_code, int dtype_bits,
                          int dtype_lanes, int device_type, int device_id, TVMArrayHandle *out);
TVM_DLL int TVMArrayFree(TVMArrayHandle handle);

/* Memory of TVMPlatformMemoryAllocate(), at least a multiple of `alignment` bytes. */
TVM_DLL int TVMDeviceAllocDataSpace(DLDevice dev, size_t nbytes, size_t alignment, DLDataType type_hint,
                                    void **out_data);
TVM_DLL int TVMDeviceFreeDataSpace(DLDevice dev, void *ptr);

/* The same for a tensor of a shape; there are no scopes of memory. */
TVM_DLL int TVMDeviceAllocDataSpaceWithScope(DLDevice dev, int ndim, const int64_t *shape, DLDataType dtype,
                                             const char *mem_scope, void **out_data);

/* Gives back an array of bytes whose bytes and struct are TVMPlatformMemoryAllocate()'s: the bytes
 * first. */
TVM_DLL int TVMByteArrayFree(TVMByteArray *arr);

typedef void *TVMStreamHandle;

/* Copies between tensors of as many elements of as many bits; those that have strides must be of one
 * type and shape. */
TVM_DLL int TVMDeviceCopyDataFromTo(DLTensor *from, DLTensor *to, TVMStreamHandle stream);

/* There is one stream, NULL, and nothing to wait for. */
TVM_DLL int TVMStreamCreate(int device_type, int device_id, TVMStreamHandle *out);
TVM_DLL int TVMStreamFree(int device_type, int device_id, TVMStreamHandle stream);
TVM_DLL int TVMSetStream(int device_type, int device_id, TVMStreamHandle handle);
TVM_DLL int TVMSynchronize(int device_type, int device_id, TVMStreamHandle stream);

#ifdef __cplusplus
}
#endif

#include "tvm/runtime/crt/error_codes.h"
#include "tvm/runtime/crt/platform.h"

#endif /* TVM_RUNTIME_C_RUNTIME_API_H_ */
