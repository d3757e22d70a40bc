/* An application that provides the memory of a declared pool. */
#include <stdint.h>
#include <stdio.h>

#include "tvmgen_default.h"

static uint8_t sram[TVMGEN_DEFAULT_DTCM_2_WORKSPACE_POOL_SIZE] __attribute__((aligned(16)));

int main(void)
{
    int8_t image[TVMGEN_DEFAULT_IMAGE_SIZE], scores[TVMGEN_DEFAULT_SCORES_SIZE];
    struct tvmgen_default_inputs inputs = {image};
    struct tvmgen_default_outputs outputs = {scores};
    struct tvmgen_default_workspace_pools pools = {.dtcm_2 = sram};
    unsigned int i;

    for (i = 0; i < sizeof(image); i++) {
        image[i] = (int8_t)(11 * i);
    }
    if (TVMGEN_DEFAULT_WORKSPACE_SIZE != sizeof(sram)
        || tvmgen_default_run(&inputs, &outputs, &pools) != 0) {
        return 1;
    }
    for (i = 0; i < sizeof(scores); i++) {
        printf("%d\n", scores[i]);
    }
    return 0;
}
