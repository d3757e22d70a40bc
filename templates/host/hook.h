/* hook.h: compiled into a debug build before every file, to let the host see each layer. */
#ifndef MICROTIR_HOST_HOOK_H
#define MICROTIR_HOST_HOOK_H

#include <stdint.h>

typedef void (*microtir_host_hook_function)(int32_t layer, int32_t output, const void *data,
                                            int32_t first, int32_t last);

/* One for each thread: each sees the layers of its own run. */
extern __thread microtir_host_hook_function microtir_host_hook;

/* Sets the hook of the thread that calls; NULL takes it away. */
void microtir_host_set_hook(microtir_host_hook_function hook);

#endif /* MICROTIR_HOST_HOOK_H */
