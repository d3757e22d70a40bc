/* graph_executor_module.h: the graph executor as a module whose functions are found by name.
 *
 * A host finds them over a line, an application by TVMFuncGetGlobal("tvm.graph_executor.create"):
 * it takes a text, which is not read, a module, and type and number of a device, and gives a module
 * with get_num_inputs, get_num_outputs, get_input_index, get_input_name, get_input_info (a struct
 * TVMTensorInfo), get_input, get_output, set_input, load_params (a TVMByteArray) and run. Inputs are given by name or by number; get_input and
 * get_output give the tensors that run reads and writes.
 */
#ifndef TVM_RUNTIME_CRT_GRAPH_EXECUTOR_MODULE_H_
#define TVM_RUNTIME_CRT_GRAPH_EXECUTOR_MODULE_H_

#include "tvm/runtime/crt/error_codes.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Registers the function; a second time it is kTvmErrorFunctionAlreadyDefined. There is one
 * executor: create returns kTvmErrorExecutorModuleAlreadyCreated where it is. */
tvm_crt_error_t TVMGraphExecutorModule_Register(void);

#ifdef __cplusplus
}
#endif

#endif /* TVM_RUNTIME_CRT_GRAPH_EXECUTOR_MODULE_H_ */
