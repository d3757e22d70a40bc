/* An application with two models of two archives in one arena, each run by a thread of its own: their
 * pools lie beside each other, so that none waits for the other. */
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "tvmgen_first.h"
#include "tvmgen_second.h"

#define RUNS 50
#define FIRST_BYTES ((TVMGEN_FIRST_SRAM_WORKSPACE_POOL_SIZE + 63) / 64 * 64)
static uint8_t arena[FIRST_BYTES + TVMGEN_SECOND_SRAM_WORKSPACE_POOL_SIZE]
        __attribute__((aligned(64)));

static int8_t image[TVMGEN_FIRST_IMAGE_SIZE], scores[TVMGEN_FIRST_SCORES_SIZE];
static int8_t left[TVMGEN_SECOND_SERVING_DEFAULT_LEFT_0_SIZE];
static int8_t right[TVMGEN_SECOND_SERVING_DEFAULT_RIGHT_0_SIZE];
static int8_t classes[TVMGEN_SECOND_STATEFULPARTITIONEDCALL_0_SIZE];
static int8_t features[TVMGEN_SECOND_STATEFULPARTITIONEDCALL_1_SIZE];

static void *run_first(void *failed)
{
    struct tvmgen_first_inputs inputs = {image};
    struct tvmgen_first_outputs outputs = {scores};
    struct tvmgen_first_workspace_pools pools = {arena};
    unsigned int run, i;
    for (run = 0; run < RUNS; run++) { /* another image, and at last the one that is looked at */
        for (i = 0; i < sizeof image; i++) {
            image[i] = (int8_t)((11 + (RUNS - 1 - run)) * i);
        }
        *(int *)failed |= tvmgen_first_run(&inputs, &outputs, &pools) != 0;
    }
    return NULL;
}

static void *run_second(void *failed)
{
    struct tvmgen_second_inputs inputs = {left, right};
    struct tvmgen_second_outputs outputs = {classes, features};
    struct tvmgen_second_workspace_pools pools = {arena + FIRST_BYTES};
    unsigned int run;
    int i;
    for (run = 0; run < RUNS; run++) {
        for (i = 0; i < 6; i++) {
            left[i] = (int8_t)(13 * i + (int)(RUNS - 1 - run));
            right[i] = (int8_t)(100 - 17 * i);
        }
        *(int *)failed |= tvmgen_second_run(&inputs, &outputs, &pools) != 0;
    }
    return NULL;
}

int main(void)
{
    pthread_t threads[2];
    int failed[2] = {0, 0};
    unsigned int i;
    memset(arena, 0xa5, sizeof arena);
    if (pthread_create(&threads[0], NULL, run_first, &failed[0]) != 0
        || pthread_create(&threads[1], NULL, run_second, &failed[1]) != 0
        || pthread_join(threads[0], NULL) != 0 || pthread_join(threads[1], NULL) != 0
        || failed[0] || failed[1]) {
        return 1;
    }
    for (i = 0; i < sizeof scores; i++) {
        printf("%d\n", scores[i]);
    }
    for (i = 0; i < sizeof classes; i++) {
        printf("%d\n", classes[i]);
    }
    for (i = 0; i < sizeof features; i++) {
        printf("%d\n", features[i]);
    }
    return 0;
}
