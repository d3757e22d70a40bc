/* device.h: an accelerator beside the processor, and the order in which it is used.
 *
 *     init    activate    open    close    ...    deactivate
 *
 * The application initialises a device once and passes it to what uses it; that activates the
 * device before and deactivates it after a run, and opens and closes it around each operator.
 */
#ifndef MICROTIR_DEVICE_H
#define MICROTIR_DEVICE_H

#include <stdint.h>

#include "microtir/config.h"

#ifdef __cplusplus
extern "C" {
#endif

/* What a driver does; a member that is NULL has nothing to do. They return MICROTIR_OK or a status
 * of their own, which reaches the application. */
struct microtir_device_api {
    int32_t (*activate)(void *context);   /* power and clock on */
    int32_t (*open)(void *context);       /* before an operator */
    int32_t (*close)(void *context);      /* after it */
    int32_t (*deactivate)(void *context); /* power and clock off */
};

enum microtir_device_state {
    MICROTIR_DEVICE_IDLE = 0,
    MICROTIR_DEVICE_ACTIVE = 1,
    MICROTIR_DEVICE_OPEN = 2
};

struct microtir_device {
    const struct microtir_device_api *api;
    void *context; /* passed to every function of the driver */
    uint8_t state; /* enum microtir_device_state */
};

/* Prepares a device that is idle. */
int32_t microtir_device_init(struct microtir_device *device, const struct microtir_device_api *api,
                             void *context);

/* Each calls its function of the driver, and changes the state where that succeeds. A call out of
 * order is refused with MICROTIR_ERROR_DEVICE_STATE. */
int32_t microtir_device_activate(struct microtir_device *device);
int32_t microtir_device_open(struct microtir_device *device);
int32_t microtir_device_close(struct microtir_device *device);
int32_t microtir_device_deactivate(struct microtir_device *device);

#ifdef __cplusplus
}
#endif

#endif /* MICROTIR_DEVICE_H */
