/* hook.h: compiled into a debug build before every file, to let the host see each layer. */
#ifndef MICROTIR_HOST_HOOK_H
#define MICROTIR_HOST_HOOK_H

#include <stdint.h>

/* Set by the host while a model runs. */
extern void (*microtir_host_hook)(int32_t layer, int32_t output, const void *data, int32_t first,
                                  int32_t last);

#endif /* MICROTIR_HOST_HOOK_H */
