/* defaults.h: the macros of an application's crt_config.h, where it has none or leaves some out.
 *
 * docs/from-microtvm.md says which of them the runtime reads; the others are here for applications.
 */
#ifndef TVM_RUNTIME_CRT_DEFAULTS_H_
#define TVM_RUNTIME_CRT_DEFAULTS_H_

#if defined(__has_include)
#if __has_include("crt_config.h")
#include "crt_config.h"
#endif
#endif

#ifndef TVM_CRT_DEBUG
#define TVM_CRT_DEBUG 0
#endif
#ifndef TVM_CRT_LOG_LEVEL
#define TVM_CRT_LOG_LEVEL 0
#endif
#ifndef TVM_CRT_MAX_NDIM
#define TVM_CRT_MAX_NDIM 6
#endif
#ifndef TVM_CRT_MAX_ARGS
#define TVM_CRT_MAX_ARGS 10
#endif
#ifndef TVM_CRT_MAX_STRLEN_DLTYPE
#define TVM_CRT_MAX_STRLEN_DLTYPE 10
#endif
#ifndef TVM_CRT_MAX_STRLEN_FUNCTION_NAME
#define TVM_CRT_MAX_STRLEN_FUNCTION_NAME 120
#endif
#ifndef TVM_CRT_MAX_STRLEN_PARAM_NAME
#define TVM_CRT_MAX_STRLEN_PARAM_NAME 80
#endif
#ifndef TVM_CRT_MAX_REGISTERED_MODULES
#define TVM_CRT_MAX_REGISTERED_MODULES 2
#endif
#ifndef TVM_CRT_MAX_PACKET_SIZE_BYTES
#define TVM_CRT_MAX_PACKET_SIZE_BYTES 2048
#endif
#ifndef TVM_CRT_GLOBAL_FUNC_REGISTRY_SIZE_BYTES
#define TVM_CRT_GLOBAL_FUNC_REGISTRY_SIZE_BYTES 512
#endif

/* These are microtir's own; their defaults are what microTVM did.
 *
 * Whether tensors are refused that differ from the model's in more than rank, bits and number of
 * elements: in the kind of elements, lanes, an extent, strides or byte_offset. */
#ifndef TVM_CRT_STRICT_TENSORS
#define TVM_CRT_STRICT_TENSORS 0
#endif
/* Whether TVMGraphExecutor_LoadParams() reads an aligned file where it lies, which then must stay,
 * and copies none to RAM. */
#ifndef TVM_CRT_PARAMETERS_IN_PLACE
#define TVM_CRT_PARAMETERS_IN_PLACE 0
#endif
/* Bytes of the text that TVMAPISetLastError() keeps, with its final zero. */
#ifndef TVM_CRT_MAX_STRLEN_LAST_ERROR
#define TVM_CRT_MAX_STRLEN_LAST_ERROR 128
#endif

#endif /* TVM_RUNTIME_CRT_DEFAULTS_H_ */
