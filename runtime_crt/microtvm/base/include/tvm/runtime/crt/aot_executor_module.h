/* aot_executor_module.h: the AOT executor as a module whose functions are found by name.
 *
 * A host finds them over a line, an application by TVMFuncGetGlobal("tvm.aot_executor.create"): it
 * takes a module and a device (kDLDevice), and gives a module with get_num_inputs, get_num_outputs,
 * get_input_index, get_input_name, get_input_info (a struct TVMTensorInfo), get_input, get_output,
 * set_input and run. Inputs are given by name or by number;
 * get_input and get_output give the tensors that run reads and writes.
 */
#ifndef TVM_RUNTIME_CRT_AOT_EXECUTOR_MODULE_H_
#define TVM_RUNTIME_CRT_AOT_EXECUTOR_MODULE_H_

#include "tvm/runtime/crt/error_codes.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Registers the function; a second time it is kTvmErrorFunctionAlreadyDefined. There is one
 * executor: create returns kTvmErrorExecutorModuleAlreadyCreated where it is. */
tvm_crt_error_t TVMAotExecutorModule_Register(void);

#ifdef __cplusplus
}
#endif

#endif /* TVM_RUNTIME_CRT_AOT_EXECUTOR_MODULE_H_ */
