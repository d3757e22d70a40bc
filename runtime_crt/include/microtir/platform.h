/* platform.h: what the runtime asks of the board, and the log.
 *
 * The application fills in a struct and passes it where it is wanted, so that nothing must be
 * defined that is not used. A hook that is NULL is not called.
 */
#ifndef MICROTIR_PLATFORM_H
#define MICROTIR_PLATFORM_H

#include <stddef.h>
#include <stdint.h>

#include "microtir/config.h"

#ifdef __cplusplus
extern "C" {
#endif

enum microtir_log_level {
    MICROTIR_LOG_LEVEL_ERROR = 1,
    MICROTIR_LOG_LEVEL_WARNING = 2,
    MICROTIR_LOG_LEVEL_INFO = 3,
    MICROTIR_LOG_LEVEL_DEBUG = 4
};

struct microtir_platform {
    void *context; /* passed to every hook */

    /* A counter that rises and wraps at 2^32, of whatever unit the application knows. */
    uint32_t (*ticks)(void *context);

    /* Around what is measured: an application may hold interrupts off. */
    void (*before_measurement)(void *context);
    void (*after_measurement)(void *context);

    /* A line of the log: a sentence, and a number that belongs to it. */
    void (*log)(void *context, int32_t level, const char *text, int32_t value);

    /* What is to be done when the application cannot go on; should not return. */
    void (*stop)(void *context, int32_t status);
};

/* Passes a line to the log; does nothing without a platform or its hook. */
void microtir_log(const struct microtir_platform *platform, int32_t level, const char *text,
                  int32_t value);

/* Returns where `status` is MICROTIR_OK; else logs it and calls the hook `stop`. For applications:
 * the runtime itself returns statuses and stops nothing. */
void microtir_require(const struct microtir_platform *platform, int32_t status);

/* Calls `function` and gives the ticks that it took in `ticks`, 0 where the platform cannot tell.
 * Returns what the function returns. */
int32_t microtir_measure(const struct microtir_platform *platform,
                         int32_t (*function)(void *argument), void *argument, uint32_t *ticks);

/* Lines that MICROTIR_LOG_LEVEL leaves out take no code, and their texts no flash. */
#if MICROTIR_LOG_LEVEL >= 1
#define MICROTIR_LOG_ERROR(platform, text, value) \
    microtir_log((platform), MICROTIR_LOG_LEVEL_ERROR, (text), (value))
#else
#define MICROTIR_LOG_ERROR(platform, text, value) ((void)(platform), (void)(value))
#endif
#if MICROTIR_LOG_LEVEL >= 2
#define MICROTIR_LOG_WARNING(platform, text, value) \
    microtir_log((platform), MICROTIR_LOG_LEVEL_WARNING, (text), (value))
#else
#define MICROTIR_LOG_WARNING(platform, text, value) ((void)(platform), (void)(value))
#endif
#if MICROTIR_LOG_LEVEL >= 3
#define MICROTIR_LOG_INFO(platform, text, value) \
    microtir_log((platform), MICROTIR_LOG_LEVEL_INFO, (text), (value))
#else
#define MICROTIR_LOG_INFO(platform, text, value) ((void)(platform), (void)(value))
#endif
#if MICROTIR_LOG_LEVEL >= 4
#define MICROTIR_LOG_DEBUG(platform, text, value) \
    microtir_log((platform), MICROTIR_LOG_LEVEL_DEBUG, (text), (value))
#else
#define MICROTIR_LOG_DEBUG(platform, text, value) ((void)(platform), (void)(value))
#endif

#ifdef __cplusplus
}
#endif

#endif /* MICROTIR_PLATFORM_H */
