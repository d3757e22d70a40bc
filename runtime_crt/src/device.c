#include "microtir/device.h"

#include <stddef.h>

#include "microtir/status.h"

int32_t microtir_device_init(struct microtir_device *device, const struct microtir_device_api *api,
                             void *context)
{
    if (device == NULL || api == NULL) {
        return MICROTIR_ERROR_NULL_POINTER;
    }
    device->api = api;
    device->context = context;
    device->state = MICROTIR_DEVICE_IDLE;
    return MICROTIR_OK;
}

static int32_t check_state(const struct microtir_device *device, uint8_t before)
{
    if (device == NULL || device->api == NULL) {
        return MICROTIR_ERROR_NULL_POINTER;
    }
#if MICROTIR_CHECK_DEVICES
    return device->state == before ? MICROTIR_OK : MICROTIR_ERROR_DEVICE_STATE;
#else
    (void)before;
    return MICROTIR_OK;
#endif
}

static int32_t enter(struct microtir_device *device, int32_t (*function)(void *context),
                     uint8_t after)
{
    const int32_t status = function != NULL ? function(device->context) : MICROTIR_OK;
    if (status == MICROTIR_OK) {
        device->state = after;
    }
    return status;
}

int32_t microtir_device_activate(struct microtir_device *device)
{
    const int32_t status = check_state(device, MICROTIR_DEVICE_IDLE);
    return status == MICROTIR_OK ? enter(device, device->api->activate, MICROTIR_DEVICE_ACTIVE)
                                 : status;
}

int32_t microtir_device_open(struct microtir_device *device)
{
    const int32_t status = check_state(device, MICROTIR_DEVICE_ACTIVE);
    return status == MICROTIR_OK ? enter(device, device->api->open, MICROTIR_DEVICE_OPEN) : status;
}

int32_t microtir_device_close(struct microtir_device *device)
{
    const int32_t status = check_state(device, MICROTIR_DEVICE_OPEN);
    return status == MICROTIR_OK ? enter(device, device->api->close, MICROTIR_DEVICE_ACTIVE)
                                 : status;
}

int32_t microtir_device_deactivate(struct microtir_device *device)
{
    const int32_t status = check_state(device, MICROTIR_DEVICE_ACTIVE);
    return status == MICROTIR_OK ? enter(device, device->api->deactivate, MICROTIR_DEVICE_IDLE)
                                 : status;
}
