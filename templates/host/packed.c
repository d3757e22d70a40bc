/* The compiler's command line defines
 *   HOST_HEADER  the header that declares the module, with its quotes
 *   HOST_MODULE  the function that gives the module
 */
#include "packed.h"

#include <stddef.h>

#include HOST_HEADER

#define MAX_ARGUMENTS 256
#define MAX_DEVICES 64

int32_t microtir_host_call(const char *name, int32_t count, void *const *data,
                           const int32_t *ranks, const int64_t *numbers, const uint8_t *types)
{
    struct microtir_tensor tensors[MAX_ARGUMENTS];
    union microtir_value args[MAX_ARGUMENTS];
    int32_t kinds[MAX_ARGUMENTS];
    microtir_packed_function function = NULL;
    static void *devices[MAX_DEVICES]; /* drivers are given NULL for the state of theirs */
    int32_t status = microtir_module_find(HOST_MODULE(), name, &function);
    if (count > MAX_ARGUMENTS) {
        return MICROTIR_ERROR_ARGUMENT_COUNT;
    }
    for (int32_t i = 0; i < count && status == MICROTIR_OK; i++) {
        const struct microtir_dtype dtype = {types[2 * i], types[2 * i + 1]};
        if (ranks[i] < 0) {
            kinds[i] = MICROTIR_KIND_INTEGER;
            args[i].v_integer = *numbers;
            numbers++;
        } else {
            kinds[i] = MICROTIR_KIND_TENSOR;
            args[i].v_tensor = &tensors[i];
            status = microtir_tensor_view(&tensors[i], data[i], dtype, ranks[i], numbers);
            numbers += ranks[i];
        }
    }
    return status == MICROTIR_OK ? function(args, kinds, count, NULL, NULL, devices) : status;
}
