/* An application that keeps microTVM's memory managers for memory of its own. */
#include <stdio.h>
#include <tvm/runtime/c_runtime_api.h>
#include <tvm/runtime/crt/page_allocator.h>
#include <tvm/runtime/crt/stack_allocator.h>

#include "tvmgen_default.h"

static uint8_t g_aot_memory[512] __attribute__((aligned(TVM_RUNTIME_ALLOC_ALIGNMENT_BYTES)));
static uint8_t pool[2048] __attribute__((aligned(TVM_RUNTIME_ALLOC_ALIGNMENT_BYTES)));
static tvm_workspace_t app_workspace;

int main(void)
{
    const DLDevice device = {kDLCPU, 0};
    MemoryManagerInterface *pages = NULL;
    void *image = NULL, *scores = NULL, *other = NULL;
    struct tvmgen_default_inputs inputs;
    struct tvmgen_default_outputs outputs;
    int i;

    if (StackMemoryManager_Init(&app_workspace, g_aot_memory + 1, sizeof(g_aot_memory) - 1)
        || StackMemoryManager_Allocate(&app_workspace, TVMGEN_DEFAULT_IMAGE_SIZE, &image)
        || PageMemoryManagerCreate(&pages, pool + 1, sizeof(pool) - 1, 6) /* anywhere */
        || pages->Allocate(pages, 5 * 64, device, &other)
        || pages->Allocate(pages, TVMGEN_DEFAULT_SCORES_SIZE, device, &scores)
        || pages->Free(pages, other, device) || pages->vleak_size != 1) {
        return 1;
    }
    if (StackMemoryManager_Allocate(&app_workspace, 100000, &other) != kTvmErrorPlatformNoMemory
        || StackMemoryManager_Allocate(&app_workspace, -1, &other) != kTvmErrorPlatformNoMemory
        || StackMemoryManager_Free(&app_workspace, scores) != kTvmErrorPlatformStackAllocBadFree
        || pages->Allocate(pages, 4096, device, &other) != kTvmErrorPlatformNoMemory
        || PageMemoryManagerCreate(&pages, NULL, 1024, 6) != kTvmErrorPlatformCheckFailure
        || PageMemoryManagerCreate(&pages, pool + 1, 16, 6) != kTvmErrorPlatformNoMemory) {
        return 2;
    }
    inputs.image = image;
    outputs.scores = scores;
    for (i = 0; i < TVMGEN_DEFAULT_IMAGE_SIZE; i++) {
        ((int8_t *)image)[i] = (int8_t)(11 * i);
    }
    if (tvmgen_default_run(&inputs, &outputs) != 0) {
        return 3;
    }
    for (i = 0; i < TVMGEN_DEFAULT_SCORES_SIZE; i++) {
        printf("%d\n", ((int8_t *)scores)[i]);
    }
    if (pages->Free(pages, scores, device) || pages->vleak_size != 0
        || StackMemoryManager_Free(&app_workspace, image)) {
        return 4;
    }
    return 0;
}
