#include "hook.h"

static void ignore(int32_t layer, int32_t output, const void *data, int32_t first, int32_t last)
{
    (void)layer;
    (void)output;
    (void)data;
    (void)first;
    (void)last;
}

void (*microtir_host_hook)(int32_t layer, int32_t output, const void *data, int32_t first,
                           int32_t last) = ignore;
