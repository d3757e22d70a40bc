/* Threads of RIOT that pages use, by its documentation. */
#ifndef THREAD_H
#define THREAD_H

#include <stdint.h>

typedef int16_t kernel_pid_t;
typedef void *(*thread_task_func_t)(void *argument);

#define THREAD_STACKSIZE_DEFAULT 1024
#define THREAD_PRIORITY_MAIN 7

kernel_pid_t thread_create(char *stack, int bytes, uint8_t priority, int flags,
        thread_task_func_t function, void *argument, const char *name);

#endif
