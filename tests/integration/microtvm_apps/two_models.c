/* An application with two models, unpacked from one archive: they share a workspace. */
#include <stdint.h>
#include <stdio.h>

#include "tvmgen_default.h"
#include "tvmgen_second.h"

int main(void)
{
    int8_t image[TVMGEN_DEFAULT_IMAGE_SIZE], scores[TVMGEN_DEFAULT_SCORES_SIZE];
    int8_t x[TVMGEN_SECOND_X_SIZE] = {0}, y[TVMGEN_SECOND_Y_SIZE];
    struct tvmgen_default_inputs inputs = {image};
    struct tvmgen_default_outputs outputs = {scores};
    struct tvmgen_second_inputs more_inputs = {x};
    struct tvmgen_second_outputs more_outputs = {y};
    unsigned int i;

    for (i = 0; i < sizeof(image); i++) {
        image[i] = (int8_t)(11 * i);
    }
    if (tvmgen_second_run(&more_inputs, &more_outputs) != 0
        || tvmgen_default_run(&inputs, &outputs) != 0
        || tvmgen_second_workspace != tvmgen_default_workspace) {
        return 1;
    }
    for (i = 0; i < sizeof(scores); i++) {
        printf("%d\n", scores[i]);
    }
    return 0;
}
