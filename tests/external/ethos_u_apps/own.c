/* An application: it runs the model once with each behaviour of the driver. */
#include <stdio.h>

#include "npu.h"

int failure;
int nothing_free;
void give_fast_memory(size_t size);

static float given[24];
static float made[24];

#ifdef POOLS
static NPU_SRAM_WORKSPACE_POOL(sram);
static NPU_DRAM_WORKSPACE_POOL(dram);
#define RUN(inputs, outputs) npu_run(inputs, outputs, sram, dram)
#else
static NPU_WORKSPACE(memory);
#define RUN(inputs, outputs) npu_run(inputs, outputs, memory)
#endif

static void run(void)
{
    const struct npu_inputs inputs = {given};
    const struct npu_outputs outputs = {made};
    const int status = (int)RUN(&inputs, &outputs);
    printf("%s\n", npu_status_text(status));
}

int main(int argc, char **argv)
{
    (void)argv;
    if (argc > 1) {
        give_fast_memory((size_t)(argc - 1) * 100u);
    }
    for (int i = 0; i < 24; i++) {
        given[i] = (float)(i - 12) * 0.5f;
    }
    run();
    for (int i = 0; i < 24; i++) {
        printf("%g%c", (double)made[i], i < 23 ? ' ' : '\n');
    }
    failure = -1;
    run();
    failure = 0;
    nothing_free = 1;
    run();
    return 0;
}
