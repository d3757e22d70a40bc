/* main.c: three tasks run two models.
 *
 * `shared` and `floats` share a workspace, which a mutex guards. `own` has a workspace for itself,
 * so that the scheduler may stop it within a run and let `shared` run the same model. Each stack is
 * what FreeRTOS asks for at least, what the task's own function takes, and NAME_STACK_SIZE.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "FreeRTOS.h"
#include "semphr.h"
#include "task.h"

#include "digits.h"
#include "digits_float.h"
#include "samples.h"

#define TURNS 40
#define OWN_FRAME 256 /* bytes that the functions of this file take, and an interrupt's frame */
#define STACK_WORDS(model_bytes) \
    (configMINIMAL_STACK_SIZE + ((model_bytes) + OWN_FRAME + sizeof(StackType_t) - 1) / sizeof(StackType_t))

static union {
    struct digits_workspace digits;
    struct digits_float_workspace floats;
} memory;
static SemaphoreHandle_t memory_is_free;

struct job {
    const char *name;
    uint32_t stack_words;
    StackType_t *stack;
    void *workspace; /* of this task alone; NULL: `memory` */
    int runs, right;
    TaskHandle_t handle;
    StaticTask_t task;
};

static TaskHandle_t reporter;
volatile uint32_t switches; /* of tasks: see FreeRTOSConfig.h */

static void run_digits(struct job *job)
{
    for (int turn = 0; turn < TURNS; turn++) {
        const int sample = turn % SAMPLES;
        int8_t scores[DIGITS_PROBABILITIES_ELEMENTS];
        struct digits_inputs inputs = {images[sample]};
        struct digits_outputs outputs = {scores};
        if (job->workspace == NULL) {
            xSemaphoreTake(memory_is_free, portMAX_DELAY);
        }
        const int32_t status =
                digits_run(&inputs, &outputs, job->workspace ? job->workspace : &memory.digits);
        if (job->workspace == NULL) {
            xSemaphoreGive(memory_is_free);
        }
        job->runs++;
        job->right += status == DIGITS_OK && memcmp(scores, expected[sample], sizeof scores) == 0;
    }
}

static void run_floats(struct job *job)
{
    static float image[DIGITS_FLOAT_IMAGE_ELEMENTS];
    for (int turn = 0; turn < TURNS; turn++) {
        const int sample = turn % SAMPLES;
        float scores[DIGITS_FLOAT_PROBABILITIES_ELEMENTS];
        for (int i = 0; i < DIGITS_FLOAT_IMAGE_ELEMENTS; i++) {
            const int32_t stored = images[sample][i];
            image[i] = DIGITS_IMAGE_SCALE * (float)(stored - DIGITS_IMAGE_ZERO_POINT);
        }
        struct digits_float_inputs inputs = {image};
        struct digits_float_outputs outputs = {scores};
        xSemaphoreTake(memory_is_free, portMAX_DELAY);
        const int32_t status = digits_float_run(&inputs, &outputs, &memory.floats);
        xSemaphoreGive(memory_is_free);
        int best = 0;
        for (int i = 1; i < DIGITS_FLOAT_PROBABILITIES_ELEMENTS; i++) {
            best = scores[i] > scores[best] ? i : best;
        }
        job->runs++;
        job->right += status == DIGITS_FLOAT_OK && best == labels[sample];
    }
}

static void digits_task(void *argument)
{
    run_digits(argument);
    xTaskNotifyGive(reporter);
    vTaskSuspend(NULL);
}

static void floats_task(void *argument)
{
    run_floats(argument);
    xTaskNotifyGive(reporter);
    vTaskSuspend(NULL);
}

static DIGITS_WORKSPACE(own_workspace);
static StackType_t shared_stack[STACK_WORDS(DIGITS_STACK_SIZE)];
static StackType_t floats_stack[STACK_WORDS(DIGITS_FLOAT_STACK_SIZE)];
static StackType_t own_stack[STACK_WORDS(DIGITS_STACK_SIZE)];

static struct job jobs[] = {
    {.name = "shared", .stack = shared_stack, .stack_words = STACK_WORDS(DIGITS_STACK_SIZE)},
    {.name = "floats", .stack = floats_stack, .stack_words = STACK_WORDS(DIGITS_FLOAT_STACK_SIZE)},
    {.name = "own", .stack = own_stack, .stack_words = STACK_WORDS(DIGITS_STACK_SIZE),
     .workspace = own_workspace},
};
#define JOBS (sizeof jobs / sizeof jobs[0])

static void report(void *argument)
{
    (void)argument;
    for (size_t ended = 0; ended < JOBS; ended++) {
        ulTaskNotifyTake(pdFALSE, portMAX_DELAY);
    }
    int is_right = 1;
    for (size_t i = 0; i < JOBS; i++) {
        const uint32_t unused = (uint32_t)uxTaskGetStackHighWaterMark(jobs[i].handle);
        printf("%s: %d of %d right, %lu of %lu bytes of stack\n", jobs[i].name, jobs[i].right,
               jobs[i].runs, (unsigned long)((jobs[i].stack_words - unused) * sizeof(StackType_t)),
               (unsigned long)(jobs[i].stack_words * sizeof(StackType_t)));
        is_right &= jobs[i].right == TURNS;
    }
    printf("%lu switches of tasks\n", (unsigned long)switches);
    exit(is_right ? 0 : 1);
}

int main(void)
{
    static StaticSemaphore_t mutex;
    static StaticTask_t report_task;
    static StackType_t report_stack[2048];
    memory_is_free = xSemaphoreCreateMutexStatic(&mutex);
    reporter = xTaskCreateStatic(report, "report", 2048, NULL, 1, report_stack, &report_task);
    for (size_t i = 0; i < JOBS; i++) {
        struct job *job = &jobs[i];
        job->handle = xTaskCreateStatic(i == 1 ? floats_task : digits_task, job->name,
                job->stack_words, job, 1, job->stack, &job->task);
    }
    vTaskStartScheduler();
    return 1;
}

/* Called where a stack ended: FreeRTOS looks at its last bytes in every switch of tasks. */
void vApplicationStackOverflowHook(TaskHandle_t task, char *name)
{
    (void)task;
    printf("%s: its stack is too small\n", name);
    exit(2);
}
