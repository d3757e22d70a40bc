/* An application that has the weights, and leaves the workspace to the generated code. */
#include <stdint.h>
#include <stdio.h>

#include "tvmgen_default.h"

static const uint8_t flash[TVMGEN_DEFAULT_FLASH_CONSTANT_POOL_SIZE] __attribute__((aligned(16))) =
        TVMGEN_DEFAULT_FLASH_CONSTANT_POOL_DATA;

int main(void)
{
    static int8_t image[TVMGEN_DEFAULT_IMAGE_SIZE];
    static int8_t scores[TVMGEN_DEFAULT_SCORES_SIZE];
    struct tvmgen_default_inputs inputs = {.image = image};
    struct tvmgen_default_outputs outputs = {.scores = scores};
    struct tvmgen_default_workspace_pools pools = {.flash = flash};
    unsigned int i;

    for (i = 0; i < sizeof(image); i++) {
        image[i] = (int8_t)(11 * i);
    }
    if (tvmgen_default_run(&inputs, &outputs, &pools) != 0) {
        return 1;
    }
    for (i = 0; i < sizeof(scores); i++) {
        printf("%d\n", scores[i]);
    }
    return 0;
}
