/* The part of Zephyr that pages use, by its documentation. */
#ifndef ZEPHYR_INCLUDE_KERNEL_H_
#define ZEPHYR_INCLUDE_KERNEL_H_

#include <stddef.h>
#include <stdint.h>

typedef struct { int64_t ticks; } k_timeout_t;
struct k_mutex { void *own[4]; };
typedef void (*k_thread_entry_t)(void *first, void *second, void *third);

#define ARG_UNUSED(x) (void)(x)
#define K_FOREVER ((k_timeout_t){-1})
#define K_MUTEX_DEFINE(name) struct k_mutex name
#define K_THREAD_DEFINE(name, bytes, entry, first, second, third, priority, options, delay) \
    static uint8_t name##_stack[bytes]; \
    k_thread_entry_t const name##_entry = (entry); \
    void *const name##_facts[] = {name##_stack, first, second, third}; \
    int name##_numbers[] = {priority, options, delay}

int k_mutex_lock(struct k_mutex *mutex, k_timeout_t timeout);
int k_mutex_unlock(struct k_mutex *mutex);
int32_t k_msleep(int32_t milliseconds);

#endif
