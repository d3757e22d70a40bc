/* An application that has the weights in two memories of its own: one is copied when it starts. */
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "tvmgen_default.h"

static uint8_t sram[TVMGEN_DEFAULT_SRAM_WORKSPACE_POOL_SIZE] __attribute__((aligned(16)));
static const uint8_t image_of_dtcm[] = TVMGEN_DEFAULT_DTCM_2_CONSTANT_POOL_DATA;
static uint8_t dtcm[TVMGEN_DEFAULT_DTCM_2_CONSTANT_POOL_SIZE] __attribute__((aligned(32)));
__attribute__((section(".rodata.tvm"), aligned(16)))
static const uint8_t flash[TVMGEN_DEFAULT_FLASH_CONSTANT_POOL_SIZE] =
        TVMGEN_DEFAULT_FLASH_CONSTANT_POOL_DATA;

int main(void)
{
    static int8_t image[TVMGEN_DEFAULT_IMAGE_SIZE];
    static int8_t scores[TVMGEN_DEFAULT_SCORES_SIZE];
    struct tvmgen_default_inputs inputs = {.image = image};
    struct tvmgen_default_outputs outputs = {.scores = scores};
    struct tvmgen_default_workspace_pools pools = {
        .sram = sram,
        .dtcm_2 = dtcm,
        .flash = flash,
    };
    unsigned int i;

    if (sizeof(image_of_dtcm) != sizeof(dtcm) || sizeof(dtcm) > 90) {
        return 1;
    }
    /* Nothing was copied yet: these are no weights. */
    if (tvmgen_default_run(&inputs, &outputs, &pools) == 0) {
        return 2;
    }
    memcpy(dtcm, image_of_dtcm, sizeof(dtcm));
    for (i = 0; i < sizeof(image); i++) {
        image[i] = (int8_t)(11 * i);
    }
    if (tvmgen_default_run(&inputs, &outputs, &pools) != 0) {
        return 3;
    }
    pools.flash = NULL;
    if (tvmgen_default_run(&inputs, &outputs, &pools) == 0) {
        return 4;
    }
    for (i = 0; i < sizeof(scores); i++) {
        printf("%d\n", scores[i]);
    }
    return 0;
}
