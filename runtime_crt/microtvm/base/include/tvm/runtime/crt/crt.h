/* crt.h: the start of microTVM's runtime; there is nothing to prepare. */
#ifndef TVM_RUNTIME_CRT_CRT_H_
#define TVM_RUNTIME_CRT_CRT_H_

#include "tvm/runtime/c_runtime_api.h"

/* Always succeeds. */
#define TVMInitializeRuntime() (kTvmErrorNoError)

#endif /* TVM_RUNTIME_CRT_CRT_H_ */
