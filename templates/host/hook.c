#include "hook.h"

#include <stddef.h>

static void ignore(int32_t layer, int32_t output, const void *data, int32_t first, int32_t last)
{
    (void)layer;
    (void)output;
    (void)data;
    (void)first;
    (void)last;
}

__thread microtir_host_hook_function microtir_host_hook = ignore;

void microtir_host_set_hook(microtir_host_hook_function hook)
{
    microtir_host_hook = hook == NULL ? ignore : hook;
}
