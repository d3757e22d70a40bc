/* tvm_crt.c: the start of microTVM's runtime, as a function whose address may be taken. */
#include "tvm/runtime/crt/crt.h"

tvm_crt_error_t TVMInitializeRuntime(void)
{
    return kTvmErrorNoError;
}
