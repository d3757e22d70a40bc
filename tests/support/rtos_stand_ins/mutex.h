/* Mutexes of RIOT that pages use, by its documentation. */
#ifndef MUTEX_H
#define MUTEX_H

#include <stddef.h>

typedef struct { void *queue; } mutex_t;

#define MUTEX_INIT {NULL}

void mutex_lock(mutex_t *mutex);
void mutex_unlock(mutex_t *mutex);

#endif
