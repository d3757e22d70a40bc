/* Firmware that looks at the graph itself, as benchmark runtimes for microTVM do: it finds inputs and
 * outputs through the nodes, prints them, and fills and reads their tensors where they lie. */
#include <stdio.h>
#include <string.h>
#include <tvm/runtime/c_runtime_api.h>
#include <tvm/runtime/crt/crt.h>
#include <tvm/runtime/crt/graph_executor.h>
#include <tvm/runtime/crt/internal/graph_executor/graph_executor.h>
#include <tvm/runtime/crt/module.h>
#include <tvm/runtime/crt/page_allocator.h>

#include "blobs.h"
#include "memory.c"

static DLTensor *entry_of(TVMGraphExecutor *executor, uint32_t node, uint32_t index)
{
    return &executor->data_entry[TVMGraphExecutor_GetEntryId(executor, node, index)].dl_tensor;
}

static size_t bytes_of(const DLTensor *tensor)
{
    size_t bytes = (size_t)tensor->dtype.bits / 8u * tensor->dtype.lanes;
    int i;
    for (i = 0; i < tensor->ndim; i++) {
        bytes *= (size_t)tensor->shape[i];
    }
    return bytes;
}

/* Every entry of a call is behind those of the nodes before it, and so is what it reads. */
static int is_in_order(const TVMGraphExecutor *executor)
{
    uint32_t node, input;
    for (node = 0; node < executor->nodes_count; node++) {
        const TVMGraphExecutorNode *const one = &executor->nodes[node];
        const int is_call = strcmp(one->op_type, "tvm_op") == 0;
        const uint32_t entries = executor->node_row_ptr[node + 1] - executor->node_row_ptr[node];
        if (is_call != (one->param.func_name[0] != '\0')
            || entries != (is_call ? one->param.num_outputs : 1u)
            || one->inputs_count != one->param.num_inputs) {
            return 0;
        }
        TVMGraphExecutorNodeEntry *const read = one->inputs; /* as clients keep them, no const */
        for (input = 0; input < one->inputs_count; input++) {
            if (read[input].node_id >= node) {
                return 0;
            }
        }
    }
    return executor->node_row_ptr_count == executor->nodes_count + 1
        && executor->node_row_ptr[executor->nodes_count] == executor->data_entry_count;
}

int main(void)
{
    DLDevice device;
    TVMGraphExecutor *executor = NULL;
    TVMModuleHandle module;
    uint32_t i, step, run;

    device.device_type = kDLCPU;
    device.device_id = 0;
    if (TVMPlatformInitialize() != kTvmErrorNoError || TVMInitializeRuntime() != kTvmErrorNoError
        || TVMModCreateFromCModule(TVMSystemLibEntryPoint(), &module) != 0
        || TVMGraphExecutor_Create(build_graph_c_json, module, &device, &executor) != 0
        || TVMGraphExecutor_LoadParams(executor, (const char *)build_params_c_bin,
                                       build_params_c_bin_len)
            != 0) {
        return 1;
    }
    if (!is_in_order(executor) || executor->devices_count != 1
        || executor->devices[0].device_type != kDLCPU || executor->module_handle != module
        || executor->input_nodes_count != (uint32_t)TVMGraphExecutor_GetNumInputs(executor)
        || executor->outputs_count != (uint32_t)TVMGraphExecutor_GetNumOutputs(executor)) {
        return 2;
    }
    for (run = 0; run < 2; run++) { /* the same again, in the buffers that it had */
        for (i = 0; i < executor->input_nodes_count; i++) {
            const uint32_t node = executor->input_nodes[i];
            DLTensor *const tensor = entry_of(executor, node, 0);
            int8_t *const data = (int8_t *)tensor->data;
            if (TVMGraphExecutor_GetInputIndex(executor, executor->nodes[node].name) != (int)i
                || strcmp(executor->nodes[node].op_type, "null") != 0) {
                return 3;
            }
            for (step = 0; step < bytes_of(tensor); step++) {
                data[step] = (int8_t)(i == 0 ? 13 * (int)step : 100 - 17 * (int)step);
            }
        }
        TVMGraphExecutor_Run(executor);
    }
    for (i = 0; i < executor->outputs_count; i++) {
        const TVMGraphExecutorNodeEntry *const head = &executor->outputs[i];
        const DLTensor *const tensor = entry_of(executor, head->node_id, head->index);
        for (step = 0; step < bytes_of(tensor); step++) {
            printf("%d\n", ((const int8_t *)tensor->data)[step]);
        }
    }
    for (i = 0; i < executor->data_entry_count; i++) { /* all can be read */
        const DLTensor *const tensor = &executor->data_entry[i].dl_tensor;
        int sum = 0;
        for (step = 0; step < bytes_of(tensor); step++) {
            sum += ((const int8_t *)tensor->data)[step];
        }
        fprintf(stderr, "%d\n", sum);
    }
    return TVMGraphExecutor_Release(&executor) != 0 || executor != NULL || manager->vleak_size != 0;
}
