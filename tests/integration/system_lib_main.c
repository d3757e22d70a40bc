/* system_lib_main.c: an application that knows the model by name only.
 *
 * It finds the entry function in the system library, calls it in the packed convention, then calls
 * the same model through its typed interface, and prints both outputs.
 */
#include <stdio.h>
#include <string.h>

#include "default.h"
#include "default_packed.h"
#include "microtir/runtime.h"

static DEFAULT_WORKSPACE(memory);

static int print(const int8_t *values)
{
    for (int i = 0; i < OUTPUT_ELEMENTS; i++) {
        printf("%d ", values[i]);
    }
    printf("\n");
    return 0;
}

static int failed(const char *what, int32_t status)
{
    printf("%s: %d %s\n", what, (int)status, microtir_status_text(status));
    return 1;
}

int main(void)
{
    static int8_t input[INPUT_ELEMENTS];
    static int8_t packed[OUTPUT_ELEMENTS], typed[OUTPUT_ELEMENTS];
    if (fread(input, 1, sizeof input, stdin) != sizeof input) {
        return failed("input", 0);
    }

    struct microtir_registry registry = {{NULL}, 0};
    int32_t status = microtir_registry_add(&registry, microtir_system_lib_entry_point());
    if (status != MICROTIR_OK) {
        return failed("add", status);
    }
    microtir_packed_function run = NULL;
    status = microtir_registry_find(&registry, "default_run", &run);
    if (status != MICROTIR_OK) {
        return failed("find", status);
    }

    const struct microtir_dtype bytes = {MICROTIR_ELEMENT_SIGNED, 8};
    const struct microtir_dtype raw = {MICROTIR_ELEMENT_UNSIGNED, 8};
    static const int64_t input_shape[] = INPUT_SHAPE, output_shape[] = OUTPUT_SHAPE;
    static const int64_t size[] = {DEFAULT_WORKSPACE_SIZE};
    const int32_t input_rank = (int32_t)(sizeof input_shape / sizeof input_shape[0]);
    const int32_t output_rank = (int32_t)(sizeof output_shape / sizeof output_shape[0]);
    const struct microtir_tensor tensors[] = {
        {input, input_rank, bytes, input_shape, NULL, 0},
        {packed, output_rank, bytes, output_shape, NULL, 0},
        {memory, 1, raw, size, NULL, 0},
    };
    union microtir_value args[3];
    const int32_t kinds[] = {MICROTIR_KIND_TENSOR, MICROTIR_KIND_TENSOR, MICROTIR_KIND_TENSOR};
    for (int i = 0; i < 3; i++) {
        args[i].v_tensor = &tensors[i];
    }
    status = run(args, kinds, 3, NULL, NULL, NULL);
    if (status != MICROTIR_OK) {
        return failed("run", status);
    }
    status = run(args, kinds, 2, NULL, NULL, NULL);
    if (status != MICROTIR_ERROR_ARGUMENT_COUNT) {
        return failed("run with two arguments", status);
    }

    memset(memory, 0x5a, sizeof memory);
    const struct default_inputs inputs = {input};
    const struct default_outputs outputs = {typed};
    status = default_run(&inputs, &outputs, memory);
    if (status != DEFAULT_OK) {
        return failed("typed", status);
    }
    return print(packed) + print(typed);
}
