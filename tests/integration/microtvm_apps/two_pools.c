/* An application that provides the memory of two declared pools. */
#include <stdint.h>
#include <stdio.h>

#include "tvmgen_default.h"

static uint8_t dtcm[TVMGEN_DEFAULT_DTCM_2_WORKSPACE_POOL_SIZE] __attribute__((aligned(16)));
static uint8_t sram[TVMGEN_DEFAULT_SRAM_WORKSPACE_POOL_SIZE] __attribute__((aligned(16)));

int main(void)
{
    struct tvmgen_default_workspace_pools pools = {.dtcm_2 = dtcm, .sram = sram};
    struct tvmgen_default_inputs inputs = tvmgen_default_map_inputs(&pools);
    struct tvmgen_default_outputs outputs = tvmgen_default_map_outputs(&pools);
    unsigned int i;

    if (TVMGEN_DEFAULT_WORKSPACE_SIZE != sizeof(dtcm) + sizeof(sram)
        || (uint8_t *)inputs.image < sram || (uint8_t *)inputs.image >= sram + sizeof(sram)) {
        return 1;
    }
    for (i = 0; i < TVMGEN_DEFAULT_IMAGE_SIZE; i++) {
        ((int8_t *)inputs.image)[i] = (int8_t)(11 * i);
    }
    if (tvmgen_default_run(&pools) != 0) {
        return 2;
    }
    for (i = 0; i < TVMGEN_DEFAULT_SCORES_SIZE; i++) {
        printf("%d\n", ((int8_t *)outputs.scores)[i]);
    }
    return 0;
}
