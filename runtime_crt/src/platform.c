#include "microtir/platform.h"

#include "microtir/status.h"

void microtir_log(const struct microtir_platform *platform, int32_t level, const char *text,
                  int32_t value)
{
    if (platform != NULL && platform->log != NULL) {
        platform->log(platform->context, level, text, value);
    }
}

void microtir_require(const struct microtir_platform *platform, int32_t status)
{
    if (status != MICROTIR_OK) {
        MICROTIR_LOG_ERROR(platform, microtir_status_text(status), status);
        if (platform != NULL && platform->stop != NULL) {
            platform->stop(platform->context, status);
        }
    }
}

static uint32_t ticks_of(const struct microtir_platform *platform)
{
    return platform->ticks != NULL ? platform->ticks(platform->context) : 0u;
}

int32_t microtir_measure(const struct microtir_platform *platform,
                         int32_t (*function)(void *argument), void *argument, uint32_t *ticks)
{
    if (function == NULL || ticks == NULL) {
        return MICROTIR_ERROR_NULL_POINTER;
    }
    if (platform == NULL) {
        *ticks = 0;
        return function(argument);
    }
    if (platform->before_measurement != NULL) {
        platform->before_measurement(platform->context);
    }
    const uint32_t start = ticks_of(platform);
    const int32_t status = function(argument);
    *ticks = ticks_of(platform) - start;
    if (platform->after_measurement != NULL) {
        platform->after_measurement(platform->context);
    }
    return status;
}
